"""Consumer groups of a lake, as metrics: where they are, and how far behind.

Source: the tables of metrics of danielqsj/kafka_exporter and of seglo/kafka-lag-exporter; the group manager's counts
are those of Kafka's monitoring guide, under jmx_exporter's names.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from tidelog.groups.model import AnyMember, GroupPhase
from tidelog.operations.groups import GroupDescription, PartitionLag, describe_group
from tidelog.operations.metric_families import MetricFamily
from tidelog.operations.snapshots import LakeSnapshot

# Phases of a group as GroupMetadataManager counts them.
_PHASES: Final = {
    GroupPhase.EMPTY: "numgroupsempty",
    GroupPhase.PREPARING: "numgroupspreparingrebalance",
    GroupPhase.COMPLETING: "numgroupscompletingrebalance",
    GroupPhase.STABLE: "numgroupsstable",
    GroupPhase.DEAD: "numgroupsdead",
    GroupPhase.ASSIGNING: "numgroupsassigning",
    GroupPhase.RECONCILING: "numgroupsreconciling",
}
_PROTOCOLS: Final = ("classic", "consumer", "streams")
_BY_PROTOCOL: Final = "kafka_server_group_coordinator_metrics_group_count"
_MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager"


def group_metrics(snapshot: LakeSnapshot, cluster: str) -> Iterator[MetricFamily]:
    """Each group. `cluster`: the label by which dashboards tell lakes apart."""
    groups = [describe_group(snapshot, name) for name in sorted(snapshot.groups)]
    yield from _as_kafka_exporter(groups)
    yield from _as_lag_exporter(groups, cluster)
    phases = [description.group.phase for description in groups]
    yield MetricFamily.of(f"{_MANAGER}_numgroups", "Groups of the lake.", len(phases))
    types = MetricFamily(_BY_PROTOCOL, "Groups by their protocol.")
    for protocol in _PROTOCOLS:
        types.add({"protocol": protocol}, sum(description.group.type == protocol for description in groups))
    yield types
    for phase, name in _PHASES.items():
        yield MetricFamily.of(f"{_MANAGER}_{name}", f"Groups that are {phase}.", phases.count(phase))


def _known(description: GroupDescription) -> list[tuple[PartitionLag, int, int]]:
    """The partitions of which the lag is known, with the offset and the lag in records."""
    return [
        (lag, lag.committed, lag.records)
        for lag in description.partitions
        if lag.committed is not None and lag.records is not None
    ]


def _as_kafka_exporter(groups: Iterable[GroupDescription]) -> Iterator[MetricFamily]:
    at = MetricFamily("kafka_consumergroup_current_offset", "A group's offset.")
    at_all = MetricFamily("kafka_consumergroup_current_offset_sum", "Of a topic.")
    lag = MetricFamily("kafka_consumergroup_lag", "Records that a group has yet to read.")
    lag_all = MetricFamily("kafka_consumergroup_lag_sum", "Of a topic.")
    members = MetricFamily("kafka_consumergroup_members", "A group's members.")
    for description in groups:
        name = {"consumergroup": description.group.group_id}
        members.add(name, description.lag.members)
        sums: dict[str, int] = {}
        for partition, offset, records in _known(description):
            place = {**name, "topic": partition.topic, "partition": str(partition.partition)}
            at.add(place, offset)
            lag.add(place, records)
            sums[partition.topic] = sums.get(partition.topic, 0) + offset
        for topic, offsets in sums.items():
            at_all.add({**name, "topic": topic}, offsets)
            lag_all.add({**name, "topic": topic}, description.lag.by_topic[topic])
    yield from (at, at_all, lag, lag_all, members)


def _as_lag_exporter(groups: Iterable[GroupDescription], cluster: str) -> Iterator[MetricFamily]:
    """A partition's labels name its reader, too; they are empty for a group without a member there."""
    prefix = "kafka_consumergroup_group"
    at = MetricFamily(f"{prefix}_offset", "A group's offset.")
    lag = MetricFamily(f"{prefix}_lag", "Records that a group has yet to read.")
    late = MetricFamily(f"{prefix}_lag_seconds", "Age of the oldest record that a group has yet to read.")
    most = MetricFamily(f"{prefix}_max_lag", "Of a group's partitions.")
    latest = MetricFamily(f"{prefix}_max_lag_seconds", "Of a group's partitions.")
    total = MetricFamily(f"{prefix}_sum_lag", "Of a group's partitions.")
    of_topic = MetricFamily(f"{prefix}_topic_sum_lag", "Of a topic.")
    for description in groups:
        name = {"cluster_name": cluster, "group": description.group.group_id}
        partitions = _known(description)
        for partition, offset, records in partitions:
            place = {
                **name,
                "topic": partition.topic,
                "partition": str(partition.partition),
                **_reader(partition.reader),
            }
            at.add(place, offset)
            lag.add(place, records)
            late.add(place, partition.seconds or 0.0)
        for topic, records in description.lag.by_topic.items():
            of_topic.add({**name, "topic": topic}, records)
        if partitions:
            most.add(name, max(records for _, _, records in partitions))
            latest.add(name, max(partition.seconds or 0.0 for partition, _, _ in partitions))
            total.add(name, description.lag.records)
    yield from (at, lag, late, most, latest, total, of_topic)


def _reader(member: AnyMember | None) -> dict[str, str]:
    if member is None:
        return {"member_host": "", "consumer_id": "", "client_id": ""}
    return {"member_host": member.host, "consumer_id": member.member_id, "client_id": member.client_id}
