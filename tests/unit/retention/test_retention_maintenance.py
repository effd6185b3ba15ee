"""A maintenance run: what each part does to a topic, what is refused, and what one failure leaves alone."""

from typing import Any

import pytest
from support.logs import FakeClock, memory_lake, open_lake, read_offsets, values

from tidelog.check.lake import Severity, check_lake
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.adapters import GroupsAndTransactions, LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StoragePermissionError, StorageUnavailableError
from tidelog.log.delta.actions import decode_entry
from tidelog.log.delta.layout import entry_path
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage
from tidelog.retention.maintenance import maintain
from tidelog.retention.purge.plan import clock_problem
from tidelog.transactions.upkeep import TransactionUpkeep

DAY_MS = 86_400_000


def fed(appends: int = 6, partitions: int = 1, **config: str) -> tuple[Lake, Any, FakeClock]:
    """A lake with the topic t, to which records came one by one, a second apart."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=partitions, config={k.replace("_", "."): v for k, v in config.items()})
    feed(lake, clock, appends, partitions)
    return lake, storage, clock


def feed(lake: Lake, clock: FakeClock, appends: int, partitions: int = 1) -> None:
    for n in range(appends):
        clock.pass_s(1)
        numbers = list(range(partitions))
        lake.topic("t").append(values(*[f"v{n}"] * partitions, key=[f"k{n % 3}"] * partitions, partition=numbers))


def history(lake: Lake, topic: str = "t") -> list[tuple[str, dict[str, str]]]:
    """(operation, parameters) of the topic's entries."""
    found = []
    for version in range(lake.topic(topic).state().version + 1):
        info = decode_entry(version, lake.storage.get(f"{topic}/{entry_path(version)}"), "").info
        found.append((info.operation, dict(info.parameters)))
    return found


def segments(lake: Lake, partition: int = 0) -> list[tuple[int, int]]:
    return [(s.base_offset, s.end) for s in lake.topic("t").state().live(partition)]


def green(storage: Storage) -> bool:
    return not check_lake(storage, None, True).of(Severity.ERROR)


def messages(report: Any) -> list[tuple[str, str, int | None]]:
    return [(topic, failure.part, failure.partition) for topic, failure in report.failures()]


# --- the parts ---------------------------------------------------------------------------------------------


def test_retention_drops_what_has_expired_and_says_so() -> None:
    lake, storage, _ = fed(retention_ms="3500")
    report = maintain(lake, only=["retention"])
    assert lake.offsets("t") == {0: (2, 6)}
    assert read_offsets(lake, "t") == [(n, f"v{n}") for n in range(2, 6)]
    assert report.to_json()["topics"][0]["retention"] == {
        "starts": {"0": 2},
        "segments": 2,
        "bytes": report.topics[0].retention.bytes,
        "cut": 0,
        "lost": 0,
        "future_timestamps": {},
    }
    assert history(lake)[-1] == ("RETENTION", {"run": report.run_id, "expired": "{0: 2}"})
    assert green(storage)


def test_the_time_that_plans_see_may_be_given() -> None:
    lake, _, clock = fed()
    assert maintain(lake, only=["retention"]).topics[0].retention.segments == 0
    report = maintain(lake, only=["retention"], now_ms=clock.now_ms() + 8 * DAY_MS)
    assert report.now_ms == clock.now_ms() + 8 * DAY_MS
    assert lake.offsets("t") == {0: (6, 6)}


def test_retention_rewrites_the_segment_that_deleted_records_are_in() -> None:
    lake, storage, _ = fed(appends=0)
    lake.topic("t").append(values("a", "b", "c", "d"))
    lake.delete_records("t", {0: 3})
    report = maintain(lake, only=["retention"])
    assert report.topics[0].retention.cut == 1
    assert segments(lake) == [(3, 4)]
    assert read_offsets(lake, "t") == [(3, "d")]
    assert history(lake)[-1][0] == "RETENTION"
    assert maintain(lake, only=["retention"]).topics[0].retention.cut == 0
    assert green(storage)


def test_merging_makes_few_files_of_many_and_changes_no_record() -> None:
    lake, storage, _ = fed(partitions=2)
    before = [read_offsets(lake, "t", p) for p in (0, 1)]
    report = maintain(lake, only=["merge"])
    assert [read_offsets(lake, "t", p) for p in (0, 1)] == before
    assert [segments(lake, p) for p in (0, 1)] == [[(0, 6)], [(0, 6)]]
    told = report.to_json()["topics"][0]["merge"]
    assert (told["files"], told["units"], told["lost"]) == ({"before": 12, "after": 2}, 2, 0)
    assert told["read_amplification"] == {"before": 6.0, "after": 1.0}
    assert told["bytes"]["before"] > told["bytes"]["after"] > 0
    operation, parameters = history(lake)[-1]
    assert operation == "OPTIMIZE"
    assert parameters["run"] == report.run_id
    assert (parameters["removedFiles"], parameters["addedFiles"], parameters["keptRecords"]) == ("12", "2", "12")
    assert green(storage)


def test_a_run_that_finds_nothing_to_do_leaves_no_entry() -> None:
    lake, _, _ = fed()
    maintain(lake)
    version = lake.topic("t").state().version
    maintain(lake)
    assert lake.topic("t").state().version == version


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    lake, storage, _ = fed(retention_ms="3500")
    lake.delete_records("t", {0: 1})
    before = lake.topic("t").state().version, [o.path for o in storage.list_after("t/partition=0")]
    report = maintain(lake, dry_run=True)
    assert (lake.topic("t").state().version, [o.path for o in storage.list_after("t/partition=0")]) == before
    assert report.topics[0].retention.starts == {0: 2}
    assert (report.topics[0].merge.before.files, report.topics[0].merge.after.files) == (5, 2)
    assert report.to_json()["dry_run"] is True
    assert list(storage.list_after("t/_tidelog/holds")) == []


def test_a_dry_run_needs_no_right_to_write() -> None:
    _, storage, clock = fed(retention_ms="3500", log_min_age_ms="10000")
    clock.pass_s(120)
    asked: list[str] = []

    def deny(method: str, path: str, phase: str) -> None:
        if method in ("put", "put_if_absent", "create", "delete", "sync"):
            asked.append(f"{method} {path}")
            raise StoragePermissionError(f"{path}: permission denied")

    storage.hook = deny
    reader = open_lake(storage, clock)
    groups = GroupLog(reader)
    upkeep = TransactionUpkeep(reader, LoggedOffsets(groups))
    both = GroupsAndTransactions(groups, upkeep)
    report = maintain(reader, dry_run=True, groups=both, needed=upkeep.needed_files)
    assert report.failures() == []
    assert asked == []
    assert report.topics[0].purge is not None


def test_everything_at_once_on_a_compacted_topic() -> None:
    lake, storage, clock = fed(appends=9, cleanup_policy="compact", min_cleanable_dirty_ratio="0", segment_ms="1")
    clock.pass_s(1)
    report = maintain(lake)
    assert report.failures() == []
    assert {v for _, v in read_offsets(lake, "t")} >= {"v6", "v7", "v8"}
    assert len(read_offsets(lake, "t")) == 3
    assert {operation for operation, _ in history(lake)} >= {"COMPACT"}
    assert green(storage)


def test_files_go_a_while_after_their_segments_left() -> None:
    lake, storage, clock = fed(log_min_age_ms="10000", file_delete_delay_ms="20000", log_checkpoint_interval="10")
    old = {o.path for o in storage.list_after("t/partition=0")}
    maintain(lake)
    assert old <= {o.path for o in storage.list_after("t/partition=0")}
    clock.pass_s(120)
    feed(lake, clock, 20)
    clock.pass_s(120)
    report = maintain(lake)
    assert report.failures() == []
    left = {o.path for o in storage.list_after("t/partition=0")}
    assert not left & old
    assert len(read_offsets(lake, "t")) == 26
    assert green(storage)


def test_offsets_of_groups_expire_and_their_table_is_compacted() -> None:
    lake, storage, clock = fed()
    groups = GroupLog(lake)
    for offset in range(20):
        groups.commit_offsets("g", {("t", 0): CommittedOffset(offset % 6, commit_ms=clock.now_ms())})
    dry = maintain(lake, only=["offsets"], groups=groups, dry_run=True).offsets
    assert (dry.expired, dry.compacted) == ({}, ["__consumer_offsets"])
    report = maintain(lake, only=["offsets"], groups=groups)
    assert report.offsets.compacted == ["__consumer_offsets"]
    assert groups.offsets("g")[("t", 0)].offset == 19 % 6
    late_ms = clock.now_ms() + 8 * DAY_MS
    assert maintain(lake, only=["offsets"], groups=groups, now_ms=late_ms, dry_run=True).offsets.expired == {
        "g": [("t", 0)]
    }
    assert groups.offsets("g")
    report = maintain(lake, only=["offsets"], groups=groups, now_ms=late_ms)
    assert report.to_json()["offsets"]["expired"] == {"g": [{"topic": "t", "partition": 0}]}
    assert not groups.offsets("g")
    assert green(storage)


# --- which topics ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({}, ["orders", "orders-eu", "t"]),
        ({"topics": ["t", "t"]}, ["t"]),
        ({"pattern": "orders.*"}, ["orders", "orders-eu"]),
        ({"pattern": "order"}, []),
    ],
)
def test_which_topics_are_looked_after(chosen: dict[str, Any], names: list[str]) -> None:
    lake, _, _ = fed()
    for name in ("orders", "orders-eu", "gone"):
        lake.create_topic(name)
    lake.delete_topic("gone")
    report = maintain(lake, only=["retention", "merge"], groups=GroupLog(lake), **chosen)
    assert [topic.topic for topic in report.topics] == names
    assert report.offsets is None
    assert not report.failed


def test_a_deleted_topic_is_purged_all_the_same() -> None:
    lake, storage, clock = fed(log_min_age_ms="10000", file_delete_delay_ms="0")
    lake.delete_topic("t")
    clock.pass_s(1_000)
    report = maintain(lake, now_ms=clock.now_ms() + DAY_MS)
    assert [(topic.topic, topic.retention, topic.failures) for topic in report.topics] == [("t", None, [])]
    assert report.topics[0].purge is not None
    assert list(storage.list_after("t/partition=0")) == []


# --- bad input ---------------------------------------------------------------------------------------------


def test_a_topic_that_is_none_is_named_and_the_others_are_done() -> None:
    lake, storage, _ = fed()
    storage.put_if_absent("table/_delta_log/00000000000000000000.json", b'{"commitInfo":{"operation":"x"}}\n')
    report = maintain(lake, only=["merge"], topics=["nowhere", "table", "__consumer_offsets", "a/b", "t"])
    assert [(topic, part) for topic, part, _ in messages(report)] == [
        ("nowhere", "topic"),
        ("table", "topic"),
        ("__consumer_offsets", "topic"),
        ("a/b", "topic"),
    ]
    assert report.failed
    assert segments(lake) == [(0, 6)]


def test_a_policy_that_contradicts_itself_leaves_the_topic_alone() -> None:
    lake, storage, clock = fed(retention_ms="1", min_compaction_lag_ms="1000")
    lake.create_topic("other")
    other = open_lake(storage, clock)
    other.alter_config({"log.cleaner.max.compaction.lag.ms": "900"})
    report = maintain(lake)
    assert messages(report) == [("t", "topic", None)]
    assert "min.compaction.lag.ms (1000) > max.compaction.lag.ms (900)" in report.failures()[0][1].message
    assert len(segments(lake)) == 6


@pytest.mark.parametrize(
    ("now", "store", "newest", "said"),
    [
        (1_000, 1_000, 0, None),
        (601_000, 1_000, 0, None),
        (601_001, 1_000, 0, "600 s ahead of"),
        (0, 600_001, 0, "600 s behind"),
        (0, None, 3_600_000, None),
        (0, None, 3_600_001, "3600 s after"),
        (0, 0, 3_600_001, None),  # another's clock was wrong, not this one
    ],
)
def test_by_which_clock_nothing_is_deleted(now: int, store: int | None, newest: int, said: str | None) -> None:
    problem = clock_problem(now, store, newest)
    assert (problem is None) if said is None else (said in (problem or ""))


def test_a_clock_far_off_the_stores_deletes_nothing() -> None:
    lake, storage, clock = fed()
    wrong = open_lake(storage, FakeClock(clock.now_ms() + 30 * DAY_MS))
    report = maintain(wrong)
    assert messages(report) == [("t", "clock", None)]
    assert len(segments(lake)) == 6


@pytest.mark.parametrize("damage", ["missing", "garbage"])
def test_a_segment_that_cannot_be_read_stops_its_partition_alone(damage: str) -> None:
    lake, storage, clock = fed(partitions=3)
    bad = lake.topic("t").state().live(1)[2]
    storage.delete(f"t/{bad.path}")
    if damage == "garbage":
        storage.put(f"t/{bad.path}", b"PAR1 no")
    report = maintain(lake)
    assert messages(report) == [("t", "merge", 1)]
    assert bad.path in report.failures()[0][1].message
    assert [len(segments(lake, p)) for p in (0, 1, 2)] == [1, 6, 1]
    clock.pass_s(10_000)
    report = maintain(lake, now_ms=clock.now_ms() + DAY_MS)
    left = 5 if damage == "missing" else 6
    assert len(list(storage.list_after("t/partition=1"))) == left


def test_a_store_that_fails_for_one_topic_leaves_the_others_done() -> None:
    lake, storage, _ = fed()
    lake.create_topic("u", partitions=1)
    for n in range(3):
        lake.topic("u").append(values(f"v{n}"))

    def fail(method: str, path: str, phase: str) -> None:
        if method == "create" and path.startswith("t/partition"):
            raise StorageUnavailableError("no answer")

    storage.hook = fail
    report = maintain(lake, only=["merge"])
    assert messages(report) == [("t", "merge", 0)]
    assert len(lake.topic("u").state().live(0)) == 1
    storage.hook = lambda *_: None
    assert not maintain(lake, only=["merge"]).failed
    assert segments(lake) == [(0, 6)]


# --- others at work ----------------------------------------------------------------------------------------


def test_of_two_runs_on_one_topic_the_loser_says_so_and_leaves_nothing() -> None:
    lake, storage, clock = fed()
    other = open_lake(storage, clock)
    raced = []

    def race(method: str, path: str, phase: str) -> None:
        if method == "create" and phase == "after":
            storage.hook = lambda *_: None
            raced.append(maintain(other, only=["merge"]))

    storage.hook = race
    report = maintain(lake, only=["merge"])
    assert (report.failed, report.topics[0].merge.lost, report.topics[0].lost) == (False, 1, 1)
    assert raced[0].topics[0].merge.lost == 0
    assert report.topics[0].merge.after == report.topics[0].merge.before
    assert segments(lake) == [(0, 6)]
    assert len(list(storage.list_after("t/partition=0"))) == 7
    assert green(storage)


def test_a_topic_that_is_deleted_meanwhile_is_no_failure() -> None:
    lake, storage, clock = fed()
    other = open_lake(storage, clock)

    def delete(method: str, path: str, phase: str) -> None:
        if method == "create" and phase == "before" and other.peek("t") is not None:
            other.delete_topic("t")

    storage.hook = delete
    report = maintain(lake, only=["merge", "retention"])
    storage.hook = lambda *_: None
    assert not report.failed
    assert report.topics[0].merge.lost == 1
    assert green(storage)


def test_records_that_come_meanwhile_stay() -> None:
    lake, storage, clock = fed()
    other = open_lake(storage, clock)

    def append(method: str, path: str, phase: str) -> None:
        if method == "create" and phase == "after":
            other.topic("t").append(values("late"))

    storage.hook = append
    maintain(lake, only=["merge"])
    storage.hook = lambda *_: None
    assert read_offsets(lake, "t") == [*((n, f"v{n}") for n in range(6)), (6, "late")]
    assert segments(lake) == [(0, 6), (6, 7)]


def test_what_a_run_did_is_told_as_rows() -> None:
    lake, _, _ = fed(retention_ms="3500")
    report = maintain(lake, only=["retention", "merge"])
    retention, merge = report.rows()
    assert [(row.topic, row.part) for row in (retention, merge)] == [("t", "retention"), ("t", "merge")]
    assert retention.what.startswith("2 segments of ")
    assert "4 -> 1 files" in merge.what
    assert [retention.is_idle, merge.is_idle] == [False, False]
    assert [row.is_idle for row in maintain(lake, only=["retention", "merge"]).rows()] == [True, True]


@pytest.mark.parametrize(
    "entry", [b"", b"{", b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}\n{"commitInfo":{}}\n']
)
def test_a_topic_whose_log_is_broken_is_named_and_the_others_are_done(entry: bytes) -> None:
    lake, storage, clock = fed()
    lake.create_topic("bad")
    version = lake.topic("bad").state().version
    storage.put_if_absent(f"bad/{entry_path(version + 1)}", entry)
    report = maintain(open_lake(storage, clock), groups=GroupLog(lake))
    assert [(topic, part) for topic, part, _ in messages(report)] == [("bad", "topic")]
    assert segments(lake) == [(0, 6)]
