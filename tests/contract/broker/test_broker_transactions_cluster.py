"""Transactions over several brokers, real processes: begun at one, ended at another, some of them killed amid it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from support.cluster_processes import BrokerProcess, ask
from support.produce_requests import batch, encoded_produce
from support.transactional_clients import WAIT_S, agreed, send, transactional
from support.waiting import eventually

from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake
from tidelog.transactions.part_rules import ProducerIdentity
from tidelog.transactions.transaction_log import TransactionLog

NEWEST_PRODUCE = 12  # the newest that names topics


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("out", partitions=3)
        yield lake


@pytest.fixture
def brokers(lake: Lake) -> Iterator[list[BrokerProcess]]:
    begun = [BrokerProcess(lake.uri, drain_s=2.0) for _ in range(2)]
    try:
        for one in begun:
            one.ready()
        yield begun
    finally:
        for one in begun:
            one.__exit__()


def bootstrap(brokers: list[BrokerProcess]) -> str:
    return ",".join(broker.address for broker in brokers)


def coordinator(brokers: list[BrokerProcess], name: str) -> BrokerProcess:
    body = {"key_type": 1, "coordinator_keys": [name]}
    (found,) = ask(brokers[0].port, ApiKey.FIND_COORDINATOR, 4, body).coordinators
    return next(broker for broker in brokers if broker.id == found.node_id)


def leader(brokers: list[BrokerProcess], name: str) -> BrokerProcess:
    del name
    body = {"topics": [{"name": "out", "topic_id": None}]}
    (topic,) = ask(brokers[0].port, ApiKey.METADATA, 12, body).topics
    return next(broker for broker in brokers if broker.id == topic.partitions[0].leader_id)


# --- by requests -------------------------------------------------------------------------------------------


class Client:
    """A producer of the second generation, whose every request goes to the broker of the caller's choice."""

    def __init__(self, name: str = "x") -> None:
        self.name = name
        self.producer_id = self.epoch = self.offset = -1

    def begin(self, at: BrokerProcess) -> None:
        body = {"transactional_id": self.name, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
        self._known(ask(at.port, ApiKey.INIT_PRODUCER_ID, 5, body))

    def produce(self, at: BrokerProcess, sequence: int, *texts: bytes) -> int:
        """The error code."""
        records = batch(*texts, producer=(self.producer_id, self.epoch, sequence), transactional=True)
        body = encoded_produce(NEWEST_PRODUCE, {"out": {0: records}}, transactional_id=self.name)
        (topic,) = ask(at.port, ApiKey.PRODUCE, NEWEST_PRODUCE, body).responses
        (partition,) = topic.partition_responses
        self.offset = partition.base_offset
        return int(partition.error_code)

    def end(self, at: BrokerProcess, *, commit: bool = True) -> int:
        """The error code."""
        answer = ask(at.port, ApiKey.END_TXN, 5, self._self() | {"committed": commit})
        if not answer.error_code:
            self._known(answer)
        return int(answer.error_code)

    def _self(self) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def _known(self, answer: Any) -> None:
        assert not answer.error_code
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch


def test_what_one_broker_has_staged_another_one_ends(lake: Lake, brokers: list[BrokerProcess]) -> None:
    one, other = brokers
    client = Client()
    client.begin(one)
    for number, (at, ends_at, commits) in enumerate(((one, other, True), (other, one, False), (one, other, True))):
        assert client.produce(at, 0, b"a%d" % number) == 0
        assert client.produce(ends_at, 1, b"b%d" % number) == 0
        assert client.end(ends_at, commit=commits) == 0
    assert agreed(lake, one.address) == ["a0", "a2", "b0", "b2"]


def test_a_batch_whose_answer_was_lost_is_staged_once(lake: Lake, brokers: list[BrokerProcess]) -> None:
    one, other = brokers
    client = Client()
    client.begin(one)
    assert [client.produce(at, 0, b"a") for at in (one, other, one)] == [0, 0, 0]
    before = client.epoch
    assert client.end(other) == 0
    after, client.epoch = client.epoch, before
    assert (client.end(one), client.epoch) == (0, after), "the same commit at another broker"
    assert agreed(lake, one.address) == ["a"]


def test_an_answer_names_an_offset_that_no_record_of_it_will_be_below(lake: Lake, brokers: list[BrokerProcess]) -> None:
    one, other = brokers
    clients = Client("x"), Client("y")
    bounds: dict[bytes, int] = {}
    for client in clients:
        client.begin(one)
    for at, client, sequence, text in (
        (one, clients[0], 0, b"a"),
        (one, clients[1], 0, b"b"),
        (one, clients[0], 1, b"c"),
        (other, clients[0], 2, b"d"),
    ):
        assert client.produce(at, sequence, text) == 0
        bounds[text] = client.offset
    assert bounds == {b"a": 0, b"b": 0, b"c": 1, b"d": 2}
    for client in clients[::-1]:
        assert client.end(other) == 0
    rows = [row for part in lake.topic("out").read(0) for row in part.to_pylist()]
    assert {row["value"]: row["offset"] for row in rows} == {b"b": 0, b"a": 1, b"c": 2, b"d": 3}
    assert clients[0].produce(one, 0, b"e") == 0
    assert clients[0].offset == 4, "the end of the partition counts, whoever moved it"


@pytest.mark.parametrize("loses", ["the one that staged", "the one that begins"])
def test_a_broker_that_dies_takes_nothing_along(lake: Lake, brokers: list[BrokerProcess], loses: str) -> None:
    one, other = brokers
    client = Client()
    client.begin(one if loses == "the one that begins" else other)
    assert client.produce(one, 0, b"a") == 0
    one.kill()
    assert client.produce(other, 1, b"b") == 0
    assert client.end(other) == 0
    assert agreed(lake, other.address) == ["a", "b"]


def test_a_commit_whose_broker_dies_before_it_is_in_the_topics_is_completed_by_another(
    lake: Lake, brokers: list[BrokerProcess]
) -> None:
    one, _ = brokers
    client = Client()
    client.begin(one)
    assert client.produce(one, 0, b"a") == 0
    log = TransactionLog(lake)
    there = log.open("x")
    assert there is not None
    # What a broker decides just before it is killed.
    log.end(ProducerIdentity("x", client.producer_id, client.epoch), commit=True, raises_epoch=True)
    assert lake.topic("out").state().end(0) == 0
    eventually(lambda: lake.topic("out").state().end(0) == 1, "a broker completes it, though no client asks")
    eventually(lambda: not log.incomplete(), "and says so")
    assert agreed(lake, one.address) == ["a"]


# --- by librdkafka -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", [leader, coordinator])
def test_a_broker_killed_amid_a_transaction(
    lake: Lake, brokers: list[BrokerProcess], victim: Callable[[list[BrokerProcess], str], BrokerProcess]
) -> None:
    producer: Producer = transactional(bootstrap(brokers), transaction_timeout_ms=60_000)
    producer.begin_transaction()
    send(producer, [f"a{n}" for n in range(20)])
    dead = victim(brokers, "x")
    dead.kill()
    (left,) = (broker for broker in brokers if broker is not dead)
    send(producer, [f"b{n}" for n in range(20)])
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    send(producer, ["c"])
    producer.abort_transaction(WAIT_S)
    assert agreed(lake, left.address) == sorted(f"{letter}{n}" for letter in "ab" for n in range(20))
