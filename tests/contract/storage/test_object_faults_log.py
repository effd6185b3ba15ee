"""Logs on a real S3 server behind a proxy that fails: nothing is lost, nothing is there twice, offsets have no gap."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from support.consumers import at, consumer, poll_texts
from support.fault_proxy import Fault, FaultProxy, first, storm, well
from support.faulty_store import QUICK, RETRIES, FaultyStore, bad_weather, faulty_store, records, repeated
from support.logs import stage, values
from support.producers import Delivered, producer
from support.shares import commit_alone

from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.log.base.errors import OutcomeUnknownError, StorageUnavailableError
from tidelog.log.storage.proving import RACERS, RACES

PARTITIONS = 2


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    with faulty_store() as store:
        with store.well() as lake:
            lake.create_topic("t", partitions=PARTITIONS)
        yield store


def in_the_topic(store: FaultyStore, topic: str = "t") -> list[str]:
    """All values of a topic, sorted, as a reader without the proxy sees them."""
    store.proxy.plan = well
    with store.well() as lake:
        return sorted(value for found in records(lake, topic).values() for value in found)


def assert_bounded(proxy: FaultProxy, calls: int) -> None:
    """A failed request costs a repeat of itself, and a put in doubt a look at what is there."""
    assert sum(proxy.failed.values()) > 0
    assert sum(proxy.counts.values()) <= calls + 3 * sum(proxy.failed.values())


# --- appends -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [*QUICK, Fault.HUNG, Fault.HUNG_AFTER], ids=lambda fault: fault.name)
def test_an_append_whose_entry_fails_twice_is_there_once(store: FaultyStore, fault: Fault):
    with store.lake(request_timeout_ms="200") as lake:
        topic = lake.topic("t")
        topic.append(values("a", partition=[0]))
        store.proxy.forget()
        store.proxy.plan = first(fault, 2, "create", path="_delta_log")
        assert topic.append(values("b", "c", partition=[0, 0])) == {0: (1, 3)}
        # Once it is there, the second try fails with that reason.
        assert store.proxy.failed["create"] == 2
        assert topic.append(values("d", partition=[0])) == {0: (3, 4)}
    assert in_the_topic(store) == ["a", "b", "c", "d"]


def test_two_writers_in_bad_weather(store: FaultyStore):
    given = {i: [f"{i}-{n}" for n in range(12)] for i in range(2)}
    failed: list[BaseException] = []

    def write(i: int) -> None:
        try:
            with store.lake() as lake:
                for value in given[i]:
                    lake.topic("t").append(values(value, partition=[i]))
        except BaseException as error:
            failed.append(error)
            raise

    store.proxy.plan = bad_weather(7)
    writers = [threading.Thread(target=write, args=(i,)) for i in given]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert_bounded(store.proxy, 2 * RACERS * RACES + 24 * 12)  # each proves the store first
    store.proxy.plan = well
    with store.well() as lake:
        assert records(lake, "t") == given


# --- producers, consumers, transactions --------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_a_producer_in_bad_weather(store: FaultyStore, seed: int):
    told = Delivered()
    with store.lake() as lake, producer(lake, on_delivery=told) as p:
        store.proxy.plan = bad_weather(seed)
        for n in range(10):
            for i in range(20):
                p.produce("t", f"{n}-{i}", partition=i % PARTITIONS)
            assert p.flush(30) == 0
        assert_bounded(store.proxy, RACERS * RACES + 60)  # the proof of the store, then appends
        store.proxy.plan = well
    assert set(told.codes) == {None}
    with store.well() as lake:
        found = records(lake, "t")
    assert repeated(found) == []
    assert sorted(told.places) == [
        (partition, offset, value.encode()) for partition in found for offset, value in enumerate(found[partition])
    ]
    assert len(told.all) == 200


def test_a_consumer_in_bad_weather_and_its_successor(store: FaultyStore):
    expected = [str(n) for n in range(30)]
    with store.well() as lake:
        for value in expected[:20]:
            lake.topic("t").append(values(value, partition=[0]), acks=1)
    with store.lake() as lake:
        reader = consumer(lake, enable_auto_commit=False)
        reader.subscribe(["t"])
        store.proxy.plan = storm(3, 0.2, *QUICK)
        assert poll_texts(reader, 20) == expected[:20]
        committed = reader.commit(asynchronous=False)
        assert max(c.offset for c in committed) == 20
        reader.close()
        store.proxy.plan = well
    with store.lake() as lake:
        for value in expected[20:]:
            lake.topic("t").append(values(value, partition=[0]), acks=1)
        store.proxy.plan = storm(4, 0.2, *QUICK)
        reader = consumer(lake)
        reader.subscribe(["t"])
        assert poll_texts(reader, 10) == expected[20:]
        store.proxy.plan = well
        reader.close()


def test_transactions_in_bad_weather(store: FaultyStore):
    store.proxy.plan = storm(5, 0.15, *QUICK)
    ended = Counter[str]()
    with store.lake() as lake, producer(lake, transactional_id="x") as p:
        p.init_transactions()
        for n in range(6):
            p.begin_transaction()
            p.produce("t", f"{n}-0", partition=0)
            p.produce("t", f"{n}-1", partition=1)
            if n % 3 == 2:
                p.abort_transaction()
            else:
                p.commit_transaction()
            ended["aborted" if n % 3 == 2 else "committed"] += 1
        store.proxy.plan = well
    assert ended == {"committed": 4, "aborted": 2}
    assert in_the_topic(store) == [f"{n}-{partition}" for n in (0, 1, 3, 4) for partition in (0, 1)]


def test_operations_on_a_lake_in_bad_weather(store: FaultyStore):
    store.proxy.plan = bad_weather(11)
    with store.lake() as lake:
        lake.create_topic("new", partitions=1)
        lake.alter_topic("new", config={"retention.ms": "1000000"})
        lake.topic("new").append(values("a", "b", "c", partition=[0] * 3))
        assert lake.delete_records("new", {0: 2}) == {0: 2}
        assert sorted(lake.topics()) == ["new", "t"]
        assert lake.offsets("new") == {0: (2, 3)}
        lake.delete_topic("t")
    store.proxy.plan = well
    with store.well() as lake:
        assert lake.topics() == ["new"]
        assert records(lake, "new") == {0: ["c"]}
        assert lake.describe_topic("new").config["retention.ms"] == "1000000"


# --- outages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.DROPPED], ids=lambda fault: fault.name)
def test_a_producer_gives_up_in_time_and_its_successor_goes_on(store: FaultyStore, fault: Fault):
    """An append that was reported as lost may be there, once; the log is as whole as it was."""
    told = Delivered()
    with store.lake() as lake, producer(lake, on_delivery=told, delivery_timeout_ms=1500, linger_ms=1) as p:
        p.produce("t", "first", partition=0)
        p.flush()
        store.proxy.plan = first(fault, 10_000)
        store.proxy.forget()
        p.produce("t", "second", partition=0)
        assert p.flush(20) == 0
        requests = sum(store.proxy.counts.values())
        store.proxy.plan = well
        assert told.codes == [None, KafkaError._MSG_TIMED_OUT]
        # Each attempt is one call, whose pauses begin again: no more than some forty in a second and a half.
        assert RETRIES < requests <= 200
        p.produce("t", "third", partition=0)
        assert p.flush(20) == 0
    with store.lake() as lake, producer(lake) as successor:
        successor.produce("t", "fourth", partition=0)
        assert successor.flush(20) == 0
    found = in_the_topic(store)
    assert [value for value in found if value != "second"] == ["first", "fourth", "third"]
    assert found.count("second") <= 1


def test_what_an_outage_s_errors_say(store: FaultyStore):
    with store.lake() as lake:
        topic = lake.topic("t")
        store.proxy.plan = first(Fault.SLOW_DOWN, 10_000)
        with pytest.raises(StorageUnavailableError, match=r"tried 6 times in .* 503 .*\(SlowDown\).* fewer requests"):
            topic.append(values("a", partition=[0]))
        with pytest.raises(StorageUnavailableError, match=r"tried 6 times in .*\(SlowDown\)"):
            topic.offsets()
        reader = consumer(lake)
        with pytest.raises(KafkaException, match="SlowDown"):
            reader.get_watermark_offsets(at())
        store.proxy.plan = well
        reader.close()


def test_an_entry_in_doubt_can_be_asked_for_later(store: FaultyStore):
    """Every answer to the entry is lost until the time is up; the same request again finds that it is there."""
    with store.lake() as lake:
        topic = lake.topic("t")
        topic.append(values("a", partition=[0]))
        segments = stage(topic, "b", "c", partition=[0, 0])
        store.proxy.forget()
        store.proxy.plan = lambda request: (
            Fault.DROPPED if request.kind == "create" or store.proxy.failed["create"] else Fault.NONE
        )
        with pytest.raises(OutcomeUnknownError, match="is not known") as found:
            commit_alone(topic, segments, request_id="mine", timeout_s=0.5)
        assert found.value.request_id == "mine"
        store.proxy.plan = well
        assert commit_alone(topic, segments, request_id="mine") == {0: (1, 3)}
    assert in_the_topic(store) == ["a", "b", "c"]
