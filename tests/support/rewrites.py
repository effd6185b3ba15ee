"""What maintenance does to a topic, committed through its door: the merge of a partition's segments into one."""

import pyarrow as pa

from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Remove
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import stats_json, write_small_segment
from tidelog.log.state.topic_state import TopicState


def merge(lake: Lake, topic: str, partition: int = 0) -> None:
    """Rewrite all segments of a partition that nothing was deleted from or compacted in as one."""
    handle = lake.topic(topic)
    segments = handle.state().live(partition)
    base, end = segments[0].base_offset, segments[-1].end
    records = pa.Table.from_batches(handle.read(partition, include_headers=True)).rename_columns(
        {"timestampType": "timestamp_type"}
    )
    written = write_small_segment(records, Codec("zstd", 3))
    path = layout.segment_path(partition, handle.state().version, lake.ids.new())
    lake.storage.put(f"{topic}/{path}", written.data)
    stats = stats_json(written.records, written.records - 1, written.min_timestamp_ms, written.max_timestamp_ms)
    merged = Add(path, partition, base, len(written.data), segments[0].modification_ms, False, stats, end)

    now_ms = lake.clock.now_ms()

    def decide(state: TopicState) -> Outcome[None]:
        gone = [Remove(s.path, partition, s.base_offset, s.size, now_ms, False) for s in segments]
        return Outcome((*gone, merged), None, "OPTIMIZE")

    lake.log(topic).door.commit(decide)
