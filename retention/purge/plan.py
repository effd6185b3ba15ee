"""What may leave storage: pure plans over what the log says, the files in the folder, and the store's times."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import ObjectInfo
from tidelog.log.upkeep.replaced_files import Gone, Kept, over
from tidelog.log.upkeep.trim import Seen, ages_ms, old_version

# How long a file that no entry names belongs to a writer at work: 'tidelog check' calls it an orphan after that.
ORPHAN_AGE_MS = 3_600_000
# A clock may be off by so much from the store's own: more, and records expire too early, or files go too soon.
MOST_OFF_MS = 10 * 60_000
# Committers' clocks count less: one that was an hour fast must not stop maintenance, one that was a year fast must.
MOST_BEHIND_MS = 60 * 60_000
# tidelog's own names of data files; every other file in the folder is another engine's.
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OWN = re.compile(rf"(?:partition=\d+|rows)/(\d+)-{_UUID}(?:_\d+-{_UUID})?\.parquet")
# What other engines name the files that they write, before the protocol makes them refuse to commit.
_OTHERS = re.compile(
    r"(?:(?:partition|base_offset)=[^/]+/)*"
    rf"(?:\.?part-\d+-[^/]+\.parquet(?:\.crc|#\d+)?|deletion_vector_{_UUID}\.bin)"
)
_PARTITION = re.compile(r"partition=(\d+)/")


@dataclass(frozen=True, slots=True)
class Times:
    """Times of the store's clock, ms since the epoch, and how long things stay, in ms.

    `now_ms`: what the plan takes for now. `seen_ms`: the store's time at the look that the plan rests on.
    """

    now_ms: int
    seen_ms: int
    min_age_ms: int
    delay_ms: int

    @property
    def patience_ms(self) -> int:
        """How long what is old enough for everything has been there."""
        return max(self.min_age_ms, self.delay_ms)


@dataclass(frozen=True, slots=True)
class LogPlan:
    """`checkpoint`: the version to write one of first, None for none. `floor`: how far the log is then trimmed."""

    checkpoint: int | None
    floor: int


def plan_log(
    listing: Sequence[ObjectInfo],
    checkpoints: Collection[int],
    removed: Collection[int],
    floor: int,
    seen: Seen,
    held: int | None,
    min_age_ms: int,
    most_entries: int,
) -> LogPlan:
    """How far the log can be trimmed, and whether that is worth a checkpoint.

    `listing` of the log folder; `removed`: the versions of entries that removed files; `held`: the oldest version that
    a running job needs. A checkpoint is written of the newest version that is old enough, when files wait for it or
    `most_entries` are before it.

    Example: entries 0 to 9 are old, 7 removed a file, there is no checkpoint: one of 9, and the floor goes to 8.
    """
    ages = ages_ms(listing, floor, min_age_ms, seen)
    old = old_version(ages, min_age_ms)
    if held is not None:
        old = min(old, held)
    newest = max((c for c in checkpoints if floor < c <= old and c in ages), default=floor)
    if old > newest and (any(newest < r <= old for r in removed) or old - newest >= most_entries):
        return LogPlan(old, max(floor, old - 1))
    return LogPlan(None, max(floor, newest - 1))


@dataclass(frozen=True, slots=True)
class Facts:
    """What a plan of deletions goes by. Paths below the topic's folder, as they are in storage.

    `files`: the files there. `live`: what the head of the log, entry `head`, names. `kept`: what the kept log says of
    removed files. `entry_ms`: when entries were stored. `spare`: partitions of which nothing may go. `holds`: the
    (version, by whom) of other jobs' standing holds.
    """

    files: Mapping[str, ObjectInfo]
    live: Collection[str]
    kept: Kept
    head: int
    entry_ms: Mapping[int, int]
    times: Times
    spare: Collection[int] = frozenset()
    holds: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True)
class Leaving:
    """A file that is deleted: `why` is "removed" (by the log) or "orphan" (of a writer that never committed it).

    A writer may be another engine, which the table's protocol refuses.
    """

    path: str
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A removed file that a reader or a job may still need; `until_ms` (store's clock) when that is known."""

    path: str
    size: int
    why: str
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """`floor`: the purge floor without which tidelog's own orphans must stay, None when there are none."""

    removed: tuple[Leaving, ...]
    orphans: tuple[Leaving, ...]
    waiting: tuple[Waiting, ...]
    floor: int | None


def plan_files(facts: Facts) -> PurgePlan:
    """Which files go, which removed ones wait and for what, and the purge floor that orphans need."""
    times, kept = facts.times, facts.kept
    made_ms = {path: info.modified_ms for path, info in facts.files.items()}
    named = set(facts.live) | kept.removed.keys()
    ready = over(kept.gone, made_ms, named, times.now_ms, times.delay_ms)
    removed = tuple(Leaving(p, facts.files[p].size, "removed") for p in ready if not _spared(p, facts.spare))
    orphans = tuple(
        Leaving(path, info.size, "orphan")
        for path, info in sorted(facts.files.items())
        if path not in named and path not in kept.gone and _is_orphan(path, info, facts)
    )
    newest = max((v for o in orphans if (v := known_version(o.path)) is not None), default=None)
    floor = None if newest is None else newest + 1
    return PurgePlan(removed, orphans, _waiting(facts, {r.path for r in removed}), floor)


def known_version(path: str) -> int | None:
    """The version that the writer of a file knew; None for a name that is not tidelog's.

    >>> known_version("partition=0/17-15b1877b-7923-4ea2-b092-83ab9158ec3e.parquet")
    17
    """
    match = _OWN.fullmatch(path)
    return None if match is None else int(match[1])


def _is_orphan(path: str, info: ObjectInfo, facts: Facts) -> bool:
    writer_version, times = known_version(path), facts.times
    age_ms = max(ORPHAN_AGE_MS, times.patience_ms)
    old = info.modified_ms <= times.now_ms - age_ms and info.modified_ms <= times.seen_ms
    if not old or _spared(path, facts.spare):
        return False
    if writer_version is None:  # no tidelog ever commits another engine's
        return _OTHERS.fullmatch(path) is not None
    # One that knew more than the log says now is of a log that was taken back to an earlier copy.
    return writer_version <= facts.head and all(writer_version < version for version, _ in facts.holds)


def _spared(path: str, spare: Collection[int]) -> bool:
    match = _PARTITION.match(path)
    return match is not None and int(match[1]) in spare


def _waiting(facts: Facts, leaving: Collection[str]) -> tuple[Waiting, ...]:
    times, kept = facts.times, facts.kept
    waiting = []
    for path in sorted((kept.removed.keys() | kept.gone.keys()) - set(leaving)):
        info = facts.files.get(path)
        if info is None or path in facts.live:
            continue
        why, until_ms = "file.delete.delay.ms", None
        if _spared(path, facts.spare):
            why = "its partition could not be maintained"
        elif path in kept.removed:
            version = kept.removed[path]
            by = next((who for held, who in sorted(facts.holds) if held < version), None)
            why = "time travel (log.min.age.ms)" if by is None else f"a running job ({by})"
            entry_ms = facts.entry_ms.get(version)
            until_ms = None if by is not None or entry_ms is None else entry_ms + times.patience_ms
        else:
            until_ms = kept.gone[path].removed_ms(info.modified_ms) + times.delay_ms
        waiting.append(Waiting(path, info.size, why, until_ms))
    return tuple(waiting)


def kept_after(kept: Kept, floor: int, entry_ms: Mapping[int, int]) -> Kept:
    """What can be read once the log is trimmed up to `floor`: what entries up to `floor` + 1 removed is gone then."""
    if floor < kept.oldest:
        return kept
    passed = {p: v for p, v in kept.removed.items() if v <= floor + 1}
    gone = {p: Gone(entry_ms.get(v, 0), entry_ms.get(v, 0)) for p, v in passed.items()}
    left = {p: v for p, v in kept.removed.items() if p not in passed}
    return Kept(floor + 1, left, {**kept.gone, **gone})


def decide_purge_floor(
    state: TopicState, floor: int, candidates: Collection[str], parameters: Mapping[str, str]
) -> Outcome[frozenset[str]]:
    """Raise the purge floor to `floor`; the response are those of the candidates that are live.

    From this entry on no writer can commit a segment that was opened at an older version. The floor never falls.
    """
    live = frozenset(s.path for s in state.all_segments()) & frozenset(candidates)
    raised = max(floor, state.txn(layout.PURGE_TXN) or 0)
    return Outcome((Txn(layout.PURGE_TXN, raised),), live, "PURGE", parameters=parameters)


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
