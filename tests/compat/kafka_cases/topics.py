"""The scripts for topics and their records, in the forms that operators use."""

import json
import re

from compat.kafka_cases.lakes import count, offsets, opened, overrides, records
from compat.kafka_scripts import Tools
from support.waiting import eventually


def topics(tools: Tools) -> None:
    """Create, list, describe, alter, delete."""
    more = ("--partitions", "2", "--config", "retention.ms=60000")
    tools("kafka-topics", "--create", "--topic", "made", *more)
    tools("kafka-topics", "--create", "--topic", "made", "--if-not-exists", *more)
    assert "already exists" in tools.refused("kafka-topics", "--create", "--topic", "made", *more)
    assert overrides(tools, "made") == {"retention.ms": "60000"}
    assert "made" in tools("kafka-topics", "--list").split()
    shown = tools("kafka-topics", "--describe", "--topic", "made")
    assert re.search(r"PartitionCount: 2\b.*retention.ms=60000", shown), shown
    with opened(tools) as lake:
        assert _topic_id(shown) == lake.topic("made").id
    tools("kafka-topics", "--alter", "--topic", "made", "--partitions", "4")
    assert "PartitionCount: 4" in tools("kafka-topics", "--describe", "--topic", "made")
    assert sorted(offsets(tools, "made")) == [0, 1, 2, 3]
    assert "made" in tools("kafka-topics", "--describe", "--topics-with-overrides")
    for form in ("under-replicated-partitions", "unavailable-partitions", "under-min-isr-partitions"):
        assert not tools("kafka-topics", "--describe", f"--{form}").strip()
    tools("kafka-topics", "--delete", "--topic", "made")
    assert "made" not in tools("kafka-topics", "--list").split()
    with opened(tools) as lake:
        assert "made" not in lake.topics()
    tools("kafka-topics", "--delete", "--topic", "made", "--if-exists")
    assert "does not exist" in tools.refused("kafka-topics", "--delete", "--topic", "made")


def _topic_id(shown: str) -> str:
    """The id as UUIDs are written; Kafka's tools write it in Base64."""
    from base64 import urlsafe_b64decode
    from uuid import UUID

    said = re.search(r"TopicId: (\S+)", shown)
    assert said, shown
    return str(UUID(bytes=urlsafe_b64decode(said[1] + "==")))


def configs(tools: Tools) -> None:
    """Describe, add and delete: of a topic, of all brokers, of a broker; what groups and the lake take."""
    tools("kafka-topics", "--create", "--topic", "configured")
    place = ("--entity-type", "topics", "--entity-name", "configured")
    tools("kafka-configs", *place, "--alter", "--add-config", "retention.ms=77000,cleanup.policy=compact")
    assert overrides(tools, "configured") == {"retention.ms": "77000", "cleanup.policy": "compact"}
    shown = tools("kafka-configs", *place, "--describe")
    assert "retention.ms=77000" in shown, shown
    assert "cleanup.policy=compact" in shown, shown
    file = tools.file("added.properties", "cleanup.policy=compact,delete\n")
    tools("kafka-configs", *place, "--alter", "--add-config-file", file, "--delete-config", "retention.ms")
    assert overrides(tools, "configured") == {"cleanup.policy": "compact,delete"}
    assert "retention.ms=77000" not in tools("kafka-configs", *place, "--describe")
    assert "max.message.bytes" in tools("kafka-configs", *place, "--describe", "--all")
    assert "retention.ms" in tools.refused("kafka-configs", *place, "--alter", "--add-config", "retention.ms=soon")
    assert "configured" in tools("kafka-configs", "--entity-type", "topics", "--describe")
    brokers = ("--entity-type", "brokers")
    assert "num.partitions" in tools("kafka-configs", *brokers, "--entity-name", "1", "--describe", "--all")
    everywhere = (*brokers, "--entity-default")
    tools("kafka-configs", *everywhere, "--alter", "--add-config", "log.retention.bytes=12345678")
    assert "log.retention.bytes=12345678" in tools("kafka-configs", *everywhere, "--describe")
    with opened(tools) as lake:
        assert lake.config().overrides["log.retention.bytes"] == "12345678"
    tools("kafka-configs", *everywhere, "--alter", "--delete-config", "log.retention.bytes")
    assert "log.retention.bytes" not in tools("kafka-configs", *everywhere, "--describe")
    own = (*brokers, "--entity-name", "2", "--alter", "--add-config", "log.retention.bytes=1")
    assert "--entity-default" in tools.refused("kafka-configs", *own)


def console(tools: Tools) -> None:
    """What the producer sends is in the lake, and the consumer reads it: keys, headers, nulls, from an offset on."""
    tools.topic("console")
    assert sorted(records(tools, "console")) == sorted((str(n), str(n)) for n in range(30))
    assert sorted(map(int, tools.consume("console", "console-group", 30))) == list(range(30))
    assert tools.lag("console-group") == 0
    tools("kafka-topics", "--create", "--topic", "said", "--partitions", "1")
    words = ("parse.key=true", "parse.headers=true", "headers.delimiter=|", "key.separator=:", "null.marker=NONE")
    said = [word for one in words for word in ("--property", one)]
    codec = ("--compression-codec", "zstd", "--request-required-acks", "all")
    tools("kafka-console-producer", "--topic", "said", *said, *codec, given="from:here|k:v\nfrom:there|j:NONE\n")
    assert records(tools, "said") == [("k", "v"), ("j", None)]
    shown = [word for one in ("key", "headers", "offset", "timestamp") for word in ("--property", f"print.{one}=true")]
    limits = ("--max-messages", "1", "--timeout-ms", "60000")
    place = ("--topic", "said", "--partition", "0", "--offset", "1")
    (line,) = tools("kafka-console-consumer", *place, *limits, *shown).splitlines()
    assert re.fullmatch(r"CreateTime:\d+\tOffset:1\tfrom:there\tj\tnull", line), line


def delete_records(tools: Tools) -> None:
    """A topic's beginning moves; what is not there is refused."""
    tools.topic("trimmed")
    ends = {partition: end for partition, (_, end) in offsets(tools, "trimmed").items()}

    def trim(*before: int) -> str:
        places = [{"topic": "trimmed", "partition": number, "offset": at} for number, at in enumerate(before)]
        file = tools.file("records.json", json.dumps({"partitions": places, "version": 1}))
        return tools("kafka-delete-records", "--offset-json-file", file)

    assert "low_watermark: 1" in trim(1, -1)
    assert {n: begin for n, (begin, _) in offsets(tools, "trimmed").items()} == {0: 1, 1: ends[1], 2: 0}
    assert "OffsetOutOfRange" in trim(99)


def get_offsets(tools: Tools) -> None:
    """Where a topic's records begin and end, and where they are by time."""
    tools.topic("ends")

    def found(*args: str) -> dict[str, int]:
        lines = [line.split(":") for line in tools("kafka-get-offsets", *args).split()]
        return {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}

    told = offsets(tools, "ends")
    assert found("--topic", "ends", "--time", "latest") == {f"ends-{n}": end for n, (_, end) in told.items()}
    assert found("--topic", "ends", "--time", "earliest") == dict.fromkeys((f"ends-{n}" for n in told), 0)
    assert found("--topic", "ends", "--time", "1", "--partitions", "0,2") == {"ends-0": 0, "ends-2": 0}
    assert len(found("--topic", "ends", "--time", "max-timestamp")) == 3
    assert found("--topic-partitions", "en.*:1", "--time", "-1") == {"ends-1": told[1][1]}
    assert len(found("--topic", "ends", "--time", "earliest-local")) == 3


def verifiable(tools: Tools) -> None:
    """The verifiable producer says of each record where it is, and the consumer how many it had."""
    tools("kafka-topics", "--create", "--topic", "verified", "--partitions", "2")
    limits = ("--topic", "verified", "--max-messages", "200")
    said = [json.loads(line) for line in tools("kafka-verifiable-producer", *limits, "--acks", "-1").splitlines()]
    sent = {(one["partition"], one["offset"]): one["value"] for one in said if one["name"] == "producer_send_success"}
    assert len(sent) == 200
    assert sorted(sent.values()) == sorted(value for _, value in records(tools, "verified") if value)
    shown = tools("kafka-verifiable-consumer", *limits, "--group-id", "verifier", "--verbose")
    had = [json.loads(line) for line in shown.splitlines()]
    read = {(one["partition"], one["offset"]): one["value"] for one in had if one["name"] == "record_data"}
    assert read == sent
    assert had[-1]["name"] == "shutdown_complete"


def performance(tools: Tools) -> None:
    """The producer's test with idempotence and zstd, and in transactions."""
    tools("kafka-topics", "--create", "--topic", "perf", "--partitions", "3")
    sizes = ("--topic", "perf", "--num-records", "5000", "--record-size", "100", "--throughput", "-1")
    given = ("--producer-props", f"bootstrap.servers={tools.address}", "compression.type=zstd")
    for more in ((), ("--transactional-id", "perf", "--transaction-duration-ms", "200")):
        assert "5000 records sent" in tools("kafka-producer-perf-test", *sizes, *more, *given)
    assert count(tools, "perf") == 10_000


def consumer_performance(tools: Tools) -> None:
    """The consumer's test reads as many records as it is to."""
    tools.topic("read", 3000)
    limits = ("--messages", "3000", "--timeout", "60000", "--hide-header")
    (line,) = tools("kafka-consumer-perf-test", "--topic", "read", *limits).splitlines()
    assert int(line.split(", ")[4]) == 3000, line


def latency(tools: Tools) -> None:
    """Each record is sent and then read, one after another."""
    tools("kafka-topics", "--create", "--topic", "echo", "--partitions", "1")
    shown = tools("kafka-e2e-latency", tools.address, "echo", "20", "all", "64", *tools.told)
    assert re.search(r"Percentiles: 50th = \d+, 99th = \d+", shown), shown
    assert count(tools, "echo") == 20


def replica_verification(tools: Tools) -> None:
    """What it reads of each partition's replicas is alike: each has one."""
    tools.topic("alike")
    with tools.started("kafka-replica-verification", "--topics-include", "alike", "--report-interval-ms", "500") as run:
        eventually(lambda: "max lag is 0" in run.said(), f"a report in {run.log}", 60.0)
