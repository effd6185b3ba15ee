"""What `tidelog consume --metrics` says: records that it printed, and how far it came."""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ConsumedMetrics(Collector):
    """`printed`: by partition of the topic, the records that were printed and the offset behind the last one."""

    def __init__(self, topic: str, printed: Mapping[int, tuple[int, int]]) -> None:
        self._topic = topic
        self._printed = printed

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        labels = ["topic", "partition"]
        records = CounterMetricFamily("tidelog_consume_records", "Records that were printed.", labels=labels)
        offset = GaugeMetricFamily("tidelog_consume_offset", "The offset behind the last one printed.", labels=labels)
        for partition, (count, end) in sorted(dict(self._printed).items()):
            records.add_metric([self._topic, str(partition)], count)
            offset.add_metric([self._topic, str(partition)], end)
        yield from (records, offset)
