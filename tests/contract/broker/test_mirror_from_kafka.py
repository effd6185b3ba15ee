"""`tidelog mirror start --from kafka://…` with a broker of tidelog's own as its source."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from support.brokers import running_broker
from support.cli_calls import cli
from support.kafka_copies import differences, killed_again_and_again, produced
from support.logs import values

import tidelog
from tidelog.log.lake import Lake
from tidelog.retention.maintenance import maintain


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path / "source")) as lake:
        yield lake


def once(address: str, copy: Path, *more: str, code: int = 0) -> dict[str, Any]:
    done = cli(
        "--format", "json", "mirror", "start", "--from", f"kafka://{address}", "--to", str(copy), "--once", *more
    )  # fmt: skip
    assert done.exit_code == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_records_offsets_configurations_and_groups_are_those_of_the_source(source: Lake, tmp_path: Path) -> None:
    source.create_topic("plain", 3, {"retention.ms": "-1"})
    source.create_topic(
        "compacted", 1, {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}
    )
    source.create_topic("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    source.create_topic("empty", 2)
    with running_broker(source) as address:
        producer = Producer({"bootstrap.servers": address})
        headers = [("h", None), ("h", b""), ("é", b"\x00\xff")]
        for partition in range(3):
            produced(
                producer, "plain", partition, [f"{n}" for n in range(50)], headers=headers, timestamp=partition + 1
            )
        producer.produce("plain", None, key=b"", partition=0)
        producer.produce("plain", b"", key=None, partition=0)
        produced(producer, "stamped", 0, ["a", "b"], timestamp=5)
        for number in range(4):
            produced(producer, "compacted", 0, [f"{number}-{key}" for key in range(5)])
    source.delete_records("plain", {1: 20, 2: -1})
    maintain(source, only=["compact"], now_ms=source.clock.now_ms() + 60_000)
    with running_broker(source) as address:  # the first one may still serve what it has cached
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["plain"])
        assert len(consumer.consume(60, 30)) == 60
        consumer.close()
        found = once(address, tmp_path / "copy")
        with Lake(str(tmp_path / "copy"), create=False) as copy:
            assert differences(address, copy, ("plain", "compacted", "stamped", "empty"), ("g",)) == []
            assert [len(b) for b in copy.topic("compacted").read(0)] == [5]
            for topic in ("plain", "compacted", "stamped"):
                assert copy.topic_config(topic).overrides == source.topic_config(topic).overrides
        assert (found["problems"], found["behind_entries"], found["offsets_of_groups"] > 0) == ({}, 0, True)
        assert once(address, tmp_path / "copy")["shipped_entries"] == 0


def test_a_consumer_that_moves_goes_on_with_its_offset(source: Lake, tmp_path: Path) -> None:
    source.create_topic("t", 1)
    source.topic("t").append(values(*(str(n) for n in range(100))))
    with running_broker(source) as address:
        conf = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": address, **conf})
        consumer.subscribe(["t"])
        last = consumer.consume(37, 30)[-1]
        consumer.commit(last, asynchronous=False)
        consumer.close()
        once(address, tmp_path / "copy")
        with tidelog.Consumer({"lake": str(tmp_path / "copy"), **conf}) as moved:
            moved.subscribe(["t"])
            messages = moved.consume(10, timeout=30)
            assert messages[0].value() == str(last.offset() + 1).encode()
            moved.commit(messages[-1], asynchronous=False)
        once(address, tmp_path / "copy")  # and the mirror does not put it back
        with Lake(str(tmp_path / "copy"), create=False) as copy:
            (committed,) = tidelog.AdminClient({"lake": copy.uri}).list_consumer_group_offsets(
                [tidelog.admin.ConsumerGroupTopicPartitions("g")]
            )["g"].result().topic_partitions  # fmt: skip
            assert committed.offset == messages[-1].offset() + 1


def test_topics_are_chosen_and_what_is_refused_is_named(source: Lake, tmp_path: Path) -> None:
    for name in ("orders", "payments"):
        source.create_topic(name, 1)
        source.topic(name).append(values("a"))
    with Lake(str(tmp_path / "copy")) as copy:
        copy.create_topic("orders", 1)
        copy.topic("orders").append(values("own"))
    with running_broker(source) as address:
        found = once(address, tmp_path / "copy", "--topics", "pay.*")
        assert (found["problems"], list(found["tables"])) == ({}, ["payments"])
        found = once(address, tmp_path / "copy", code=1)
        assert "Topic 'orders', partition 0 holds records of its own" in found["problems"]["orders"]
        done = cli("mirror", "start", "--from", f"kafka://{address}", "--to", str(tmp_path / "copy"), "--once")
        assert done.exit_code == 1
        assert "holds records of its own" in done.stderr


def test_keys_of_the_client_come_from_a_file_and_the_line(source: Lake, tmp_path: Path) -> None:
    source.create_topic("t", 1)
    keys = tmp_path / "client.properties"
    keys.write_text("security.protocol = SASL_PLAINTEXT\nsasl.mechanism = PLAIN\n", encoding="utf-8")
    with running_broker(source) as address:
        more = ("mirror", "start", "--from", f"kafka://{address}", "--to", str(tmp_path / "copy"), "--once")
        done = cli(*more, "--config-file", str(keys), "--config", "no.such.key=1")
        assert done.exit_code == 1
        assert "no.such.key" in done.stderr
        done = cli(*more, "--config-file", str(keys), "--config", "security.protocol=PLAINTEXT")
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--from", "kafka://", "--to", "x"), "is no address of Kafka"),
        (("--from", "kafka://h", "--to", "x"), "is no address of Kafka"),
        (("--from", "kafka://h:1", "--to", "x", "--discard-diverged"), "sources that are lakes have them"),
        (("--from", "kafka://h:1", "--to", "x", "--from-option", "a=b"), "sources that are lakes have them"),
        (("--from", "memory://a", "--to", "memory://b", "--config", "a=b"), "say how to reach Kafka"),
    ],
)
def test_wrong_usage(more: tuple[str, ...], says: str) -> None:
    done = cli("mirror", "start", *more)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_mirror_that_is_killed_again_and_again_ends_equal(source: Lake, tmp_path: Path) -> None:
    with running_broker(source) as address:
        told = killed_again_and_again(address, str(tmp_path / "copy"), tmp_path, 2, 0.5)
        assert told.startswith("2 kills")
