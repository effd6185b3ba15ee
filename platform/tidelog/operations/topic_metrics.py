"""Topics and partitions of a lake, as metrics.

Source: the tables of metrics of danielqsj/kafka_exporter and of seglo/kafka-lag-exporter; what is tidelog's own begins
with `tidelog_`.
"""

from collections.abc import Iterator

from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.state.descriptions import describe
from tidelog.operations.metric_families import MetricFamily
from tidelog.operations.snapshots import LakeSnapshot
from tidelog.operations.topics import live_files


def topic_metrics(snapshot: LakeSnapshot, cluster: str, defaults: LakeConfig) -> Iterator[MetricFamily]:
    """Each topic and partition. `cluster`: the label by which dashboards tell lakes apart."""
    yield from _partitions(snapshot, cluster)
    yield from _files(snapshot, defaults)
    yield from _upkeep(snapshot)


def _partitions(snapshot: LakeSnapshot, cluster: str) -> Iterator[MetricFamily]:
    counts = MetricFamily("kafka_topic_partitions", "A topic's partitions.")
    ends = MetricFamily("kafka_topic_partition_current_offset", "A partition's end.")
    starts = MetricFamily("kafka_topic_partition_oldest_offset", "A partition's start.")
    latest = MetricFamily("kafka_partition_latest_offset", "A partition's end.")
    earliest = MetricFamily("kafka_partition_earliest_offset", "A partition's start.")
    files = MetricFamily("tidelog_topic_partition_files", "A partition's files.")
    for name, state in snapshot.topics.items():
        counts.add({"topic": name}, state.partitions)
        for partition in describe(state, name).partitions:
            place = {"topic": name, "partition": str(partition.partition)}
            named = {"cluster_name": cluster, **place}
            ends.add(place, partition.end)
            starts.add(place, partition.start)
            files.add(place, partition.segments)
            latest.add(named, partition.end)
            earliest.add(named, partition.start)
    yield from (counts, ends, starts, latest, earliest, files)


def _files(snapshot: LakeSnapshot, defaults: LakeConfig) -> Iterator[MetricFamily]:
    files = MetricFamily("tidelog_topic_files", "A topic's live files.")
    small = MetricFamily("tidelog_topic_small_files", "Of them, those below a sixteenth of segment.bytes.")
    size = MetricFamily("tidelog_topic_bytes", "Bytes of a topic's live files.")
    entries = MetricFamily("tidelog_topic_entries", "A topic's log entries.", is_counter=True)
    records = MetricFamily("tidelog_topic_records", "Offsets that a topic gave out.", is_counter=True)
    for name, state in snapshot.topics.items():
        live = live_files(state, defaults)
        topic = {"topic": name}
        files.add(topic, live.number)
        small.add(topic, live.small)
        size.add(topic, live.bytes)
        entries.add(topic, state.version + 1)
        records.add(topic, sum(state.ends.values()))
    yield from (files, small, size, entries, records)


def _upkeep(snapshot: LakeSnapshot) -> Iterator[MetricFamily]:
    checkpoint = MetricFamily("tidelog_topic_checkpoint_age_seconds", "Since a topic's newest checkpoint was written.")
    holds = MetricFamily("tidelog_topic_holds", "Jobs that hold versions of a topic's log.")
    held = MetricFamily(
        "tidelog_topic_held_entries", "Entries from the oldest held version to the newest; 0 without one."
    )
    for name, upkeep in snapshot.upkeep.items():
        topic = {"topic": name}
        if upkeep.checkpoint_ms is not None:
            checkpoint.add(topic, max(0, snapshot.at_ms - upkeep.checkpoint_ms) / 1000)
        holds.add(topic, upkeep.holds)
        version = snapshot.topics[name].version
        held.add(topic, max(0, version - (version if upkeep.oldest_held is None else upkeep.oldest_held)))
    yield from (checkpoint, holds, held)
