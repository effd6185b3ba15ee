"""Groups of the type consumer with real clients: librdkafka and Java share a topic, and go on when one is killed."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from support.brokers import running_broker
from support.kafka_clients import TOOLS, ready
from support.kafka_programs import JavaProgram
from support.logs import values
from support.waiting import PATIENCE_S

from tidelog.broker.base.settings import GroupSettings
from tidelog.log.lake import Lake

ALL = [0, 1, 2, 3]
MEMBER = Path(__file__).parents[2] / "support/GroupMember.java"


@contextmanager
def librdkafka(address: str, topic: str = "t", **conf: str) -> Iterator[confluent_kafka.Consumer]:
    given = {key.replace("_", "."): value for key, value in conf.items()}
    settings = {"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    consumer = confluent_kafka.Consumer(settings | {"group.protocol": "consumer"} | given)
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def owned(consumer: confluent_kafka.Consumer) -> list[int]:
    return sorted(one.partition for one in consumer.assignment())


def until_shared(*consumers: confluent_kafka.Consumer, most: int = 4) -> list[str]:
    """Poll all of them until they own four partitions, none more than `most`; the values that came meanwhile."""
    got: list[str] = []
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                got.append(message.value().decode())
        shares = [owned(consumer) for consumer in consumers]
        if sorted(number for share in shares for number in share) == ALL and max(map(len, shares)) <= most:
            return got
    raise AssertionError(f"they own {[owned(consumer) for consumer in consumers]}")


def read(consumer: confluent_kafka.Consumer, count: int) -> list[str]:
    got: list[str] = []
    until = time.monotonic() + PATIENCE_S
    while len(got) < count and time.monotonic() < until:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            got.append(message.value().decode())
    return sorted(got)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_librdkafkas_members_come_and_go(lake: Lake, assignor: str) -> None:
    with running_broker(lake) as address, librdkafka(address, group_remote_assignor=assignor) as stays:
        assert read(stays, 8) == list("abcdefgh")
        stays.commit(asynchronous=False)
        with librdkafka(address, "^t$", group_remote_assignor=assignor) as comes:
            until_shared(stays, comes, most=2)
        until_shared(stays)
        lake.topic("t").append(values("i", partition=[3]))
        assert read(stays, 1) == ["i"]


def test_a_static_member_comes_back_to_what_it_had(lake: Lake) -> None:
    with running_broker(lake) as address, librdkafka(address) as other:
        with librdkafka(address, group_instance_id="i") as static:
            until_shared(other, static, most=2)
            had = owned(static)
        with librdkafka(address, group_instance_id="i") as static:
            until_shared(other, static, most=2)
            assert owned(static) == had


def test_java_and_librdkafka_share_a_topic_and_go_on_when_one_is_killed(lake: Lake, tmp_path: Path) -> None:
    ready(TOOLS)
    short = GroupSettings(consumer_session_timeout_ms=3_000)
    with ExitStack() as stack:
        address = stack.enter_context(running_broker(lake, groups=short))
        settings = ("group.id=g", "group.protocol=consumer", "enable.auto.commit=true", "auto.commit.interval.ms=100")
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{TOOLS.folder}/*", MEMBER]
        program = stack.enter_context(JavaProgram([*command, address, "t", *settings], tmp_path / "java.log"))
        program.await_line("owns [0, 1, 2, 3]")
        for value in "abcdefgh":
            program.await_line(f"got {value}")
        with librdkafka(address) as consumer:
            shared = [f"owns {numbers}" for numbers in ("[0, 1]", "[2, 3]", "[0, 2]", "[0, 3]", "[1, 2]", "[1, 3]")]
            until = time.monotonic() + PATIENCE_S
            while time.monotonic() < until and not any(line in program.said() for line in shared):
                consumer.poll(0.1)
            while time.monotonic() < until and len(owned(consumer)) < 2:
                consumer.poll(0.1)
            assert len(owned(consumer)) == 2
            program.kill()
            until_shared(consumer)
            lake.topic("t").append(values(*"ijkl", partition=[0, 1, 2, 3]))
            assert set("ijkl") <= set(read(consumer, 4))
