"""Topics and groups of a lake, as Prometheus reads them: under the names of kafka_exporter, and tidelog's own.

Source: danielqsj/kafka_exporter, its table of metrics.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.broker.base.cluster_view import ClusterView
from tidelog.groups.model import GroupPhase, GroupView
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState

logger = logging.getLogger(__name__)

# Phases of a group as GroupMetadataManager counts them.
_PHASES = {
    GroupPhase.EMPTY: "numgroupsempty",
    GroupPhase.PREPARING: "numgroupspreparingrebalance",
    GroupPhase.COMPLETING: "numgroupscompletingrebalance",
    GroupPhase.STABLE: "numgroupsstable",
    GroupPhase.DEAD: "numgroupsdead",
}


class LakeMetrics(Collector):
    """Looks at a lake whenever its metrics are asked for, in the thread that asks: every broker tells the same."""

    def __init__(self, lake: Lake, cluster: Callable[[], ClusterView]) -> None:
        self._lake = lake
        self._cluster = cluster
        self._groups = GroupLog(lake)

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        topics = self._topics()
        yield from self._of_brokers()
        yield from self._of_topics(topics)
        yield from self._of_groups(topics)

    def _topics(self) -> Mapping[str, TopicState]:
        """The topics that can be read; one that can't must not hide the others."""
        found = {}
        for name in self._lake.topics():
            try:
                state = self._lake.peek(name)
            except TidelogError as e:
                logger.warning("No metrics of topic %s: %s", name, e)
                continue
            if state is not None:
                found[name] = state
        return found

    def _of_brokers(self) -> Iterator[Metric]:
        view = self._cluster()
        yield GaugeMetricFamily("kafka_brokers", "Brokers that run.", value=len(view.nodes))
        info = GaugeMetricFamily("kafka_broker_info", "A broker, and its address.", labels=["id", "address"])
        for node in view.nodes:
            for host, port in node.addresses.values():
                info.add_metric([str(node.id), f"{host}:{port}"], 1)
        yield info

    def _of_topics(self, topics: Mapping[str, TopicState]) -> Iterator[Metric]:
        each = ["topic", "partition"]
        counts = GaugeMetricFamily("kafka_topic_partitions", "A topic's partitions.", labels=["topic"])
        ends = GaugeMetricFamily("kafka_topic_partition_current_offset", "A partition's end.", labels=each)
        starts = GaugeMetricFamily("kafka_topic_partition_oldest_offset", "A partition's start.", labels=each)
        files = GaugeMetricFamily("tidelog_topic_partition_files", "A partition's files.", labels=each)
        entries = CounterMetricFamily("tidelog_topic_entries", "A topic's log entries.", labels=["topic"])
        for name, state in topics.items():
            counts.add_metric([name], state.partitions)
            entries.add_metric([name], state.version + 1)
            for p in range(state.partitions):
                ends.add_metric([name, str(p)], state.end(p))
                starts.add_metric([name, str(p)], state.start(p))
                files.add_metric([name, str(p)], len(state.live(p)))
        yield from (counts, ends, starts, files, entries)

    def _of_groups(self, topics: Mapping[str, TopicState]) -> Iterator[Metric]:
        groups = self._groups.views()
        each, of_topic = ["consumergroup", "topic", "partition"], ["consumergroup", "topic"]
        at = GaugeMetricFamily("kafka_consumergroup_current_offset", "A group's offset.", labels=each)
        at_all = GaugeMetricFamily("kafka_consumergroup_current_offset_sum", "Of a topic.", labels=of_topic)
        lag = GaugeMetricFamily("kafka_consumergroup_lag", "Records that a group has yet to read.", labels=each)
        lag_all = GaugeMetricFamily("kafka_consumergroup_lag_sum", "Of a topic.", labels=of_topic)
        members = GaugeMetricFamily("kafka_consumergroup_members", "A group's members.", labels=["consumergroup"])
        for name, view in sorted(groups.items()):
            members.add_metric([name], len(view.group.members) if view.group else 0)
            sums: dict[str, tuple[int, int]] = {}
            for (topic, p), committed in sorted(view.offsets.items()):
                state = topics.get(topic)
                if state is None or p >= state.partitions:
                    continue
                behind = max(0, state.end(p) - committed.offset)
                at.add_metric([name, topic, str(p)], committed.offset)
                lag.add_metric([name, topic, str(p)], behind)
                offsets, lags = sums.get(topic, (0, 0))
                sums[topic] = offsets + committed.offset, lags + behind
            for topic, (offsets, lags) in sums.items():
                at_all.add_metric([name, topic], offsets)
                lag_all.add_metric([name, topic], lags)
        yield from (at, at_all, lag, lag_all, members)
        yield from _phases(groups)


def _phases(groups: Mapping[str, GroupView]) -> Iterator[Metric]:
    found = [view.group.phase if view.group else GroupPhase.EMPTY for view in groups.values()]
    manager = "kafka_coordinator_group_groupmetadatamanager"
    yield GaugeMetricFamily(f"{manager}_numgroups", "Groups of the lake.", value=len(groups))
    for phase, name in _PHASES.items():
        yield GaugeMetricFamily(f"{manager}_{name}", f"Groups that are {phase}.", value=found.count(phase))
