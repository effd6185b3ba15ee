"""What a process counts, as its listener shows it and as a collector gets it: one list of rows, with two faces."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.metrics_core import Metric

from tidelog.operations.metric_families import Labels, MetricFamily

# What a process counts, as of now.
Metrics = Callable[[], Iterable[MetricFamily]]


class ProcessMetrics:
    """The metrics of any process, its processor time and memory among them, and those that it has besides."""

    def __init__(self, *metrics: Metrics) -> None:
        self._registry = registry = CollectorRegistry()
        for own in (ProcessCollector, PlatformCollector, GCCollector):
            own(registry=registry)
        self._metrics = metrics

    def read(self) -> Iterator[MetricFamily]:
        """All of them, as of now. Raises what reading them raises."""
        yield from map(family_of, self._registry.collect())
        for metrics in self._metrics:
            yield from metrics()


def family_of(metric: Metric) -> MetricFamily:
    """A metric of prometheus_client, which is a gauge or a counter."""
    samples: list[tuple[Labels, float]] = [(sample.labels, sample.value) for sample in metric.samples]
    return MetricFamily(metric.name, metric.documentation, metric.type == "counter", samples)
