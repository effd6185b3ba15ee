"""What a process asks of its store, as Prometheus reads it: `rate(tidelog_store_requests_total[5m]) * 60` a minute."""

from collections.abc import Callable, Iterator
from typing import Final

from tidelog.log.base.errors import TidelogError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.log.storage.requests import RequestCounts, Requests
from tidelog.operations.metric_families import MetricFamily, MetricRow, counter, read_rows

# For how long a store that answered is taken to answer: supervisors ask every second, and each request costs.
_ANSWERED_S: Final = 10.0
_METRICS: Final[tuple[MetricRow[RequestCounts], ...]] = (
    counter(
        "tidelog_store_requests",
        "Requests to the object store.",
        lambda counts: [({"kind": kind.value}, count) for kind, count in sorted(counts.by_kind.items())],
    ),
    counter("tidelog_store_sent_bytes", "Bytes sent to the object store.", lambda counts: counts.sent_bytes),
    counter(
        "tidelog_store_received_bytes",
        "Bytes received from the object store.",
        lambda counts: counts.received_bytes,
    ),
)


def store_metrics(storage: Storage) -> Iterator[MetricFamily]:
    """The requests to an object store since the process began, by kind, and their bytes; nothing of a local disk."""
    requests: Requests | None = getattr(storage, "requests", None)
    return iter(()) if requests is None else read_rows(_METRICS, requests.counts())


def store_problem(lake: Lake) -> Callable[[], str | None]:
    """What says why a lake's store does not answer, None while it does: one request every 10 s at most."""
    answered_s = float("-inf")

    def problem() -> str | None:
        nonlocal answered_s
        now_s = lake.clock.elapsed_s()
        if now_s - answered_s < _ANSWERED_S and lake.storage.is_shared:
            return None
        try:
            lake.storage.head(layout.LAKE_FILE)
        except TidelogError as e:
            answered_s = float("-inf")
            return str(e)
        answered_s = now_s
        return None

    return problem
