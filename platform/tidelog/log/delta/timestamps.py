"""Timestamps in Delta's statistics: ISO 8601 in UTC with milliseconds, as Spark writes them."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def format_utc_ms(ms: int) -> str:
    """1_700_000_000_123 -> '2023-11-14T22:13:20.123Z'."""
    second, rest = divmod(ms, 1000)
    return f"{_second(second)}.{rest:03d}Z"


# Records that come together are of a few seconds.
@lru_cache(1024)
def _second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat()[: -len("+00:00")]


def parse_utc_ms(text: str) -> int:
    """The reverse, for any ISO 8601 text; one without an offset is UTC. Rounds down to ms."""
    at = datetime.fromisoformat(text)
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MS
