"""Consumer groups of a lake, as Prometheus reads them: where they are, and how far behind.

Source: the tables of metrics of danielqsj/kafka_exporter and of seglo/kafka-lag-exporter; the group manager's counts
are those of Kafka's monitoring guide, under jmx_exporter's names.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from tidelog.admin.group_requests import assigned
from tidelog.groups.model import GroupPhase, GroupView, Member, TopicPartition
from tidelog.metrics.text import add
from tidelog.operations.groups import Lag, lags
from tidelog.operations.snapshots import LakeSnapshot

# Phases of a group as GroupMetadataManager counts them.
_PHASES: Final = {
    GroupPhase.EMPTY: "numgroupsempty",
    GroupPhase.PREPARING: "numgroupspreparingrebalance",
    GroupPhase.COMPLETING: "numgroupscompletingrebalance",
    GroupPhase.STABLE: "numgroupsstable",
    GroupPhase.DEAD: "numgroupsdead",
}
_MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager"


def group_metrics(snapshot: LakeSnapshot, cluster: str) -> Iterator[Metric]:
    """Each group. `cluster`: the label by which dashboards tell lakes apart."""
    behind = {name: lags(snapshot, view) for name, view in sorted(snapshot.groups.items())}
    yield from _as_kafka_exporter(snapshot.groups, behind)
    yield from _as_lag_exporter(snapshot.groups, behind, cluster)
    phases = [view.group.phase if view.group else GroupPhase.EMPTY for view in snapshot.groups.values()]
    yield GaugeMetricFamily(f"{_MANAGER}_numgroups", "Groups of the lake.", value=len(phases))
    for phase, name in _PHASES.items():
        yield GaugeMetricFamily(f"{_MANAGER}_{name}", f"Groups that are {phase}.", value=phases.count(phase))


def _as_kafka_exporter(
    groups: Mapping[str, GroupView], behind: Mapping[str, Mapping[TopicPartition, Lag]]
) -> Iterator[Metric]:
    at = GaugeMetricFamily("kafka_consumergroup_current_offset", "A group's offset.")
    at_all = GaugeMetricFamily("kafka_consumergroup_current_offset_sum", "Of a topic.")
    lag = GaugeMetricFamily("kafka_consumergroup_lag", "Records that a group has yet to read.")
    lag_all = GaugeMetricFamily("kafka_consumergroup_lag_sum", "Of a topic.")
    members = GaugeMetricFamily("kafka_consumergroup_members", "A group's members.")
    for name, found in behind.items():
        view = groups[name]
        add(members, {"consumergroup": name}, len(view.group.members) if view.group else 0)
        sums: dict[str, tuple[int, int]] = {}
        for (topic, p), one in found.items():
            offset = view.offsets[topic, p].offset
            place = {"consumergroup": name, "topic": topic, "partition": str(p)}
            add(at, place, offset)
            add(lag, place, one.records)
            offsets, records = sums.get(topic, (0, 0))
            sums[topic] = offsets + offset, records + one.records
        for topic, (offsets, records) in sums.items():
            of_topic = {"consumergroup": name, "topic": topic}
            add(at_all, of_topic, offsets)
            add(lag_all, of_topic, records)
    yield from (at, at_all, lag, lag_all, members)


def _as_lag_exporter(
    groups: Mapping[str, GroupView], behind: Mapping[str, Mapping[TopicPartition, Lag]], cluster: str
) -> Iterator[Metric]:
    """A partition's labels name its reader, too; they are empty for a group without a member there."""
    prefix = "kafka_consumergroup_group"
    offset = GaugeMetricFamily(f"{prefix}_offset", "A group's offset.")
    lag = GaugeMetricFamily(f"{prefix}_lag", "Records that a group has yet to read.")
    late = GaugeMetricFamily(f"{prefix}_lag_seconds", "Age of the oldest record that a group has yet to read.")
    most = GaugeMetricFamily(f"{prefix}_max_lag", "Of a group's partitions.")
    latest = GaugeMetricFamily(f"{prefix}_max_lag_seconds", "Of a group's partitions.")
    total = GaugeMetricFamily(f"{prefix}_sum_lag", "Of a group's partitions.")
    of_topic = GaugeMetricFamily(f"{prefix}_topic_sum_lag", "Of a topic.")
    for name, found in behind.items():
        group = {"cluster_name": cluster, "group": name}
        readers = _readers(groups[name])
        sums: dict[str, int] = {}
        for (topic, p), one in found.items():
            place = {**group, "topic": topic, "partition": str(p), **_who(readers.get((topic, p)))}
            add(offset, place, groups[name].offsets[topic, p].offset)
            add(lag, place, one.records)
            add(late, place, one.seconds)
            sums[topic] = sums.get(topic, 0) + one.records
        for topic, records in sums.items():
            add(of_topic, {**group, "topic": topic}, records)
        if found:
            add(most, group, max(one.records for one in found.values()))
            add(latest, group, max(one.seconds for one in found.values()))
            add(total, group, sum(sums.values()))
    yield from (offset, lag, late, most, latest, total, of_topic)


def _who(reader: Member | None) -> dict[str, str]:
    if reader is None:
        return {"member_host": "", "consumer_id": "", "client_id": ""}
    return {"member_host": reader.host, "consumer_id": reader.member_id, "client_id": reader.client_id}


def _readers(view: GroupView) -> dict[TopicPartition, Member]:
    """Which member reads which partition."""
    if view.group is None:
        return {}
    return {place: member for member in view.group.members.values() for place in assigned(view.group, member)}
