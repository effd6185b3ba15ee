"""What a process asks of its store, as Prometheus reads it: `rate(tidelog_store_requests_total[5m]) * 60` a minute."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.log.base.errors import TidelogError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.log.storage.requests import Requests

# For how long a store that answered is taken to answer: supervisors ask every second, and each request costs.
_ANSWERED_S: Final = 10.0


class StoreMetrics(Collector):
    """The requests to an object store since the process began, by kind, and their bytes; nothing of a local disk."""

    def __init__(self, storage: Storage) -> None:
        self._requests: Requests | None = getattr(storage, "requests", None)

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        if self._requests is None:
            return
        counts = self._requests.counts()
        requests = CounterMetricFamily("tidelog_store_requests", "Requests to the object store.", labels=["kind"])
        for kind, count in sorted(counts.by_kind.items()):
            requests.add_metric([kind.value], count)
        yield requests
        for name, what, value in (
            ("sent", "Bytes sent to the object store.", counts.sent_bytes),
            ("received", "Bytes received from the object store.", counts.received_bytes),
        ):
            yield CounterMetricFamily(f"tidelog_store_{name}_bytes", what, value=value)


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
