"""Logs on a real S3 server whose answers take long: 20 ms each, 80 ms those to puts. Nothing is repeated or lost."""

from collections.abc import Iterator

import pytest
from support.consumers import consumer, poll_texts
from support.faulty_store import FaultyStore, faulty_store, records
from support.logs import values
from support.producers import Delivered, producer

PARTITIONS = 2
SLOW = {"": 0.02, "put": 0.08, "create": 0.08}


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    with faulty_store() as store:
        with store.well() as lake:
            lake.create_topic("t", partitions=PARTITIONS)
        store.proxy.delay_s = dict(SLOW)
        yield store


def in_the_topic(store: FaultyStore) -> dict[int, list[str]]:
    with store.well() as lake:
        return records(lake, "t")


def test_a_producer_and_a_consumer(store: FaultyStore):
    told = Delivered()
    given = {partition: [f"{partition}-{n}" for n in range(50)] for partition in range(PARTITIONS)}
    with store.lake() as lake, producer(lake, on_delivery=told) as p:
        for n in range(50):
            for partition in given:
                p.produce("t", given[partition][n], partition=partition)
        assert p.flush(30) == 0
    assert told.codes == [None] * 100
    assert in_the_topic(store) == given
    with store.lake() as lake:
        reader = consumer(lake, enable_auto_commit=False)
        reader.subscribe(["t"])
        assert sorted(poll_texts(reader, 100)) == sorted(value for found in given.values() for value in found)
        assert sorted(c.offset for c in reader.commit(asynchronous=False)) == [50, 50]
        reader.close()


def test_a_transaction(store: FaultyStore):
    with store.lake() as lake, producer(lake, transactional_id="x") as p:
        p.init_transactions()
        p.begin_transaction()
        for partition in range(PARTITIONS):
            p.produce("t", f"kept-{partition}", partition=partition)
        p.commit_transaction()
        p.begin_transaction()
        p.produce("t", "dropped", partition=0)
        p.abort_transaction()
    assert in_the_topic(store) == {0: ["kept-0"], 1: ["kept-1"]}


def test_no_request_is_sent_twice_for_being_slow(store: FaultyStore):
    with store.lake() as lake:
        topic = lake.topic("t")
        topic.append(values("a", partition=[0]))
        store.proxy.forget()
        assert topic.append(values("b", partition=[0])) == {0: (1, 2)}
        assert (store.proxy.counts["put"], store.proxy.counts["create"]) == (1, 1)
    assert in_the_topic(store) == {0: ["a", "b"], 1: []}
