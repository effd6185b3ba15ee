"""What a mirror says of itself, as Prometheus reads it."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from tidelog.operations.metric_families import Labels, MetricFamily, MetricRow, counter, gauge, read_rows
from tidelog.operations.mirrors import MirrorStatus, lag_ms


class _Said(NamedTuple):
    """What a mirror said, and when it is read, ms since the epoch."""

    status: MirrorStatus
    now_ms: int


def mirror_metrics(status: MirrorStatus | None, now_ms: int) -> Iterator[MetricFamily]:
    """All of them, of what a mirror said last; none before it said anything.

    `now_ms`: the reader's clock, ms since the epoch, by which a silent mirror grows old.
    """
    return iter(()) if status is None else read_rows(_METRICS, _Said(status, now_ms))


def _lags(said: _Said) -> Iterable[tuple[Labels, float]]:
    return [({"table": name}, max(0, one.source - one.follower)) for name, one in said.status.tables.items()]


_METRICS: Final[tuple[MetricRow[_Said], ...]] = (
    gauge(
        "tidelog_mirror_lag_entries",
        "Entries at the source that the follower lacks.",
        lambda said: said.status.behind_entries,
    ),
    gauge(
        "tidelog_mirror_lag_bytes",
        "Bytes of the entries and files that the follower lacks.",
        lambda said: said.status.behind_bytes,
    ),
    gauge(
        "tidelog_mirror_lag_seconds",
        "Age of the oldest entry that the follower lacks.",
        lambda said: lag_ms(said.status, said.now_ms) / 1000,
    ),
    gauge(
        "tidelog_mirror_delay_seconds",
        "Median age of the last entries when they were shipped.",
        lambda said: said.status.delay_ms[0] / 1000,
    ),
    gauge(
        "tidelog_mirror_status_age_seconds",
        "How long ago the mirror last said anything.",
        lambda said: (said.now_ms - said.status.now_ms) / 1000,
    ),
    gauge(
        "tidelog_mirror_whole",
        "1 when the follower can be promoted: it is as the source was.",
        lambda said: said.status.whole_ms is not None,
    ),
    counter(
        "tidelog_mirror_shipped_entries",
        "Entries shipped since the process began.",
        lambda said: said.status.shipped_entries,
    ),
    counter(
        "tidelog_mirror_shipped_bytes",
        "Bytes of files shipped since the process began.",
        lambda said: said.status.shipped_bytes,
    ),
    gauge("tidelog_mirror_table_lag_entries", "Entries that the follower lacks.", _lags),
    gauge(
        "tidelog_mirror_table_stopped",
        "1: the table is not shipped.",
        lambda said: [({"table": name}, bool(one.problem)) for name, one in said.status.tables.items()],
    ),
    gauge(
        "tidelog_mirror_table_waiting_bytes",
        "Removed files still to be deleted here.",
        lambda said: [({"table": name}, one.waiting_bytes) for name, one in said.status.tables.items()],
    ),
)
