"""Compaction of a topic, whole: what lands, what loses a race, what is left alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from support.logs import memory_lake

from tidelog.check.lake import Severity, check_lake
from tidelog.log.base.errors import TopicChangedError
from tidelog.log.lake import Lake
from tidelog.retention.compaction.run import CompactionReport, LocalCompactor, compact
from tidelog.retention.compaction.units import Compacted, PartitionWork

CONFIG = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}


class Interrupted(LocalCompactor):
    """Another process does something once the plan is made and the segments are staged."""

    def __init__(self, lake: Lake, meanwhile: Callable[[], object]) -> None:
        super().__init__(lake.storage, lake.ids)
        self._meanwhile = meanwhile

    def run(self, work: Sequence[PartitionWork]) -> Iterator[Compacted]:
        done = list(super().run(work))
        self._meanwhile()
        yield from done


def fed(**config: str) -> tuple[Lake, Any, Any]:
    """Two partitions with six segments each; keys k0, k1, k2 in turn."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=2, config={**CONFIG, **{k.replace("_", "."): v for k, v in config.items()}})
    for n in range(6):
        append(lake, [f"k{n % 3}"] * 2, [f"v{n}", f"w{n}"])
    clock.pass_s(1)
    return lake, storage, clock


def append(lake: Lake, keys: Sequence[str | None], values: Sequence[str | None], *partitions: int) -> None:
    columns = {"key": pa.array(keys, pa.string()), "value": pa.array(values, pa.string())}
    lake.topic("t").append(pa.table({**columns, "partition": pa.array(partitions or (0, 1), pa.int32())}))


def run(lake: Lake, meanwhile: Callable[[], object] | None = None, **more: Any) -> CompactionReport:
    compactor = LocalCompactor(lake.storage, lake.ids) if meanwhile is None else Interrupted(lake, meanwhile)
    return compact(lake, "t", now_ms=lake.clock.now_ms(), compactor=compactor, **more)


def rows(lake: Lake, partition: int) -> list[tuple[int, str]]:
    batches = list(lake.topic("t").read(partition))
    return [(r["offset"], (r["value"] or b"-").decode()) for b in batches for r in b.to_pylist()]


def files(lake: Lake) -> set[str]:
    return {info.path for p in (0, 1) for info in lake.storage.list_after(f"t/partition={p}")}


def live(lake: Lake) -> set[str]:
    return {f"t/{s.path}" for s in lake.topic("t").state().all_segments()}


def test_each_key_keeps_its_newest_record_and_its_offset() -> None:
    lake, storage, _ = fed()
    report = run(lake, run_id="run-1")
    assert [rows(lake, p) for p in (0, 1)] == [[(3, "v3"), (4, "v4"), (5, "v5")], [(3, "w3"), (4, "w4"), (5, "w5")]]
    assert lake.offsets("t") == {0: (0, 6), 1: (0, 6)}
    assert report.to_json() == {
        "topic": "t",
        "partitions": [0, 1],
        "units": 2,
        "landed": 2,
        "lost": 0,
        "records": {"before": 12, "after": 6},
        "bytes": {"before": report.bytes_in, "after": report.bytes_out},
        "files": {"before": 12, "after": 2},
        "version": 7,
        "failures": {},
    }
    assert lake.topic("t").state().cleans == {0: 6, 1: 6}
    assert not check_lake(storage, None, True).of(Severity.ERROR)
    assert run(lake).version is None, "nothing is due any more"


def test_a_dry_run_changes_nothing() -> None:
    lake, _, _ = fed()
    before = (rows(lake, 0), files(lake), lake.topic("t").state().version)
    report = run(lake, dry_run=True)
    assert (report.partitions, report.units, report.landed) == ((0, 1), 2, 0)
    assert before == (rows(lake, 0), files(lake), lake.topic("t").state().version)


def test_segments_that_lose_nothing_stay_as_they_are() -> None:
    lake, _, clock = memory_lake()
    lake.create_topic("t", partitions=2, config=CONFIG)
    for n in range(4):
        append(lake, [f"k{n}", f"k{n}"], ["v", "w"])
    clock.pass_s(1)
    before = live(lake)
    report = run(lake)
    assert (report.landed, report.version) == (0, 5)
    assert live(lake) == before
    assert lake.topic("t").state().cleans == {0: 4, 1: 4}


def test_records_without_a_key_go_when_a_topic_becomes_compacted() -> None:
    """Kafka's cleaner drops them; a compacted topic takes no new ones."""
    lake, _, clock = memory_lake()
    lake.create_topic("t", partitions=2)
    append(lake, [None, "a"], ["v0", "w0"])
    append(lake, ["b", "a"], ["v1", "w1"])
    lake.alter_topic("t", config=CONFIG)
    clock.pass_s(1)
    run(lake)
    assert [rows(lake, p) for p in (0, 1)] == [[(1, "v1")], [(1, "w1")]]


def test_of_two_at_once_one_lands_and_the_other_says_so() -> None:
    lake, storage, _ = fed()
    first: list[CompactionReport] = []
    second = run(lake, lambda: first.append(run(lake)))
    assert (first[0].landed, first[0].lost) == (2, 0)
    assert (second.landed, second.lost, second.version, second.failures) == (0, 2, None, {})
    assert rows(lake, 0) == [(3, "v3"), (4, "v4"), (5, "v5")]
    assert len(files(lake) - live(lake)) == 12, "only what was replaced waits for the purge"
    assert not check_lake(storage, None, True).of(Severity.ERROR)


def test_appends_go_on_meanwhile() -> None:
    lake, _, _ = fed()
    report = run(lake, lambda: append(lake, ["k0", "k9"], ["new", "new"]))
    assert report.landed == 2
    assert rows(lake, 0) == [(3, "v3"), (4, "v4"), (5, "v5"), (6, "new")]
    assert lake.topic("t").state().cleans == {0: 6, 1: 6}


def test_what_retention_takes_meanwhile_stays_gone() -> None:
    lake, _, _ = fed(cleanup_policy="compact,delete")
    report = run(lake, lambda: lake.delete_records("t", {0: 5}))
    assert (report.landed, report.lost) == (1, 1)
    assert rows(lake, 0) == [(5, "v5")]
    assert lake.topic("t").state().cleans == {1: 6}, "a partition of which a unit is lost is not clean"
    assert run(lake).failures == {}
    assert lake.topic("t").state().cleans == {0: 6, 1: 6}


@pytest.mark.parametrize("keys", [3, 6])
def test_a_topic_that_is_created_again_is_another_one(keys: int) -> None:
    """Nothing lands there, nor a note where there was nothing to write."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=2, config=CONFIG)
    for n in range(6):
        append(lake, [f"k{n % keys}"] * 2, [f"v{n}", f"w{n}"])
    clock.pass_s(1)

    def again() -> None:
        lake.delete_topic("t")
        lake.create_topic("t", partitions=2, config=CONFIG)
        for n in range(7):
            append(lake, ["same", "same"], [f"v{n}", f"w{n}"])

    before = files(lake)
    with pytest.raises(TopicChangedError, match="created again"):
        run(lake, again)
    assert files(lake) - live(lake) == before
    assert lake.topic("t").state().cleans == {}
    assert len(rows(lake, 0)) == 7
    assert not check_lake(storage, None, True).of(Severity.ERROR)


@pytest.mark.parametrize("column", ["key", "value"])
def test_a_segment_that_cant_be_read_stops_its_partition_alone(column: str) -> None:
    lake, _, _ = fed()
    broken = lake.topic("t").state().live(0)[2].path
    data = pa.table({"position": [0], "key": [b"k2"], "value": [b"v2"], "timestamp": [0]}).drop([column])
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(data, sink)
    lake.storage.put(f"t/{broken}", sink.getvalue().to_pybytes())
    before = files(lake)
    report = run(lake)
    assert list(report.failures) == [0]
    assert broken in report.failures[0]
    assert rows(lake, 1) == [(3, "w3"), (4, "w4"), (5, "w5")]
    assert lake.topic("t").state().cleans == {1: 6}
    assert {f for f in files(lake) - before if "partition=0" in f} == set()


def test_a_tombstone_stays_for_its_time_and_then_nothing_is_left() -> None:
    lake, storage, clock = fed(delete_retention_ms="60000")
    for n in range(3):
        append(lake, [f"k{n}", f"k{n}"], [None, None])
    clock.pass_s(1)
    run(lake)
    assert rows(lake, 0) == [(6, "-"), (7, "-"), (8, "-")]
    clock.pass_s(59)
    assert run(lake).version is None
    clock.pass_s(1)
    run(lake)
    assert rows(lake, 0) == rows(lake, 1) == []
    assert lake.offsets("t") == {0: (0, 9), 1: (0, 9)}
    append(lake, ["k0", "k0"], ["back", "back"])
    clock.pass_s(1)
    run(lake)
    assert rows(lake, 0) == [(9, "back")]
    assert not check_lake(storage, None, True).of(Severity.ERROR)
