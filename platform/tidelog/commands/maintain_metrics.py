"""What `tidelog maintain --every … --metrics` says of its runs."""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.log.base.clock import Clock
from tidelog.operations.maintenance import RunCounts


class MaintainMetrics(Collector):
    """Reads what a loop of maintenance counts whenever it is asked for."""

    def __init__(self, counts: RunCounts, clock: Clock) -> None:
        self._counts = counts
        self._clock = clock

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        counts, now_s = self._counts, self._clock.elapsed_s()
        runs = CounterMetricFamily("tidelog_maintain_runs", "Runs of this process.", labels=["outcome"])
        for outcome, count in counts.runs.items():
            runs.add_metric([outcome], count)
        yield runs
        began_s, ended_s = counts.began_s, counts.ended_s
        for name, what, value in (
            ("failures", "What failed in its last run.", counts.failures),
            ("last_run_seconds", "What its last run took.", counts.took_s),
            ("running_seconds", "Since the run that goes on began.", 0.0 if began_s is None else now_s - began_s),
        ):
            yield GaugeMetricFamily(f"tidelog_maintain_{name}", what, value=value)
        if ended_s is not None:
            yield GaugeMetricFamily("tidelog_maintain_idle_seconds", "Since its last run ended.", value=now_s - ended_s)
