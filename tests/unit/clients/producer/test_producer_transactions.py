"""The producer's transactions as confluent-kafka has them: what is seen, what is refused, with which error."""

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from support.consumers import at, consumer, raised
from support.logs import read, values
from support.producers import Delivered, live_lake, producer

from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import ConsumerGroupMetadata
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StorageFullError
from tidelog.log.lake import Lake


def lake_with(*topics: str) -> tuple[Lake, Any]:
    lake, storage = live_lake()
    for topic in topics or ("a", "b"):
        lake.create_topic(topic, 1)
    return lake, storage


def ready(lake: Lake, **conf: Any) -> Producer:
    p = producer(lake, transactional_id="x", **conf)
    p.init_transactions()
    return p


def test_what_is_produced_in_a_transaction_is_seen_when_it_is_committed() -> None:
    lake, _ = lake_with()
    told = Delivered()
    with ready(lake, on_delivery=told) as p:
        p.begin_transaction()
        for i in range(5):
            p.produce("a", str(i))
        done = p.produce_table("b", values("x", "y"))
        p.flush()
        assert done.result(10) == {}
        assert (read(lake, "a"), read(lake, "b")) == ([], [])
        p.commit_transaction()
        assert (read(lake, "a"), read(lake, "b")) == (list("01234"), ["x", "y"])
        assert told.codes == [None] * 5
        p.begin_transaction()
        p.produce("a", "5")
        p.commit_transaction()
    assert read(lake, "a") == list("012345")


def test_nothing_is_seen_of_what_is_aborted_or_left_open() -> None:
    lake, storage = lake_with()
    with ready(lake) as p:
        p.begin_transaction()
        p.produce("a", "aborted")
        p.flush()
        p.produce("a", "never staged", callback=(told := Delivered()))
        p.abort_transaction()
        assert len(told.all) == 1
        p.begin_transaction()
        p.produce("a", "1")
        p.commit_transaction()
        p.begin_transaction()
        p.produce("b", "left open")
    assert (read(lake, "a"), read(lake, "b")) == (["1"], [])
    assert not list(storage.list_after("b/partition=0"))


def test_a_copier_commits_what_it_read_with_what_it_wrote() -> None:
    lake, _ = lake_with("in", "out")
    lake.topic("in").append(values(*"0123456789"))
    with consumer(lake, enable_auto_commit="false") as c, ready(lake) as p:
        c.subscribe(["in"])
        copied = 0
        while copied < 10:
            records = c.consume(4, 5)
            p.begin_transaction()
            for record in records:
                p.produce("out", record.value())
            p.send_offsets_to_transaction(c.position(c.assignment()), c.consumer_group_metadata())
            if copied == 0:
                p.abort_transaction()
                c.seek(at(0, topic="in"))
                copied = -1
                continue
            p.commit_transaction()
            copied = max(copied, 0) + len(records)
        assert [one.offset for one in c.committed([at(topic="in")])] == [10]
    assert read(lake, "out") == list("0123456789")


def test_a_member_that_lost_its_partitions_can_only_abort() -> None:
    lake, _ = lake_with()
    lake.topic("a").append(values("1"))
    with ready(lake) as p:
        p.begin_transaction()
        gone = ConsumerGroupMetadata("g", 3, "gone")
        error = raised(lambda: p.send_offsets_to_transaction([at(1, topic="a")], gone))
        assert (error.code(), error.txn_requires_abort()) == (KafkaError.ILLEGAL_GENERATION, True)
        error = raised(p.commit_transaction)
        assert (error.code(), error.txn_requires_abort()) == (KafkaError.ILLEGAL_GENERATION, True)
        p.abort_transaction()
    assert GroupLog(lake).offsets("g") == {}


def test_a_consumer_waits_for_the_transaction_that_holds_its_offset() -> None:
    lake, _ = lake_with()
    lake.topic("a").append(values("0", "1", "2"))
    with ready(lake) as p, consumer(lake) as c:
        p.begin_transaction()
        p.send_offsets_to_transaction([at(2, topic="a"), at(-1001, 5, "a")], ConsumerGroupMetadata("g"))
        assert raised(lambda: c.committed([at(topic="a")], timeout=0)) == KafkaError.UNSTABLE_OFFSET_COMMIT
        c.assign([at(topic="a")])
        assert c.poll(0.3) is None
        p.commit_transaction()
        found = c.poll(10)
        assert found is not None
        assert (found.error(), found.offset()) == (None, 2)


# --- refusals ----------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Producer], object]] = {
    "produce": lambda p: p.produce("a", "x"),
    "produce_table": lambda p: p.produce_table("a", pa.table({"value": [b"x"]})),
    "begin": Producer.begin_transaction,
    "commit": Producer.commit_transaction,
    "abort": Producer.abort_transaction,
    "offsets": lambda p: p.send_offsets_to_transaction([at(1, topic="a")], ConsumerGroupMetadata("g")),
}


@pytest.mark.parametrize("call", CALLS)
def test_nothing_goes_before_init_transactions(call: str) -> None:
    lake, _ = lake_with()
    with producer(lake, transactional_id="x") as p:
        assert raised(lambda: CALLS[call](p)) == KafkaError._STATE
    assert read(lake, "a") == []


@pytest.mark.parametrize("call", [name for name in CALLS if name != "begin"])
def test_and_nothing_but_begin_outside_of_a_transaction(call: str) -> None:
    lake, _ = lake_with()
    with ready(lake) as p:
        p.begin_transaction()
        p.produce("a", "1")
        p.commit_transaction()
        assert raised(lambda: CALLS[call](p)) == KafkaError._STATE
    assert read(lake, "a") == ["1"]


def test_init_transactions_is_called_once() -> None:
    """As by librdkafka. A second call would begin a new epoch, and fence what the first one began."""
    lake, _ = lake_with()
    with ready(lake) as p:
        assert raised(p.init_transactions) == KafkaError._STATE
        p.begin_transaction()
        assert raised(p.init_transactions) == KafkaError._STATE
        p.produce("a", "1")
        p.commit_transaction()
        assert raised(p.init_transactions) == KafkaError._STATE
        assert not raised(p.init_transactions).fatal()
    assert read(lake, "a") == ["1"]


def test_a_producer_that_was_replaced_is_fenced_for_good() -> None:
    lake, _ = lake_with()
    with ready(lake) as old:
        old.begin_transaction()
        old.produce("a", "old")
        with ready(lake) as new:
            error = raised(old.commit_transaction)
            assert (error.code(), error.fatal()) == (KafkaError._FENCED, True)
            assert raised(old.begin_transaction).fatal()
            error = raised(lambda: old.produce("a", "old"))
            assert (error.code(), error.fatal()) == (KafkaError._FATAL, True)
            new.begin_transaction()
            new.produce("a", "new")
            new.commit_transaction()
    assert read(lake, "a") == ["new"]


REFUSED = {
    "too large": KafkaError.MSG_SIZE_TOO_LARGE,
    "no such partition": KafkaError._UNKNOWN_PARTITION,
    "no such topic": KafkaError.UNKNOWN_TOPIC_OR_PART,
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_record_that_is_not_taken_spoils_its_transaction(what: str) -> None:
    lake, _ = lake_with()
    lake.alter_topic("a", config={"max.message.bytes": "100"})
    with ready(lake, allow_auto_create_topics=False) as p:
        p.begin_transaction()
        p.produce("a", "fine")
        topic = "missing" if what == "no such topic" else "a"
        partition = 7 if what == "no such partition" else -1
        told = Delivered()
        p.produce(topic, b"x" * (200 if what == "too large" else 1), partition=partition, callback=told)
        error = raised(p.commit_transaction)
        assert (error.code(), error.txn_requires_abort()) == (REFUSED[what], True)
        assert told.codes == [REFUSED[what]]
        p.abort_transaction()
        p.begin_transaction()
        p.produce("a", "again")
        p.commit_transaction()
    assert read(lake, "a") == ["again"]


def test_a_commit_that_the_store_refuses_can_be_aborted_and_one_that_is_decided_repeated() -> None:
    lake, storage = lake_with()
    with ready(lake) as p:
        for table, done in (("__transaction_state", False), ("a/_delta_log", True)):
            p.begin_transaction()
            p.produce("a", table)
            p.flush()

            def full(method: str, path: str, phase: str, table: str = table) -> None:
                if method in ("put", "put_if_absent") and path.startswith(table):
                    raise StorageFullError("no space")

            storage.hook = full
            error = raised(p.commit_transaction)
            storage.hook = lambda *call: None
            assert (error.txn_requires_abort(), error.retriable()) == (not done, done)
            if done:
                assert raised(p.abort_transaction) == KafkaError._STATE
                p.commit_transaction()
            else:
                p.abort_transaction()
    assert read(lake, "a") == ["a/_delta_log"]


def test_an_abort_that_the_store_refuses_is_repeated() -> None:
    lake, storage = lake_with()
    with ready(lake) as p:
        p.begin_transaction()
        p.produce("a", "1")
        p.send_offsets_to_transaction([at(0, topic="a")], ConsumerGroupMetadata("g"))

        def full(method: str, path: str, phase: str) -> None:
            if method == "put":
                raise StorageFullError("no space")

        storage.hook = full
        error = raised(p.abort_transaction)
        storage.hook = lambda *call: None
        assert (error.retriable(), error.txn_requires_abort()) == (True, False)
        p.abort_transaction()
        p.begin_transaction()
        p.produce("a", "2")
        p.commit_transaction()
    assert read(lake, "a") == ["2"]


def test_a_record_on_its_way_when_the_time_is_up_gets_into_no_later_transaction() -> None:
    lake, storage = lake_with()
    arrived, go_on = threading.Event(), threading.Event()

    def slow(method: str, path: str, phase: str) -> None:
        if path.startswith("a/_delta_log") and threading.current_thread().name.startswith("tidelog-produce"):
            arrived.set()
            assert go_on.wait(20)

    with ready(lake, linger_ms=0) as p:
        for end in (p.abort_transaction, p.commit_transaction):
            p.begin_transaction()
            go_on.clear()
            storage.hook = slow
            p.produce("a", "given up")
            assert arrived.wait(20)
            arrived.clear()
            error = raised(lambda end=end: end(0))
            assert (error.code(), error.retriable()) == (KafkaError._TIMED_OUT, True)
            assert raised(p.begin_transaction) == KafkaError._STATE
            assert raised(lambda: p.produce("a", "late")) == KafkaError._STATE
            storage.hook = lambda *call: None
            go_on.set()
            p.abort_transaction()
            p.begin_transaction()
            p.produce("a", "1")
            p.commit_transaction()
    assert read(lake, "a") == ["1", "1"]


def test_offsets_of_nothing_and_of_nobody() -> None:
    lake, _ = lake_with()
    with ready(lake) as p:
        p.begin_transaction()
        p.send_offsets_to_transaction([], ConsumerGroupMetadata("g"))
        one, group_of = at(1, topic="a"), ConsumerGroupMetadata("g")
        for positions, group in (([one], None), ([one], "g"), ("a", group_of), (None, group_of)):
            with pytest.raises(TypeError):
                p.send_offsets_to_transaction(positions, group)
        p.produce("a", "1")
        p.commit_transaction()
    assert (read(lake, "a"), GroupLog(lake).groups()) == (["1"], [])


def test_a_time_out_that_the_lake_does_not_allow() -> None:
    lake, _ = lake_with()
    with producer(lake, transactional_id="x", transaction_timeout_ms=900_001) as p:
        error = raised(p.init_transactions)
        assert (error.code(), error.fatal()) == (KafkaError.INVALID_TRANSACTION_TIMEOUT, True)


def test_a_transactional_producer_must_be_idempotent() -> None:
    lake, _ = lake_with()
    for conf in ({"acks": "1"}, {"enable.idempotence": "false"}, {"retries": 0}):
        with pytest.raises(KafkaException, match="transactional"):
            Producer({"lake": lake, "transactional.id": "x", **conf})
