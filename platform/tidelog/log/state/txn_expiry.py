"""How long transaction ids that have a time are kept: by the newest of these times, and never by a machine's clock.

So a log without new entries forgets nothing, and no clock that jumps or is ahead makes a repeat look new.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# A fact about the topic: how long a producer is remembered that is silent while others go on, in ms.
PRODUCER_EXPIRATION: Final = "tidelog.producer.id.expiration.ms"
# Delta's own, for all ids; ids that are no producers' go by it.
TXN_RETENTION: Final = "delta.setTransactionRetentionDuration"

_DAY_MS: Final = 86_400_000
_UNITS: Final = {  # in ms
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": _DAY_MS,
    "week": 7 * _DAY_MS,
}


@dataclass(frozen=True, slots=True)
class TxnExpiry:
    """How long ids are kept, in ms; None: for ever."""

    producers_ms: int = _DAY_MS
    others_ms: int | None = None

    def producers_since_ms(self, newest_ms: int) -> int:
        """From when on producers are kept, where `newest_ms` is the newest time of all ids."""
        return newest_ms - self.producers_ms

    def others_since_ms(self, newest_ms: int) -> int:
        """From when on other ids are kept."""
        return 0 if self.others_ms is None else newest_ms - self.others_ms


def txn_expiry(configuration: Mapping[str, str]) -> TxnExpiry:
    """What a table's properties say."""
    own = configuration.get(PRODUCER_EXPIRATION, "")
    producers_ms = int(own) if own.isascii() and own.isdigit() else _DAY_MS
    return TxnExpiry(producers_ms, interval_ms(configuration.get(TXN_RETENTION)))


def interval_ms(text: str | None) -> int | None:
    """Delta's duration, as "interval 14 days" or "2 weeks 3 hours", in ms; None, for ever, when it is none.

    >>> interval_ms("interval 14 days"), interval_ms("2 WEEKS 1 hour"), interval_ms("interval a while")
    (1209600000, 1213200000, None)
    """
    words = (text or "").lower().removeprefix("interval").split()
    counts, units = words[::2], [unit.removesuffix("s") for unit in words[1::2]]
    if not words or len(counts) != len(units) or not all(c.isdigit() for c in counts) or not set(units) <= set(_UNITS):
        return None
    return sum(int(count) * _UNITS[unit] for count, unit in zip(counts, units, strict=True))
