"""Whether this machine's clock can be trusted with deleting things by age. Pure."""

# A clock may be off by so much from the store's own: more, and records expire too early, or files go too soon.
MOST_OFF_MS = 10 * 60_000
# Committers' clocks count less: one that was an hour fast must not stop maintenance, one that was a year fast must.
MOST_BEHIND_MS = 60 * 60_000


def clock_problem(now_ms: int, store_ms: int | None, newest_ms: int) -> str | None:
    """Why nothing may be deleted by this clock; None when it is fine. All times in ms since the epoch.

    `store_ms` is what the store's clock said just now, None where it is unknown; `newest_ms` when the topic's newest
    segment was committed, by its committer's clock.
    """
    off_ms = 0 if store_ms is None else now_ms - store_ms
    if abs(off_ms) > MOST_OFF_MS:
        way = "ahead of" if off_ms > 0 else "behind"
        return (
            f"this machine's clock is {abs(off_ms) // 1000} s {way} the store's, and can't tell the age of files:"
            " nothing was done. Set the clock (NTP), and run this again."
        )
    if store_ms is None and newest_ms - now_ms > MOST_BEHIND_MS:
        return (
            f"its newest segment was committed {(newest_ms - now_ms) // 1000} s after this machine's time, so a clock"
            " is wrong, this one or that committer's, and the age of files is unknown: nothing was done. Set this clock"
            " (NTP) if it is the wrong one; else wait until that time, or copy the topic to a new one."
        )
    return None
