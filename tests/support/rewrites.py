"""What maintenance does to a topic: the merge of a partition's segments into one; and all that takes records away."""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
from support.logs import FakeClock, put_checkpoint, values

from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Remove, Txn
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import stats_json, write_small_segment
from tidelog.log.state.topic_state import TopicState
from tidelog.log.upkeep.trim import trim
from tidelog.retention import decide_expiry, plan_expiry
from tidelog.retention.compaction.run import LocalCompactor, compact
from tidelog.retention.key_erasure import erase_keys
from tidelog.retention.lost_segments import give_up

MIN_AGE_MS: Final = 10_000


def age(lake: Lake, clock: FakeClock, topic: str = "t") -> None:
    """Trim all of a log's entries so far."""
    put_checkpoint(lake.storage, topic, lake.topic(topic).state().version)
    for _ in range(11):
        clock.pass_s(MIN_AGE_MS / 1000)
        lake.commit(topic, lambda state: Outcome((Txn("ages", state.version),), None))
    trim(lake.storage, topic, MIN_AGE_MS)


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


# --- what takes records away ---------------------------------------------------------------------------------

SEGMENTS, KEYS = 6, 5


def fill_rounds(lake: Lake, topic: str = "t") -> None:
    """A topic of one partition with segments of a record for each of some keys; the i-th record has value "i"."""
    lake.create_topic(topic, 1, {"cleanup.policy": "delete", "retention.ms": "-1"})
    for begin in range(0, SEGMENTS * KEYS, KEYS):
        keys = pa.array([b"k%d" % at for at in range(KEYS)], pa.binary())
        lake.topic(topic).append(values(*(str(begin + at) for at in range(KEYS)), key=keys))


def append_new(lake: Lake, topic: str = "t") -> None:
    """One record more, of a key of its own and with value "new"."""
    lake.topic(topic).append(values("new", key=pa.array([b"new"], pa.binary())))


def _forget(lake: Lake, topic: str) -> None:
    erase_keys(lake, topic, [b"k3"])


def _compact(lake: Lake, topic: str) -> None:
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    lake.alter_topic(topic, config=config)
    report = compact(lake, topic, now_ms=lake.clock.now_ms() + 1, compactor=LocalCompactor(lake.storage, lake.ids))
    assert report.landed


def _delete_records(lake: Lake, topic: str) -> None:
    lake.delete_records(topic, {0: 2 * KEYS + 2})  # within a segment, which stays


def _expire(lake: Lake, topic: str) -> None:
    sizes = [segment.size for segment in lake.topic(topic).state().live(0)]
    lake.alter_topic(topic, config={"retention.bytes": str(sum(sizes[3:]))})
    handle = lake.topic(topic)
    plan = plan_expiry(handle.state(), handle.config(), 0)
    assert plan.starts == {0: 3 * KEYS}
    now_ms = lake.clock.now_ms()
    lake.log(topic).door.commit(lambda state: decide_expiry(state, topic, plan, now_ms=now_ms))


def _repair(lake: Lake, topic: str) -> None:
    lost = lake.topic(topic).state().live(0)[2]
    lake.storage.delete(f"{topic}/{lost.path}")
    assert give_up(lake, topic, [lost.path], execute=True)


# {kind: a rewrite of a topic that `fill_rounds` filled}
TAKE_RECORDS_AWAY: Final[Mapping[str, Callable[[Lake, str], None]]] = {
    "forget": _forget,
    "compaction": _compact,
    "delete-records": _delete_records,
    "retention": _expire,
    "repair": _repair,
}
