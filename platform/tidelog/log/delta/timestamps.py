"""Timestamps in Delta's statistics: ISO 8601 in UTC with milliseconds, as Spark writes them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def format_utc_ms(ms: int) -> str:
    """1_700_000_000_123 -> '2023-11-14T22:13:20.123Z'."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_utc_ms(text: str) -> int:
    """The reverse, for any ISO 8601 text; one without an offset is UTC. Rounds down to ms."""
    at = datetime.fromisoformat(text)
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MS
