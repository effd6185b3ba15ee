"""Topics and partitions of a lake, as Prometheus reads them.

Source: the tables of metrics of danielqsj/kafka_exporter and of seglo/kafka-lag-exporter; what is tidelog's own begins
with `tidelog_`.
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.state.descriptions import describe
from tidelog.operations.snapshots import LakeSnapshot
from tidelog.operations.topics import live_files
from tidelog.server.process.metrics_text import add


def topic_metrics(snapshot: LakeSnapshot, cluster: str, defaults: LakeConfig) -> Iterator[Metric]:
    """Each topic and partition. `cluster`: the label by which dashboards tell lakes apart."""
    yield from _partitions(snapshot, cluster)
    yield from _files(snapshot, defaults)
    yield from _upkeep(snapshot)


def _partitions(snapshot: LakeSnapshot, cluster: str) -> Iterator[Metric]:
    counts = GaugeMetricFamily("kafka_topic_partitions", "A topic's partitions.")
    ends = GaugeMetricFamily("kafka_topic_partition_current_offset", "A partition's end.")
    starts = GaugeMetricFamily("kafka_topic_partition_oldest_offset", "A partition's start.")
    latest = GaugeMetricFamily("kafka_partition_latest_offset", "A partition's end.")
    earliest = GaugeMetricFamily("kafka_partition_earliest_offset", "A partition's start.")
    files = GaugeMetricFamily("tidelog_topic_partition_files", "A partition's files.")
    for name, state in snapshot.topics.items():
        add(counts, {"topic": name}, state.partitions)
        for partition in describe(state, name).partitions:
            place = {"topic": name, "partition": str(partition.partition)}
            named = {"cluster_name": cluster, **place}
            add(ends, place, partition.end)
            add(starts, place, partition.start)
            add(files, place, partition.segments)
            add(latest, named, partition.end)
            add(earliest, named, partition.start)
    yield from (counts, ends, starts, latest, earliest, files)


def _files(snapshot: LakeSnapshot, defaults: LakeConfig) -> Iterator[Metric]:
    files = GaugeMetricFamily("tidelog_topic_files", "A topic's live files.")
    small = GaugeMetricFamily("tidelog_topic_small_files", "Of them, those below a sixteenth of segment.bytes.")
    size = GaugeMetricFamily("tidelog_topic_bytes", "Bytes of a topic's live files.")
    entries = CounterMetricFamily("tidelog_topic_entries", "A topic's log entries.")
    records = CounterMetricFamily("tidelog_topic_records", "Offsets that a topic gave out.")
    for name, state in snapshot.topics.items():
        live = live_files(state, defaults)
        topic = {"topic": name}
        add(files, topic, live.number)
        add(small, topic, live.small)
        add(size, topic, live.bytes)
        add(entries, topic, state.version + 1)
        add(records, topic, sum(state.ends.values()))
    yield from (files, small, size, entries, records)


def _upkeep(snapshot: LakeSnapshot) -> Iterator[Metric]:
    checkpoint = GaugeMetricFamily(
        "tidelog_topic_checkpoint_age_seconds", "Since a topic's newest checkpoint was written."
    )
    holds = GaugeMetricFamily("tidelog_topic_holds", "Jobs that hold versions of a topic's log.")
    held = GaugeMetricFamily(
        "tidelog_topic_held_entries", "Entries from the oldest held version to the newest; 0 without one."
    )
    for name, one in snapshot.upkeep.items():
        topic = {"topic": name}
        if one.checkpoint_ms is not None:
            add(checkpoint, topic, max(0, snapshot.at_ms - one.checkpoint_ms) / 1000)
        add(holds, topic, one.holds)
        version = snapshot.topics[name].version
        add(held, topic, max(0, version - (version if one.oldest_held is None else one.oldest_held)))
    yield from (checkpoint, holds, held)
