"""Groups of the type consumer with real clients: librdkafka, Java and native members share a topic."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from support.brokers import running_broker
from support.kafka_clients import TOOLS, ready
from support.kafka_programs import JavaProgram
from support.logs import values
from support.waiting import PATIENCE_S

import tidelog
from tidelog.broker.base.settings import GroupSettings
from tidelog.groups.store.group_log import GroupLog
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


def owned(consumer: Any) -> list[int]:
    return sorted(one.partition for one in consumer.assignment())


def until_shared(*consumers: Any, most: int = 4) -> list[str]:
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


def read(consumer: Any, count: int) -> list[str]:
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


@contextmanager
def native(lake: Lake, topic: str = "t", **conf: str) -> Iterator[tidelog.Consumer]:
    given = {key.replace("_", "."): value for key, value in conf.items()}
    settings = {"lake": lake.uri, "group.id": "g", "auto.offset.reset": "earliest", "group.protocol": "consumer"}
    with tidelog.Consumer(settings | given) as consumer:
        consumer.subscribe([topic])
        yield consumer


def test_java_librdkafka_and_a_native_member_share_a_topic_and_go_on_when_one_is_killed(
    lake: Lake, tmp_path: Path
) -> None:
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
        with librdkafka(address) as first, native(lake) as second:
            until = time.monotonic() + PATIENCE_S
            while time.monotonic() < until and sorted([len(owned(first)), len(owned(second))]) not in ([1, 1], [1, 2]):
                first.poll(0.05)
                second.poll(0.05)
            assert len(owned(first)) + len(owned(second)) in (2, 3)
            group = GroupLog(lake).group("g")
            assert group is not None
            assert len(group.members) == 3
            program.kill()
            until_shared(first, second, most=2)
            lake.topic("t").append(values(*"ijkl", partition=[0, 1, 2, 3]))
            assert set("ijkl") <= set(read_by(first, second, count=4))
            with native(lake) as third:
                until_shared(first, second, third, most=2)
        with native(lake) as last:
            until_shared(last)


def test_native_members_alone_share_as_fast_as_they_see_entries(lake: Lake) -> None:
    """No broker; what moves is committed when it is given up."""
    with native(lake) as stays:
        assert read(stays, 8) == list("abcdefgh")
        with native(lake, group_remote_assignor="range") as comes:
            assert until_shared(stays, comes, most=2) == []
        until_shared(stays)
        lake.topic("t").append(values("i", partition=[3]))
        assert read(stays, 1) == ["i"]
    group = GroupLog(lake).group("g")
    assert group is not None
    assert (group.type, dict(group.members)) == ("consumer", {})


def test_callbacks_get_what_comes_and_what_goes(lake: Lake) -> None:
    came: list[list[int]] = []
    went: list[list[int]] = []
    settings = {"lake": lake.uri, "group.id": "g", "group.protocol": "consumer"}

    def on_assign(consumer: tidelog.Consumer, partitions: list[tidelog.TopicPartition]) -> None:
        came.append([one.partition for one in partitions])
        consumer.incremental_assign(partitions)

    def on_revoke(consumer: tidelog.Consumer, partitions: list[tidelog.TopicPartition]) -> None:
        went.append([one.partition for one in partitions])
        consumer.incremental_unassign(partitions)

    with tidelog.Consumer(settings) as consumer:
        consumer.subscribe(["t"], on_assign=on_assign, on_revoke=on_revoke)
        until_shared(consumer)
        with native(lake) as other:
            until_shared(consumer, other, most=2)
            assert consumer.consumer_group_metadata().generation >= 2
        until_shared(consumer)
    assert came[0] == ALL
    assert [len(numbers) for numbers in went[:1]] == [2]
    assert sorted(went[0]) == sorted(came[1])
    assert went[1] == ALL


def read_by(*consumers: Any, count: int) -> list[str]:
    got: list[str] = []
    until = time.monotonic() + PATIENCE_S
    while len(got) < count and time.monotonic() < until:
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                got.append(message.value().decode())
    return got
