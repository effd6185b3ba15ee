"""A broker of a lake that follows another one: clients read, writers and members are refused until a promotion."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from support.broker_processes import broker_command
from support.logs import values
from support.mirror_processes import mirror_to_the_end
from support.waiting import eventually

from tidelog.log.lake import Lake
from tidelog.mirror.promotion import promote

POLICY_VIOLATION, GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 44, 30, 53
PATIENCE_S = 60.0


def sent(address: str, value: bytes, **settings: Any) -> int:
    """Produce one record; the error code that its delivery report has, 0 for none."""
    found: list[int] = []
    producer = Producer({"bootstrap.servers": address, **settings})
    producer.produce("t", value, on_delivery=lambda error, _: found.append(error.code() if error else 0))
    assert producer.flush(PATIENCE_S) == 0
    return found[0]


def consumer(address: str, group: str) -> Consumer:
    settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer({**settings, "enable.auto.commit": False})


def polled(reader: Consumer) -> Any:
    message = reader.poll(PATIENCE_S)
    assert message is not None
    return message.error().code() if message.error() else message.value()


def test_clients_read_and_are_refused_until_the_lake_is_promoted(tmp_path: Path) -> None:
    source, follower = str(tmp_path / "source"), str(tmp_path / "follower")
    with Lake(source) as lake:
        lake.create_topic("t", 1)
        lake.topic("t").append(values("a", "b"))
    mirror_to_the_end(source, follower)
    with broker_command(follower, "--listener", "127.0.0.1:0") as broker:
        address = broker.ready()["listener"]
        reader = consumer(address, "readers")
        reader.assign([TopicPartition("t", 0, 0)])
        assert [polled(reader), polled(reader)] == [b"a", b"b"]
        with pytest.raises(KafkaException) as refused:
            reader.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        assert refused.value.args[0].code() == GROUP_AUTHORIZATION_FAILED
        reader.close()
        assert sent(address, b"no") == POLICY_VIOLATION
        assert sent(address, b"no", **{"enable.idempotence": True}) == POLICY_VIOLATION
        with pytest.raises(KafkaException) as refused:
            Producer({"bootstrap.servers": address, "transactional.id": "tx"}).init_transactions(PATIENCE_S)
        assert refused.value.args[0].code() == TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        member = consumer(address, "members")
        member.subscribe(["t"])
        assert polled(member) == GROUP_AUTHORIZATION_FAILED
        member.close()
        assert any(f"The lake follows file://{source}: it serves readers" in line for line in broker.log)

        with Lake(follower, may_change_follower=True) as copy:
            promote(copy, None)
        eventually(lambda: sent(address, b"c") == 0, "the broker hears of the promotion")
        member = consumer(address, "members")
        member.subscribe(["t"])
        assert [polled(member) for _ in range(3)] == [b"a", b"b", b"c"]
        member.commit(asynchronous=False)
        member.close()
