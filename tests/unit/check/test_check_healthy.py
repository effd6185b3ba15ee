"""A lake that nothing is wrong with is green, whatever happened to it; a check changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from support.corruptible_lakes import CorruptibleLake, objects
from support.logs import FakeClock, memory_lake, values

from tidelog.check.lake import Progress, Severity, check_lake
from tidelog.log.base.errors import LakeNotFoundError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.storage import LocalStorage, MemoryStorage


def deleted(corruptible: CorruptibleLake) -> CorruptibleLake:
    corruptible.lake.delete_topic("orders")
    return corruptible


def again(corruptible: CorruptibleLake) -> CorruptibleLake:
    deleted(corruptible).lake.create_topic("orders", 1)
    corruptible.lake.topic("orders").append(values("x"))
    return corruptible


def altered(corruptible: CorruptibleLake) -> CorruptibleLake:
    corruptible.lake.alter_topic("orders", partitions=3, config={"cleanup.policy": "compact"})
    return corruptible.append()


def some_deleted(corruptible: CorruptibleLake, before: int) -> CorruptibleLake:
    corruptible.lake.delete_records("orders", {0: before})
    return corruptible


SHAPES: dict[str, Callable[[], CorruptibleLake]] = {
    "created": lambda: CorruptibleLake(0),
    "appended": CorruptibleLake,
    "checkpointed": lambda: CorruptibleLake(5).checkpoint(2).checkpoint(4),
    "trimmed": lambda: CorruptibleLake(6).checkpoint(2).checkpoint(4).trim(),
    "trimmed to a checkpoint at the head": lambda: CorruptibleLake(3).checkpoint(3).trim(),
    "records deleted, inside a segment": lambda: some_deleted(CorruptibleLake(), 3),
    "records deleted, all of a partition": lambda: some_deleted(CorruptibleLake(), -1).append(),
    "deleted": lambda: deleted(CorruptibleLake()),
    "deleted, then a checkpoint": lambda: deleted(CorruptibleLake()).checkpoint(4),
    "created again": lambda: again(CorruptibleLake()),
    "created again, with checkpoints on both sides": lambda: again(CorruptibleLake().checkpoint(2)).checkpoint(6),
    "altered": lambda: altered(CorruptibleLake()),
    "LogAppendTime": lambda: CorruptibleLake(message_timestamp_type="LogAppendTime"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("deep", [False, True])
def test_a_healthy_lake_is_green(shape: str, deep: bool) -> None:
    corruptible = SHAPES[shape]()
    before = objects(corruptible.storage.inner)
    report = corruptible.check(deep)
    assert [f for f in report.findings if f.severity is not Severity.INFO] == []
    assert report.green
    assert objects(corruptible.storage.inner) == before


def test_the_summary_counts_what_was_looked_at() -> None:
    corruptible = CorruptibleLake(5).checkpoint(3)
    (summary,) = corruptible.check(deep=True).topics
    size = sum(s.size for s in corruptible.reopened().topic("orders").state().all_segments())
    assert (summary.topic, summary.version, summary.entries, summary.checkpoint) == ("orders", 5, 6, 3)
    assert (summary.partitions, summary.segments, summary.records, summary.bytes) == (2, 10, 20, size)


def test_a_deep_check_says_how_far_it_is() -> None:
    seen: list[Progress] = []
    corruptible = CorruptibleLake(2)
    corruptible.check(deep=True, progress=seen.append)
    assert [(p.topic, p.segments, p.of_segments) for p in seen] == [("orders", n, 4) for n in (1, 2, 3, 4)]
    assert seen[-1].bytes == seen[-1].of_bytes == corruptible.check().topics[0].bytes


def test_only_the_topics_asked_for_are_checked() -> None:
    corruptible = CorruptibleLake()
    corruptible.lake.create_topic("other")
    assert [t.topic for t in corruptible.check().topics] == ["orders", "other"]
    assert [t.topic for t in corruptible.check(topics=["other"]).topics] == ["other"]
    with pytest.raises(UnknownTopicError, match="Topic 'nothing' does not exist"):
        corruptible.check(topics=["nothing"])


def test_where_there_is_no_lake() -> None:
    with pytest.raises(LakeNotFoundError, match="There is no lake at memory://nothing"):
        check_lake(MemoryStorage("nothing"))


def test_a_lake_and_its_store_give_the_same_report() -> None:
    corruptible = CorruptibleLake()
    assert check_lake(corruptible.lake) == corruptible.check()


def test_folders_that_hold_no_table_are_left_alone() -> None:
    corruptible = CorruptibleLake()
    corruptible.storage.put("notes/readme.txt", b"mine")
    assert corruptible.check().green
    assert [t.topic for t in corruptible.check().topics] == ["orders"]


# --- while others work -----------------------------------------------------------------------------------------


def test_appends_during_a_check_are_no_corruption() -> None:
    corruptible = CorruptibleLake()

    def append_at_each_look(method: str, path: str, phase: str) -> None:
        if (method, phase) in (("list_after", "after"), ("list_folders", "after")):
            corruptible.storage.hook = lambda *call: None
            corruptible.append()
            corruptible.storage.hook = append_at_each_look

    corruptible.storage.hook = append_at_each_look
    assert corruptible.check(deep=True).green


@pytest.mark.parametrize("named", [False, True])
def test_a_checkpoint_that_appears_during_a_check_is_no_corruption(named: bool) -> None:
    corruptible = CorruptibleLake(6)

    def write(method: str, path: str, phase: str) -> None:
        if (method, path, phase) == ("get", "orders/_delta_log/00000000000000000007.json", "before"):
            corruptible.storage.hook = lambda *call: None
            corruptible.checkpoint(4)
            if not named:
                corruptible.delete("_delta_log/_last_checkpoint")

    corruptible.storage.hook = write
    assert corruptible.check().green
    assert corruptible.check().green


def test_a_trim_during_a_check_is_no_corruption() -> None:
    corruptible = CorruptibleLake(6).checkpoint(3).checkpoint(5)
    calls = []

    def trim_once(method: str, path: str, phase: str) -> None:
        if (method, path, phase) == ("list_after", "orders/_delta_log", "after"):
            calls.append(path)
            if len(calls) == 1:
                corruptible.storage.hook = lambda *call: None
                corruptible.trim()
                corruptible.storage.hook = trim_once

    corruptible.storage.hook = trim_once
    report = corruptible.check()
    assert report.green
    assert report.topics[0].entries == 1  # entry 6 after checkpoint 5: the log was read again


def test_records_deleted_and_purged_during_a_check_are_no_corruption() -> None:
    corruptible = CorruptibleLake()
    path = f"orders/{corruptible.segment().path}"

    def purge(method: str, at: str, phase: str) -> None:
        if (method, at, phase) == ("get", "orders/_delta_log/00000000000000000004.json", "before"):
            corruptible.storage.hook = lambda *call: None
            corruptible.lake.delete_records("orders", {0: 2})
            corruptible.storage.delete(path)

    corruptible.storage.hook = purge
    assert corruptible.check(deep=True).green


# --- on a disk, with deltalake ---------------------------------------------------------------------------------


def disk_lake(folder: Path) -> Lake:
    lake = Lake(str(folder / "lake"))
    lake.create_topic("orders", 2)
    for i in range(4):
        lake.topic("orders").append(
            pa.table({"value": [f"v{i}"] * 4, "key": ["k", "l", "m", "n"], "partition": [0, 0, 1, 1]})
        )
    return lake


def test_checkpoints_of_deltalake_agree_with_the_log(tmp_path: Path) -> None:
    lake = disk_lake(tmp_path)
    DeltaTable(str(tmp_path / "lake" / "orders"), version=2).create_checkpoint()
    lake.topic("orders").append(values("x"))
    DeltaTable(str(tmp_path / "lake" / "orders")).create_checkpoint()
    report = check_lake(lake, deep=True)
    assert report.findings == ()
    assert report.topics[0].checkpoint == 5


def test_files_of_a_writer_at_work_are_no_corruption(tmp_path: Path) -> None:
    lake = disk_lake(tmp_path)
    log = tmp_path / "lake" / "orders" / "_delta_log"
    (log / ".0b5e-77-1.tmp").write_bytes(b"half")
    (log / "00000000000000000009.checkpoint.parquet#1").write_bytes(b"half")
    assert check_lake(lake).findings == ()


def test_a_relative_path_and_a_file_address_are_one_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_lake(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert check_lake(LocalStorage("lake")).green


def test_an_idle_lake_does_not_grow_old() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    lake.topic("t").append(values("x"))
    assert check_lake(storage, clock=FakeClock(10**13)).findings == ()
