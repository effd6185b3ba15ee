"""Unmodified transactional producers against brokers: librdkafka's and aiokafka's."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from support.brokers import running_broker
from support.transactional_clients import WAIT_S, agreed, send, transactional
from support.waiting import eventually

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.transactions.transaction_log import TransactionLog


@pytest.fixture
def lake(lake: Lake) -> Lake:
    lake.create_topic("out", partitions=3)
    return lake


def committed(lake: Lake) -> dict[int, int]:
    """Where group g goes on in topic t, by partition."""
    return {partition: one.offset for (_, partition), one in GroupLog(lake).stable_offsets("g", 30.0).items()}


def files_of(lake: Lake) -> list[Path]:
    return list(Path(lake.uri.removeprefix("file://")).glob("out/partition=*/*.parquet"))


# --- one broker --------------------------------------------------------------------------------------------


def test_a_commit_shows_all_and_an_abort_nothing(lake: Lake) -> None:
    with running_broker(lake) as address:
        producer = transactional(address)
        for number, commits in enumerate((True, False, True)):
            producer.begin_transaction()
            send(producer, [f"{number}{text}" for text in "abcd"])
            if number < 2:
                seen = agreed(lake, address)
                assert not any(text.startswith(str(number)) for text in seen), "nobody sees an open transaction"
            (producer.commit_transaction if commits else producer.abort_transaction)(WAIT_S)
        assert agreed(lake, address) == sorted(f"{n}{text}" for n in (0, 2) for text in "abcd")


def test_records_are_as_they_were_sent(lake: Lake) -> None:
    with running_broker(lake) as address:
        producer = transactional(address, compression_type="zstd")
        producer.begin_transaction()
        producer.produce("out", b"v", key=b"k", partition=1, timestamp=1_700_000_000_123, headers=[("h", b"1")])
        producer.produce("out", None, key=b"k", partition=1)
        producer.commit_transaction(WAIT_S)
    first, second = (row for batch in lake.topic("out").read(1, include_headers=True) for row in batch.to_pylist())
    assert [(row["key"], row["value"]) for row in (first, second)] == [(b"k", b"v"), (b"k", None)]
    assert first["headers"] == [{"key": "h", "value": b"1"}]
    assert first["timestamp"].timestamp() == pytest.approx(1_700_000_000.123)


def test_a_second_producer_fences_the_first(lake: Lake) -> None:
    with running_broker(lake) as address:
        first = transactional(address)
        first.begin_transaction()
        send(first, ["first"])
        second = transactional(address)
        second.begin_transaction()
        send(second, ["second"])
        second.commit_transaction(WAIT_S)
        with pytest.raises(KafkaException) as refused:
            first.commit_transaction(WAIT_S)
        assert refused.value.args[0].fatal()
        assert refused.value.args[0].code() == KafkaError._FENCED
        assert agreed(lake, address) == ["second"]


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(lake: Lake) -> None:
    log = TransactionLog(lake)
    with running_broker(lake) as address:
        # Longer than an answer takes on a busy machine: librdkafka gives records no more time than their transaction.
        producer = transactional(address, transaction_timeout_ms=5_000)
        producer.begin_transaction()
        send(producer, ["late"])
        assert files_of(lake)
        eventually(lambda: not log.all_open(), "the broker aborts it")
        eventually(lambda: not files_of(lake), "and deletes its files")
        with pytest.raises(KafkaException) as refused:
            producer.commit_transaction(WAIT_S)
        assert refused.value.args[0].fatal()
        assert agreed(lake, address) == []


def test_a_timeout_above_the_lakes_is_refused(lake: Lake) -> None:
    lake.alter_config({"transaction.max.timeout.ms": "5000"})
    with running_broker(lake) as address, pytest.raises(KafkaException) as refused:
        transactional(address, transaction_timeout_ms=6_000)
    assert refused.value.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("commits", [True, False])
def test_a_groups_offsets_are_committed_with_the_transaction(lake: Lake, commits: bool) -> None:
    with running_broker(lake) as address:
        producer = transactional(address)
        settings = {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False}
        consumer = Consumer(settings | {"auto.offset.reset": "earliest", "isolation.level": "read_committed"})
        try:
            consumer.subscribe(["t"])
            messages: list[object] = []
            eventually(lambda: messages.extend(consumer.consume(8, 0.2)) or len(messages) == 8, "all of it is read")
            producer.begin_transaction()
            send(producer, [message.value().decode().upper() for message in messages])
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), WAIT_S)
            assert dict(GroupLog(lake).offsets("g")) == {}, "they wait"
            (producer.commit_transaction if commits else producer.abort_transaction)(WAIT_S)
            assert committed(lake) == (dict.fromkeys(range(4), 2) if commits else {})
            found = consumer.committed([TopicPartition("t", p) for p in range(4)], WAIT_S)
            assert [one.offset for one in found] == ([2] * 4 if commits else [-1001] * 4)
        finally:
            consumer.close()
        assert agreed(lake, address) == (list("ABCDEFGH") if commits else [])


def test_offsets_of_a_member_that_was_replaced_are_refused(lake: Lake) -> None:
    with running_broker(lake) as address:
        producer = transactional(address)
        settings = {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False}
        consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        eventually(lambda: consumer.consume(1, 0.2), "it is a member")
        old = consumer.consumer_group_metadata()
        consumer.close()
        producer.begin_transaction()
        with pytest.raises(KafkaException) as refused:
            producer.send_offsets_to_transaction([TopicPartition("t", 0, 1)], old, WAIT_S)
        assert refused.value.args[0].txn_requires_abort()
        producer.abort_transaction(WAIT_S)
        assert committed(lake) == {}


def test_aiokafkas_producer(lake: Lake) -> None:
    async def act(address: str) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id="x")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait("out", b"a")
                await producer.send_offsets_to_transaction({AioPartition("t", 0): 1}, "g")
            await producer.begin_transaction()
            await producer.send_and_wait("out", b"b")
            await producer.send_offsets_to_transaction({AioPartition("t", 0): 2}, "g")
            await producer.abort_transaction()
            async with producer.transaction():
                await asyncio.gather(*[await producer.send("out", text.encode()) for text in "cd"])
            successor = AIOKafkaProducer(bootstrap_servers=address, transactional_id="x")
            await successor.start()
            try:
                await producer.begin_transaction()
                with pytest.raises(ProducerFenced):
                    await producer.send_and_wait("out", b"e")
            finally:
                await successor.stop()
        finally:
            await producer.stop()

    with running_broker(lake) as address:
        asyncio.run(asyncio.wait_for(act(address), 2 * WAIT_S))
        assert agreed(lake, address) == ["a", "c", "d"]
        assert committed(lake) == {0: 1}
