"""Maintenance of a whole lake: its runs, rounds of them that are counted, what is due, and keys that are erased."""

import numpy as np
import pyarrow as pa
import pytest
from support.logs import FakeClock

from tidelog.access.access_log import AccessLog
from tidelog.access.quotas import Entity, Quota
from tidelog.log.base.errors import StorageUnavailableError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.operations.maintenance import LakeMaintenance, RunCounts, erase, newest_whole_run
from tidelog.retention.report import Failure, MaintenanceReport, TopicReport
from tidelog.retention.run_history import maintenance_runs
from tidelog.transactions import manager


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def lake(clock):
    with Lake("memory://maintained", storage=MemoryStorage("memory://maintained", clock), clock=clock) as opened:
        opened.create_topic("orders", 1)
        yield opened


def append(lake, *keys):
    for key in keys:
        lake.topic("orders").append([{"key": key, "value": "1"}])


def keys_of(lake):
    return [key.as_py() for batch in lake.topic("orders").read(0) for key in batch.column("key")]


def test_the_table_of_access_is_looked_after(lake):
    log = AccessLog(lake)
    for number in range(20):
        log.alter_quotas({Entity("alice"): {Quota.PRODUCER_BYTE_RATE: 1.0 + number}})
    before = log.seen()[1]
    report = LakeMaintenance(lake).run(only=["offsets"])
    assert report.offsets is not None
    assert "__access" in report.offsets.compacted
    assert AccessLog(lake).look() == before


def test_what_is_due_is_said_and_not_done(lake):
    maintenance = LakeMaintenance(lake)
    assert maintenance.due() == []
    append(lake, *"abcd")
    (row,) = maintenance.due()
    assert (row.topic, row.part) == ("orders", "merge")
    assert maintenance.due() == [row]
    maintenance.run()
    assert maintenance.due() == []


def test_the_newest_run_of_the_whole_lake(lake):
    maintenance = LakeMaintenance(lake)
    assert newest_whole_run(maintenance_runs(lake.storage)) is None
    run_id = maintenance.run().run_id
    maintenance.run(topics=["orders"])
    runs = maintenance_runs(lake.storage)
    assert len(runs) == 2
    assert newest_whole_run(runs).run_id == run_id


def test_rounds_are_counted_by_outcome(clock):
    counts = RunCounts(clock)

    def run(*failures):
        assert counts.began_s == clock.elapsed_s()
        clock.pass_s(3)
        return MaintenanceReport("r", "memory://", 0, False, [TopicReport("orders", failures=[*failures])])

    def ends():
        raise StorageUnavailableError("The store is away.")

    assert counts.round(run) is None
    assert (counts.runs, counts.failures, counts.took_s) == ({"done": 1, "failed": 0}, 0, 3.0)
    assert (counts.began_s, counts.ended_s) == (None, clock.elapsed_s())
    assert counts.round(lambda: run(Failure("merge", "No."), Failure("purge", "No."))) is None
    assert (counts.runs, counts.failures) == ({"done": 1, "failed": 1}, 2)
    assert "away" in str(counts.round(ends))
    assert (counts.runs, counts.failures, counts.began_s) == ({"done": 1, "failed": 2}, 1, None)


def test_a_topic_that_is_not_there_is_refused_before_any_other_changes(lake):
    append(lake, "a", "b")
    with pytest.raises(UnknownTopicError):
        erase(lake, ["orders", "none"], frozenset({b"a"}))
    assert keys_of(lake) == [b"a", b"b"]


def test_topics_are_erased_from_in_one_run(lake):
    lake.create_topic("others", 1)
    append(lake, "a", "b")
    dry = erase(lake, ["orders", "others"], frozenset({b"a"}), dry_run=True)
    assert (dry.done, dry.failed, dry.waits) == (False, False, False)
    erasure = erase(lake, ["orders", "others"], frozenset({b"a"}))
    assert [(topic.topic, topic.run_id, topic.records) for topic in erasure.topics] == [
        ("orders", erasure.run_id, 1),
        ("others", erasure.run_id, 0),
    ]
    assert (erasure.done, erasure.failed, erasure.waits) == (False, False, True)
    assert keys_of(lake) == [b"b"]


def test_what_a_dead_producer_has_committed_is_erased_too(lake, monkeypatch):
    append(lake, "a", "b")

    def dies(*_):
        raise StorageUnavailableError("the power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(manager, "roll_forward", dies)
        producer = manager.TransactionManager(lake, "x")
        producer.init()
        producer.begin()
        producer.stage("orders", pa.table({"key": [b"a", b"b"], "value": [b"2", b"3"]}), np.zeros(2, np.int32))
        with pytest.raises(StorageUnavailableError):
            producer.commit()
    (erasure,) = erase(lake, ["orders"], frozenset({b"a"})).topics
    assert erasure.records == 2
    assert keys_of(lake) == [b"b", b"b"]
