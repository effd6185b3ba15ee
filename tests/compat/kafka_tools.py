"""Kafka's own command-line tools, each in the forms that operators use, judged by what the lake then holds."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from compat.suite import FAILED, PASSED, Outcome
from confluent_kafka import KafkaException
from support.kafka_clients import tool_rows
from support.transactional_clients import WAIT_S, read, send, transactional

SUITE = "kafka-tools"
# The scripts of a distribution, and the classes that they start.
CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
}
_LIMIT_S = 240


def scripts(folder: Path, jars: list[Path]) -> Path:
    """Make `bin/` with the scripts of a distribution, which start Java with these jars; the folder."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    class_path = ":".join(map(str, jars))
    for name, main in CLASSES.items():
        script = folder / "bin" / f"{name}.sh"
        java = f"java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.level=ERROR -cp '{class_path}' {main}"
        script.write_text(f'#!/bin/sh\nexec {java} "$@"\n')
        script.chmod(0o755)
    return folder


class Tools:
    """Calls the tools against brokers."""

    def __init__(self, kafka: Path, address: str) -> None:
        self._kafka = kafka
        self._address = address

    def __call__(self, tool: str, *args: str, given: str = "", server: str = "--bootstrap-server") -> str:
        """What the tool prints; `AssertionError` when it fails."""
        done = subprocess.run(
            [self._kafka / "bin" / f"{tool}.sh", server, self._address, *args],
            input=given,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        words = done.stdout + done.stderr
        assert done.returncode == 0, f"{tool} {' '.join(args)}: {words[-600:]}"
        assert "Error" not in words.replace("ErrorCode", ""), f"{tool} {' '.join(args)}: {words[-600:]}"
        return done.stdout

    def topic(self, name: str, count: int = 30) -> None:
        """Create a topic with three partitions, and send it numbers, keyed by themselves."""
        self("kafka-topics", "--create", "--topic", name, "--partitions", "3")
        lines = "".join(f"{n}:{n}\n" for n in range(count))
        self.produce(name, lines)

    def produce(self, name: str, lines: str) -> None:
        """Send lines `key:value`."""
        properties = ("--property", "parse.key=true", "--property", "key.separator=:")
        self("kafka-console-producer", "--topic", name, *properties, given=lines)

    def consume(self, name: str, group: str, count: int) -> list[str]:
        """Read by a group's member, which commits."""
        limits = ("--max-messages", str(count), "--timeout-ms", "60000")
        return self(
            "kafka-console-consumer", "--topic", name, "--group", group, "--from-beginning", *limits
        ).splitlines()

    def groups(self, *args: str) -> str:
        """kafka-consumer-groups."""
        return self("kafka-consumer-groups", *args)

    def lag(self, group: str) -> int:
        """The sum of column LAG."""
        shown = self.groups("--describe", "--group", group)
        rows = [line.split() for line in shown.splitlines() if line.startswith(group)]
        return sum(int(row[5]) for row in rows)


def topics(tools: Tools) -> None:
    """Create, list, describe, alter, delete."""
    tools("kafka-topics", "--create", "--topic", "made", "--partitions", "2", "--config", "retention.ms=60000")
    assert "made" in tools("kafka-topics", "--list").split()
    shown = tools("kafka-topics", "--describe", "--topic", "made")
    assert re.search(r"PartitionCount: 2\b.*retention.ms=60000", shown), shown
    tools("kafka-topics", "--alter", "--topic", "made", "--partitions", "4")
    assert "PartitionCount: 4" in tools("kafka-topics", "--describe", "--topic", "made")
    assert not tools("kafka-topics", "--describe", "--under-replicated-partitions").strip()
    tools("kafka-topics", "--delete", "--topic", "made")
    assert "made" not in tools("kafka-topics", "--list").split()


def configs(tools: Tools) -> None:
    """Describe, add and delete a topic's configuration; describe a broker's."""
    tools("kafka-topics", "--create", "--topic", "configured")
    place = ("--entity-type", "topics", "--entity-name", "configured")
    tools("kafka-configs", *place, "--alter", "--add-config", "retention.ms=77000,cleanup.policy=compact")
    shown = tools("kafka-configs", *place, "--describe")
    assert "retention.ms=77000" in shown, shown
    assert "cleanup.policy=compact" in shown, shown
    tools("kafka-configs", *place, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms=77000" not in tools("kafka-configs", *place, "--describe")
    assert "max.message.bytes" in tools("kafka-configs", *place, "--describe", "--all")
    assert "num.partitions" in tools(
        "kafka-configs", "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all"
    )


def console(tools: Tools) -> None:
    """What the console producer sends the console consumer reads, and both keep keys."""
    tools.topic("console")
    assert sorted(map(int, tools.consume("console", "console-group", 30))) == list(range(30))
    assert tools.lag("console-group") == 0


def group_lists(tools: Tools) -> None:
    """List and describe: offsets, members, state."""
    tools.topic("listed")
    tools.consume("listed", "listed-group", 30)
    assert "listed-group" in tools.groups("--list").split()
    assert "Empty" in tools.groups("--list", "--state")
    assert "listed-group" in tools.groups("--describe", "--group", "listed-group", "--offsets")
    assert "Empty" in tools.groups("--describe", "--group", "listed-group", "--state")
    tools.groups("--describe", "--group", "listed-group", "--members", "--verbose")
    assert "listed-group" in tools.groups("--describe", "--all-groups")


def group_resets(tools: Tools) -> None:
    """Every form of --reset-offsets, by the lag that it leaves."""
    tools.topic("reset")
    tools.consume("reset", "reset-group", 30)
    place = ("--group", "reset-group", "--topic", "reset", "--reset-offsets")
    tools.groups(*place, "--to-earliest", "--dry-run")
    assert tools.lag("reset-group") == 0
    for form, lag in (
        (("--to-earliest",), 30),
        (("--to-latest",), 0),
        (("--shift-by", "-2"), 6),
        (("--to-offset", "1"), 27),
        (("--to-current",), 27),
        (("--to-datetime", "2000-01-01T00:00:00.000"), 30),
        (("--by-duration", "P1D"), 30),
        (("--to-datetime", "2999-01-01T00:00:00.000"), 0),
    ):
        tools.groups(*place, *form, "--execute")
        assert tools.lag("reset-group") == lag, form
    exported = tools.groups(*place, "--to-offset", "2", "--dry-run", "--export")
    assert "reset,0,2" in exported, exported


def group_deletions(tools: Tools) -> None:
    """--delete-offsets, then --delete."""
    tools.topic("dropped")
    tools.consume("dropped", "dropped-group", 30)
    tools.groups("--delete-offsets", "--group", "dropped-group", "--topic", "dropped:0")
    assert tools.lag("dropped-group") == 0
    rows = [line for line in tools.groups("--describe", "--group", "dropped-group").splitlines() if " dropped " in line]
    assert len(rows) == 2, rows
    tools.groups("--delete", "--group", "dropped-group")
    assert "dropped-group" not in tools.groups("--list").split()


def offsets_and_records(tools: Tools) -> None:
    """kafka-get-offsets for the ends, and kafka-delete-records, which moves the beginning."""
    tools.topic("ends")

    def ends(when: str) -> list[int]:
        shown = tools("kafka-get-offsets", "--topic", "ends", "--time", when)
        return [int(line.split(":")[2]) for line in shown.split()]

    latest = ends("latest")
    assert (sum(latest), ends("earliest")) == (30, [0, 0, 0])
    path = tools._kafka / "records.json"
    path.write_text('{"partitions": [{"topic": "ends", "partition": 0, "offset": 1}], "version": 1}')
    tools("kafka-delete-records", "--offset-json-file", str(path))
    assert ends("earliest") == [1, 0, 0]
    assert len(ends("max-timestamp")) == 3


def performance(tools: Tools) -> None:
    """kafka-producer-perf-test with idempotence and zstd, and in transactions."""
    tools("kafka-topics", "--create", "--topic", "perf", "--partitions", "3")
    sizes = ("--topic", "perf", "--num-records", "5000", "--record-size", "100", "--throughput", "-1")
    properties = ("--producer-props", f"bootstrap.servers={tools._address}", "compression.type=zstd")
    for more in ((), ("--transactional-id", "perf", "--transaction-duration-ms", "200")):
        command = [tools._kafka / "bin/kafka-producer-perf-test.sh", *sizes, *properties, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        assert "5000 records sent" in done.stdout, done.stdout[-400:] + done.stderr[-400:]
    shown = tools("kafka-get-offsets", "--topic", "perf")
    assert sum(int(line.split(":")[2]) for line in shown.split()) == 10_000


def cluster(tools: Tools) -> None:
    """kafka-broker-api-versions and kafka-log-dirs."""
    shown = tools("kafka-broker-api-versions")
    assert shown.count("Produce(0)") == 3, shown[:400]
    tools("kafka-topics", "--create", "--topic", "sized")
    assert '"sized-0"' in tools("kafka-log-dirs", "--describe", "--topic-list", "sized")


def transactions(tools: Tools) -> None:
    """kafka-transactions in all its actions: what hangs is found nowhere, shown, and ended in three ways."""
    tools("kafka-topics", "--create", "--topic", "hanging")
    place = ("--topic", "hanging", "--partition", "0")
    ways: tuple[Callable[[Mapping[str, str]], tuple[str, ...]], ...] = (
        lambda shown: ("abort", *place, "--start-offset", shown["CurrentTransactionStartOffset"]),
        lambda shown: (
            *("abort", *place, "--producer-id", shown["ProducerId"], "--producer-epoch", shown["ProducerEpoch"]),
            *("--coordinator-epoch", shown["LatestCoordinatorEpoch"]),
        ),
        lambda _: ("forceTerminateTransaction", "--transactionalId", "hanging-2"),
    )
    for number, way in enumerate(ways):
        name = f"hanging-{number}"
        producer = transactional(tools._address, name, transaction_timeout_ms=600_000)
        producer.begin_transaction()
        send(producer, ["a", "b"], "hanging")
        listed = tool_rows(tools("kafka-transactions", "list"))
        (one,) = (row for row in listed if row["TransactionalId"] == name)
        assert one["TransactionState"] == "Ongoing", one
        young, named = ("--duration-filter", "600000"), ("--transactional-id-pattern", f"h.*{number}")
        for filters, there in ((young, False), (named, True)):
            found = tool_rows(tools("kafka-transactions", "list", *filters))
            assert any(row["TransactionalId"] == name for row in found) == there, filters
        (described,) = tool_rows(tools("kafka-transactions", "describe", "--transactional-id", name))
        assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", "hanging-0"), described
        (shown,) = tool_rows(tools("kafka-transactions", "describe-producers", *place))
        assert shown["CurrentTransactionStartOffset"] == "0", shown
        found = tool_rows(
            tools("kafka-transactions", "find-hanging", "--topic", "hanging", "--max-transaction-timeout", "0")
        )
        assert not found, found
        tools("kafka-transactions", *way(shown))
        assert not tool_rows(tools("kafka-transactions", "describe-producers", *place))
        (described,) = tool_rows(tools("kafka-transactions", "describe", "--transactional-id", name))
        assert described["TransactionState"] != "Ongoing", described
        with suppress(KafkaException):
            producer.commit_transaction(WAIT_S)
            raise AssertionError(f"{name} was committed after its end")
    assert read(tools._address, "read_uncommitted", "hanging") == []


CASES: tuple[Callable[[Tools], None], ...] = (
    topics,
    configs,
    console,
    group_lists,
    group_resets,
    group_deletions,
    offsets_and_records,
    performance,
    cluster,
    transactions,
)


def outcomes(kafka: Path, address: str, only: str = "") -> Iterator[Outcome]:
    """Run the cases, one after another. `only`: a part of a name."""
    tools = Tools(kafka, address)
    for case in CASES:
        if only not in case.__name__:
            continue
        began, state, words = time.monotonic(), PASSED, ""
        try:
            case(tools)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            state, words = FAILED, " ".join(str(error).split())[:600]
        yield Outcome(SUITE, case.__name__, state, time.monotonic() - began, words)
