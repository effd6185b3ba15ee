"""A source's loop: each record once through crashes between any two calls to the store, and what else befalls it."""

import contextlib
import json
from collections import Counter

import pytest
from support.connect_plugins import CounterTask
from support.crashes import Crash, CrashAt
from support.logs import memory_lake, open_lake, quiet

from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.data.records import ConnectHeader, SourceRecord
from tidelog.connect.runtime.conversion import Conversion
from tidelog.connect.runtime.offsets import OffsetState
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.shared import WorkerShared
from tidelog.connect.runtime.source_loop import SourceLoop, newest_offsets
from tidelog.connect.runtime.source_writers import (
    PlainWriter,
    TransactionalWriter,
    creation_groups,
    ensure_source_topic,
)
from tidelog.connect.runtime.tolerance import ToleranceOperator, TolerancePolicy
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.log.base.errors import ProducerFencedError, StorageUnavailableError, UnknownTopicError
from tidelog.operations.connectors import workers_topic

CONFIG = {"key.converter": "string", "value.converter": "json", "value.converter.schemas.enable": "false"}
MOST, TOPIC, OFFSETS = 12, "t", "connect-offsets"


class Context:
    """What a worker gives the task: the stored offsets, read from the lake."""

    stopping = False

    def __init__(self, lake):
        self.topic = workers_topic(lake, OFFSETS, 1, OffsetState)
        self.offset_storage_reader = self

    def offset(self, partition):
        return self.topic.look(lambda state: state.get("c", partition))

    def wait(self, seconds):
        return False


def begun(lake, *, once=True, policy=None, config=CONFIG, task=None, **more):
    """A started task and its loop, as a worker begins it."""
    context = Context(lake)
    context.topic.ready()
    writer = (
        TransactionalWriter(lake, "connect-cluster-c-0", OFFSETS, lambda _: False)
        if once
        else PlainWriter(lake, OFFSETS)
    )
    operator = ToleranceOperator(policy or TolerancePolicy(), lambda _: False, lake.clock.elapsed_s, lambda: 0.5)
    task = task or CounterTask()
    task.start({"topic": TOPIC, "most": str(MOST), "batch": "5", "counter": "0"}, context)
    loop = SourceLoop(
        "c", task, Conversion(config, lake, operator), writer, operator, now_s=lake.clock.elapsed_s,
        prepare_topic=lambda name: ensure_source_topic(lake, name, creation_groups({})), wait=lambda _: False, **more,
    )  # fmt: skip
    return task, loop


def run(lake, **more):
    task, loop = begun(lake, **more)
    while task.at < MOST:
        loop.step()
    loop.flush()
    return task


def numbers(lake, topic=TOPIC):
    if lake.peek(topic) is None:
        return []
    batches = [one for p in lake.topic(topic).offsets() for one in lake.topic(topic).read(p)]
    return [json.loads(value) for one in batches for value in one.column("value").to_pylist()]


def crashed_at(moment, **more):
    """The lake's store after a crash at a moment, and whether there was one: the run may be over before."""
    hook = CrashAt(moment)
    lake, storage, clock = memory_lake()
    lake.create_topic(TOPIC, 2)
    storage.hook = hook
    with contextlib.suppress(Crash):
        run(lake, **more)
    storage.hook = quiet
    return storage, clock, hook.crashed


def runs_with_crashes(**more):
    """Every moment at which the loop can crash, and what is in the topic after it has gone on and ended."""
    moment, more_moments = 0, True
    while more_moments:
        storage, clock, more_moments = crashed_at(moment, **more)
        again = open_lake(storage, clock)
        run(again, **more)
        yield moment, numbers(again)
        moment += 1


def test_every_record_is_there_once_after_a_crash_between_any_two_calls_to_the_store():
    moments = 0
    for moment, found in runs_with_crashes():
        assert sorted(found) == list(range(MOST)), moment
        moments += 1
    assert moments > 40


def test_without_transactions_records_may_come_again_but_none_is_lost():
    repeated = 0
    for moment, found in runs_with_crashes(once=False):
        assert set(found) == set(range(MOST)), moment
        repeated += max(Counter(found).values()) > 1
    assert repeated


def test_an_earlier_run_of_the_task_can_commit_no_more():
    lake, storage, clock = memory_lake()
    _, zombie = begun(lake)
    zombie.step()
    task, loop = begun(open_lake(storage, clock))
    assert task.at == 5
    with pytest.raises(ProducerFencedError):
        zombie.step()
    while task.at < MOST:
        loop.step()
    assert sorted(numbers(open_lake(storage, clock))) == list(range(MOST))


def test_a_batch_that_the_store_did_not_take_is_written_again():
    lake, storage, _ = memory_lake()
    task, loop = begun(lake)
    loop.step()
    failures = iter([True, True])

    def full(method, path, phase):
        if method in ("create", "put", "put_if_absent") and phase == "before" and next(failures, False):
            raise StorageUnavailableError("no answer")

    storage.hook = full
    while task.at < MOST:
        loop.step()
    assert sorted(numbers(lake)) == list(range(MOST))
    assert next(failures, None) is None


def losing_answers(to, times):
    """A store that stores these objects, and the first times gives no answer."""
    left = [times]

    def hook(method, path, phase):
        if (method, phase) == ("put_if_absent", "after") and path.startswith(to) and left[0]:
            left[0] -= 1
            raise StorageUnavailableError("no answer")

    return hook, left


@pytest.mark.parametrize("to", [f"{TOPIC}/_delta_log", f"{OFFSETS}/_delta_log"], ids=["records", "offsets"])
def test_without_transactions_a_batch_that_has_no_answer_is_written_once(to):
    lake, storage, _ = memory_lake()
    lake.create_topic(TOPIC, 2)
    task, loop = begun(lake, once=False)
    storage.hook, left = losing_answers(to, 120)  # more than two commits try
    while task.at < MOST:
        loop.step()
    assert left == [0]
    assert sorted(numbers(lake)) == list(range(MOST))


def test_without_transactions_a_topic_that_has_its_records_gets_them_no_more_when_another_one_fails():
    lake, storage, _ = memory_lake()
    _, loop = begun(lake, once=False, task=Told([record(1, topic="a"), record(2, topic="b")]))
    failures = iter([True, True])

    def full(method, path, phase):
        if (method, phase) == ("put", "before") and path.startswith("b/part") and next(failures, False):
            raise StorageUnavailableError("no answer")

    storage.hook = full
    loop.step()
    assert next(failures, None) is None
    assert (numbers(lake, "a"), numbers(lake, "b")) == ([1], [2])


def test_the_task_learns_where_each_record_is():
    lake, _, _ = memory_lake()
    lake.create_topic(TOPIC, 3)
    task = run(lake)
    found = {}
    for partition in range(3):
        for batch in lake.topic(TOPIC).read(partition):
            found |= dict(
                zip(
                    map(json.loads, batch.column("value").to_pylist()), batch.column("offset").to_pylist(), strict=False
                )
            )
    assert dict(task.committed) == found


def test_an_interval_is_one_transaction():
    lake, _, clock = memory_lake()
    task, loop = begun(lake, interval_s=10.0)
    loop.step()
    loop.step()
    assert numbers(lake) == []
    clock.pass_s(11)
    loop.step()
    assert sorted(numbers(lake)) == list(range(MOST))
    assert len(task.committed) == MOST


class Told(CounterTask):
    """Polls what it was given."""

    def __init__(self, *polls):
        self.polls = list(polls)

    def poll(self):
        found = self.polls.pop(0) if self.polls else []
        if isinstance(found, Exception):
            raise found
        return found


def record(value, **more):
    return SourceRecord(
        **{"topic": TOPIC, "value": value, "source_partition": {"p": 1}, "source_offset": {"o": 1}, **more}
    )


def test_a_poll_that_may_succeed_later_is_made_again_and_another_error_fails_the_task():
    lake, _, _ = memory_lake()
    _, loop = begun(lake, task=Told(RetriableConnectError("later"), [record(1)], ConnectError("never")))
    loop.step()
    loop.step()
    assert numbers(lake) == [1]
    with pytest.raises(ConnectError, match="never"):
        loop.step()


def test_headers_partitions_and_timestamps_are_the_records():
    lake, _, _ = memory_lake()
    lake.create_topic(TOPIC, 3)
    _, loop = begun(lake, task=Told([record(1, partition=2, timestamp_ms=5, headers=(ConnectHeader("h", 7),))]))
    loop.step()
    (batch,) = lake.topic(TOPIC).read(2, include_headers=True)
    row = batch.to_pylist()[0]
    assert (row["headers"], row["timestamp"].timestamp()) == ([{"key": "h", "value": b"7"}], 0.005)


@pytest.mark.parametrize("tolerant", [False, True])
def test_a_record_that_has_no_form_fails_the_task_or_is_skipped_with_its_offset(tolerant):
    lake, _, _ = memory_lake()
    bad = record(object(), source_offset={"o": 2})
    task = Told([record(1), bad])
    _, loop = begun(lake, task=task, policy=TolerancePolicy(tolerates_all=tolerant))
    if not tolerant:
        with pytest.raises(
            ConnectError, match=r"Tolerance exceeded in error handler.*VALUE_CONVERTER in JsonConverter"
        ):
            loop.step()
        assert numbers(lake) == []
        return
    loop.step()
    assert numbers(lake) == [1]
    assert task.committed == [(1, 0), (bad.value, None)]
    assert Context(lake).offset({"p": 1}) == {"o": 2}


def test_the_newest_offset_of_each_source_partition_counts():
    records = [record(1, source_partition={"p": n % 2}, source_offset={"o": n}) for n in range(4)]
    assert newest_offsets("c", [*records, record(1, source_partition={}, source_offset={})]) == [
        (b'["c",{"p":0}]', b'{"o":2}'),
        (b'["c",{"p":1}]', b'{"o":3}'),
    ]
    with pytest.raises(ConnectError, match="no form in JSON"):
        newest_offsets("c", [record(1, source_offset={"o": object()})])


@pytest.mark.parametrize("once", [True, False])
def test_the_offsets_of_a_flush_are_one_file_however_many_source_partitions_it_has(once):
    lake, _, _ = memory_lake()
    offsets = WorkerShared(lake, WorkerSettings(), "w:1", Plugins(())).offsets
    offsets.ready()
    records = [record(n, source_partition={"table": n}, source_offset={"o": n}) for n in range(40)]
    _, loop = begun(lake, once=once, task=Told(records), interval_s=0.0)
    loop.step()
    loop.flush()
    assert len(list(lake.topic(OFFSETS).state().all_segments())) == 1
    assert [offsets.look(lambda state, n=n: state.get("c", {"table": n})) for n in (0, 39)] == [{"o": 0}, {"o": 39}]


def test_offsets_in_several_partitions_as_earlier_workers_made_them_are_kept():
    lake, _, _ = memory_lake()
    lake.create_topic(OFFSETS, 25, {"cleanup.policy": "compact"})
    records = [record(n, source_partition={"table": n}, source_offset={"o": n}) for n in range(40)]
    _, loop = begun(lake, task=Told(records))
    loop.step()
    shared = WorkerShared(lake, WorkerSettings(), "w:1", Plugins(()))
    assert shared.offsets.look(lambda state: state.get("c", {"table": 39})) == {"o": 39}


def test_topics_are_made_by_the_first_group_that_has_them():
    lake, _, _ = memory_lake()
    groups = creation_groups(
        {
            "topic.creation.groups": "hot",
            "topic.creation.hot.include": "h.*, x",
            "topic.creation.hot.exclude": "hx",
            "topic.creation.hot.partitions": "4",
            "topic.creation.hot.cleanup.policy": "compact",
            "topic.creation.default.partitions": "2",
            "topic.creation.default.replication.factor": "3",
        }
    )
    for topic in ("h1", "hx", "other"):
        ensure_source_topic(lake, topic, groups)
    assert [lake.peek(topic).partitions for topic in ("h1", "hx", "other")] == [4, 2, 2]
    assert lake.topic_config("h1").cleanup_policy == ("compact",)
    lake.alter_config({"auto.create.topics.enable": "false"})
    ensure_source_topic(lake, "h2", groups)
    with pytest.raises(UnknownTopicError):
        ensure_source_topic(lake, "h3", creation_groups({}))
