"""Upkeep of transactions: what dead producers left is finished, unneeded ids are dropped, purges are noted."""

import pyarrow as pa
import pytest
from support.logs import open_lake, put_checkpoint, values
from support.transactions import Process, SharedLake, copy, dies_before, stage

from tidelog.groups.store.adapters import GroupsAndTransactions, LoggedOffsets
from tidelog.log.base.errors import CorruptLogError, SegmentTooOldError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import TopicState
from tidelog.retention.maintenance import maintain
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.model import IntentPart, marker, marker_version
from tidelog.transactions.roll_forward import roll_forward
from tidelog.transactions.upkeep import TransactionUpkeep

DAY_S = 86_400


def upkeep(process: Process) -> TransactionUpkeep:
    return TransactionUpkeep(process.lake, LoggedOffsets(process.groups))


def left_undone(shared: SharedLake, text: str = "1") -> TransactionManager:
    """A producer that died with its intent decided and nothing rolled forward."""
    producer = shared.process().ready()
    producer.begin()
    stage(producer, "a", text)
    stage(producer, "b", text)
    dies_before(shared, "a", producer)
    return producer


def test_upkeep_finishes_what_a_dead_producer_has_committed() -> None:
    shared = SharedLake()
    left_undone(shared)
    assert shared.seen() == [[], []]
    assert upkeep(shared.process()).run().completed == ("x",)
    assert shared.seen() == [["1"], ["1"]]
    assert upkeep(shared.process()).run().completed == ()


def test_a_purge_is_told_what_to_leave_after_it_was_rolled_forward() -> None:
    shared = SharedLake()
    left_undone(shared)
    producer = shared.process().producer("other")
    producer.init()
    producer.begin()
    stage(producer, "a", "late")
    version = shared.first.lake.topic("a").state().version
    assert upkeep(shared.process()).needed_files("a", version + 1) == set()
    assert shared.seen() == [["1"], ["1"]]
    producer.commit()  # its segment was older, and was written again
    assert shared.seen("a") == [["1", "late"]]
    held = list(shared.process().lake.topic("a").state().live(0))
    assert len({s.path for s in held}) == 2


def test_a_purge_learns_of_files_that_could_not_be_rolled_forward() -> None:
    shared = SharedLake()
    left_undone(shared)
    process = shared.process()
    log = process.log
    path = log.incomplete()[0].intent.parts[0].segments[0].path  # type: ignore[union-attr]
    process.lake.delete_topic("b")
    assert upkeep(process).needed_files("b", 99) == ()
    assert upkeep(process).needed_files(layout.OFFSETS_TABLE, 99) == ()
    assert path not in upkeep(process).needed_files("a", 99)
    assert shared.seen("a") == [["1"]]


def test_segments_below_the_floor_are_refused_by_the_log_itself() -> None:
    shared = SharedLake()
    process = shared.process()
    one = process.log.init("y", 60_000)
    topic = process.lake.topic("a")
    process.log.publish_floor("a", topic.id, 5)
    producer = process.ready()
    producer.begin()
    stage(producer, "a", "1")
    parts = producer._staged.parts()
    with pytest.raises(SegmentTooOldError):
        process.log.intent(one.key(1), [IntentPart("a", topic.id, parts[0].segments)], [])
    process.lake.delete_topic("a")
    upkeep(process).run()
    assert process.log._log.look(lambda fold: dict(fold.floors)) == {}


def test_ids_are_forgotten_and_their_markers_expire_without_a_repeat_ever_landing() -> None:
    """A frozen helper rolls forward after all trace of the marker is gone: the floor still says that it is there."""
    shared = SharedLake(transactional_id_expiration_ms="1000", log_checkpoint_interval="10", log_min_age_ms="10000")
    producer = left_undone(shared)
    one = shared.process().log.get("x")
    assert one is not None
    assert one.intent is not None
    upkeep(shared.process()).run()
    assert producer.phase.value == "committing"
    assert marked(shared, "a") == Txn(marker("x"), marker_version(0, 1), shared.clock.now_ms())
    shared.clock.pass_s(2)
    report = upkeep(shared.process()).run()
    assert (report.expired, report.retired) == (("x",), 0)  # retired by the run before
    shared.clock.pass_s(30 * DAY_S)
    lake, seen = open_lake(shared.storage, shared.clock), Txn("tidelog/producer/1/0", 0, shared.clock.now_ms())
    for topic in ("a", "b"):
        assert marked(shared, topic) is not None  # time goes on by the ids that come, and none has
        lake.commit(topic, lambda _: Outcome((seen,), None))
        version = lake.topic(topic).state().version
        put_checkpoint(shared.storage, topic, version, shared.clock.now_ms())
        assert marked(shared, topic) is None
    late = shared.process()
    assert roll_forward(late.lake, LoggedOffsets(late.groups), one.key_of(one.intent), one.intent) == {
        "a": {},
        "b": {},
    }
    assert shared.seen() == [["1"], ["1"]]


def marked(shared: SharedLake, topic: str) -> Txn | None:
    return shared.process().lake.topic(topic).state().txns.get(marker("x"))


def test_the_marker_of_what_is_not_done_elsewhere_stays() -> None:
    shared = SharedLake()
    copy(shared.process().ready(), "0")
    producer = left_undone(shared)
    process = shared.process()
    done = process.log.completed()
    assert done.up_to("x") == marker_version(1, 1) - 1
    assert process.log.get("x") is not None
    helper = upkeep(process)
    assert helper._retire_markers() == 2
    found = marked(shared, "a")
    assert found is not None
    assert found.last_updated_ms is not None
    assert producer.phase.value == "committing"

    def nothing(state: TopicState) -> Outcome[None]:
        return Outcome((), None)

    assert shared.process().lake.commit("a", nothing).written is False


# --- what a topic became meanwhile --------------------------------------------------------------------------


def test_records_get_the_time_at_which_they_are_appended_when_another_append_came_before() -> None:
    """LogAppendTime never falls: what is rolled forward behind a later append is written again."""
    shared = SharedLake()
    shared.first.lake.alter_topic("a", config={"message.timestamp.type": "LogAppendTime"})
    producer = shared.process().ready()
    producer.begin()
    stage(producer, "a", "staged first")
    producer._staged.parts()
    shared.clock.pass_s(5)
    shared.process().lake.topic("a").append(values("appended first"))
    producer.commit()
    times = [
        t
        for batch in shared.process().lake.topic("a").read(0)
        for t in batch.column("timestamp").cast(pa.int64()).to_pylist()
    ]
    assert times == sorted(times)
    assert shared.seen("a") == [["appended first", "staged first"]]


def test_a_topic_that_went_between_the_decision_and_its_turn_counts_as_done() -> None:
    shared = SharedLake()
    left_undone(shared)
    lake = shared.process().lake
    lake.delete_topic("a")
    lake.create_topic("a", 1)
    assert upkeep(shared.process()).run().completed == ("x",)
    assert shared.seen() == [[], ["1"]]


def test_a_topic_that_cannot_be_opened_holds_up_its_own_transactions_alone() -> None:
    shared = SharedLake()
    left_undone(shared)
    copy(shared.process().ready("other"), "2", 3)
    version = shared.first.lake.topic("b").state().version
    shared.storage.put_if_absent(f"b/{layout.entry_path(version + 1)}", b"{")
    process = shared.process()
    with pytest.raises(CorruptLogError):
        upkeep(process).run()
    both = GroupsAndTransactions(process.groups, upkeep(process))
    late_ms = shared.clock.now_ms() + 30 * DAY_S * 1000
    report = maintain(process.lake, only=["offsets"], groups=both, now_ms=late_ms)
    assert [(topic, one.part) for topic, one in report.failures()] == [("__consumer_offsets", "offsets")]
    assert report.offsets is not None
    assert [purged.topic for purged in report.offsets.purged] == [layout.OFFSETS_TABLE, layout.TRANSACTIONS_TABLE]
    assert shared.process().offsets() == {}
    assert [one.transactional_id for one in process.log.incomplete()] == ["x"]
    assert shared.seen("a") == [["2", "1"]]


def test_what_cannot_be_opened_and_has_no_transaction_holds_up_none() -> None:
    shared = SharedLake()
    left_undone(shared)
    shared.first.lake.create_topic("bad", 1)
    shared.storage.put_if_absent(f"bad/{layout.entry_path(1)}", b"{")
    assert upkeep(shared.process()).run().completed == ("x",)
    assert shared.seen() == [["1"], ["1"]]


def test_maintenance_looks_after_transactions_with_the_groups() -> None:
    shared = SharedLake(transactional_id_expiration_ms="1000")
    process = shared.process()
    both = GroupsAndTransactions(process.groups, upkeep(process))
    assert both.tables() == []
    copy(process.ready("idle"), "0", 1)
    left_undone(shared)
    shared.clock.pass_s(2)
    names = [layout.OFFSETS_TABLE, layout.TRANSACTIONS_TABLE]
    assert [table.name for table in both.tables()] == names
    assert both.expire_offsets(shared.clock.now_ms(), dry_run=True) == {}
    assert shared.seen("a") == [["0"]]
    report = maintain(process.lake, groups=both, needed=upkeep(process).needed_files)
    assert not report.failed
    assert shared.seen("a") == [["0", "1"]]
    assert [one.transactional_id for one in process.log.all()] == ["x"]
