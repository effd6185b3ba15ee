"""A process's metrics as OpenTelemetry has them: the rows of its listener, by the same names."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from tidelog.operations.metric_families import Labels, MetricFamily

# A lake may have 100,000 samples and more, and collectors bound the size of a request.
MOST_POINTS: Final = 5000

_Samples = list[tuple[Labels, float]]


def metric_data(
    families: Iterable[MetricFamily], resource: Resource, scope: InstrumentationScope, start_ns: int, now_ns: int
) -> Iterator[MetricsData]:
    """Requests' worth of metrics. A counter's value is of all time, and names the start of the process."""
    for metrics in _batches(families):
        own = [_metric(family, samples, start_ns, now_ns) for family, samples in metrics]
        yield MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, own, "")], "")])


def _batches(families: Iterable[MetricFamily]) -> Iterator[list[tuple[MetricFamily, _Samples]]]:
    batch: list[tuple[MetricFamily, _Samples]] = []
    room = MOST_POINTS
    for family in families:
        samples = family.samples
        while samples:
            batch.append((family, samples[:room]))
            samples, room = samples[room:], room - len(samples[:room])
            if not room:
                yield batch
                batch, room = [], MOST_POINTS
    if batch:
        yield batch


def _metric(family: MetricFamily, samples: _Samples, start_ns: int, now_ns: int) -> Metric:
    # A unit would become part of the name in a store that is asked as Prometheus is, and names have theirs.
    if family.is_counter:
        points = [_point(labels, value, start_ns, now_ns) for labels, value in samples]
        data: Any = Sum(points, AggregationTemporality.CUMULATIVE, True)
        return Metric(f"{family.name}_total", family.what, "", data)
    return Metric(family.name, family.what, "", Gauge([_point(labels, value, 0, now_ns) for labels, value in samples]))


def _point(labels: Labels, value: float, start_ns: int, now_ns: int) -> NumberDataPoint:
    return NumberDataPoint(dict(labels), start_ns, now_ns, int(value) if isinstance(value, bool) else value)
