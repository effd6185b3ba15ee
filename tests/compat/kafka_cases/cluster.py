"""The scripts for brokers and for transactions."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from compat.kafka_cases.lakes import records
from compat.kafka_scripts import Tools
from confluent_kafka import KafkaException
from support.kafka_clients import tool_rows
from support.kafka_users import native_login
from support.transactional_clients import WAIT_S, send, transactional

_BROKERS = ("1", "2", "3")


def api_versions(tools: Tools) -> None:
    """Each broker says what it offers."""
    shown = tools("kafka-broker-api-versions")
    assert shown.count("Produce(0)") == 3, shown[:400]
    assert "UNKNOWN" not in shown, shown


def cluster(tools: Tools) -> None:
    """The cluster's id, its brokers; one that is not there can't be unregistered."""
    assert tools("kafka-cluster", "cluster-id").startswith("Cluster ID: ")
    rows = [line.split() for line in tools("kafka-cluster", "list-endpoints").splitlines()[1:]]
    assert [row[0] for row in rows] == list(_BROKERS)
    assert {f"{row[1]}:{row[2]}" for row in rows} == set(tools.address.split(","))
    assert "BrokerIdNotRegistered" in tools.refused("kafka-cluster", "unregister", "--id", "77")


def features(tools: Tools) -> None:
    """What brokers can do is described; it follows from their version, and none is changed."""
    (row,) = [line for line in tools("kafka-features", "describe").splitlines() if "transaction.version" in line]
    assert "FinalizedVersionLevel: 2" in row, row
    assert "transaction.version=2" in tools("kafka-features", "version-mapping")
    assert "transaction.version" in tools(
        "kafka-features", "feature-dependencies", "--feature", "transaction.version=2"
    )
    for change in (("disable", "--feature", "transaction.version"), ("upgrade", "--release-version", "4.1")):
        assert "follows from its version" in tools.refused("kafka-features", *change)


def leader_election(tools: Tools) -> None:
    """Each partition has the leader that it would have."""
    tools("kafka-topics", "--create", "--topic", "led", "--partitions", "2")
    place = ("--topic", "led", "--partition", "1")
    for kind in ("preferred", "unclean"):
        shown = tools("kafka-leader-election", "--election-type", kind, *place)
        assert "Valid replica already elected for partitions led-1" in shown, shown
    plan = tools.file("elected.json", json.dumps({"partitions": [{"topic": "led", "partition": 0}]}))
    shown = tools("kafka-leader-election", "--election-type", "preferred", "--path-to-json-file", plan)
    assert "led-0" in shown, shown
    tools("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")


def log_dirs(tools: Tools) -> None:
    """Sizes of partitions are those of the lake."""
    tools.topic("sized")
    shown = tools("kafka-log-dirs", "--describe", "--topic-list", "sized").splitlines()
    (found,) = [json.loads(line) for line in shown if line.startswith("{")]
    folders = [folder for broker in found["brokers"] for folder in broker["logDirs"]]
    assert {folder["error"] for folder in folders} == {None}
    sizes = {one["partition"]: one["size"] for folder in folders for one in folder["partitions"]}
    assert sorted(sizes) == ["sized-0", "sized-1", "sized-2"]
    assert min(sizes.values()) > 0, sizes
    (one,) = [line for line in tools("kafka-log-dirs", "--describe", "--broker-list", "2").splitlines() if "{" in line]
    assert [broker["broker"] for broker in json.loads(one)["brokers"]] == [2]


def metadata_quorum(tools: Tools) -> None:
    """The brokers are its voters."""
    status = tools("kafka-metadata-quorum", "describe", "--status")
    assert all(f'"id": {number}' in status for number in _BROKERS), status
    rows = tool_rows(tools("kafka-metadata-quorum", "describe", "--replication"))
    assert sorted(row["NodeId"] for row in rows) == list(_BROKERS)
    assert [row["Status"] for row in rows].count("Leader") == 1


def reassignments(tools: Tools) -> None:
    """A plan is proposed. A plan of what is so already is executed, verified, listed, cancelled; others are refused."""
    tools("kafka-topics", "--create", "--topic", "moved", "--partitions", "2")
    tool = "kafka-reassign-partitions"
    topics = tools.file("moved.json", json.dumps({"topics": [{"topic": "moved"}], "version": 1}))
    shown = tools(tool, "--generate", "--topics-to-move-json-file", topics, "--broker-list", ",".join(_BROKERS))
    now, proposed = (json.loads(line) for line in shown.splitlines() if line.startswith("{"))
    assert len(now["partitions"]) == len(proposed["partitions"]) == 2
    plan = tools.file("plan.json", json.dumps(now))
    assert "Successfully started" in tools(tool, "--execute", "--reassignment-json-file", plan)
    shown = tools(tool, "--verify", "--reassignment-json-file", plan)
    assert shown.count("is completed") == 2, shown
    assert "No partition reassignments found" in tools(tool, "--list")
    assert "are active" in tools(tool, "--cancel", "--reassignment-json-file", plan)
    other = str(int(now["partitions"][0]["replicas"][0]) % 3 + 1)
    now["partitions"][0]["replicas"] = [int(other)]
    elsewhere = tools.file("elsewhere.json", json.dumps(now))
    assert "Nothing is to be moved" in tools.refused(tool, "--execute", "--reassignment-json-file", elsewhere)
    throttled = ("--execute", "--additional", "--throttle", "1000000")
    assert "no replicas" in tools.refused(tool, *throttled, "--reassignment-json-file", plan)


def transactions(tools: Tools) -> None:
    """All actions: what hangs is found nowhere, shown, and ended in three ways."""
    tools("kafka-topics", "--create", "--topic", "hanging")
    tool, place = "kafka-transactions", ("--topic", "hanging", "--partition", "0")
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
        more = native_login(tools.user) if tools.user else {}
        producer = transactional(tools.address, name, transaction_timeout_ms=600_000, **more)
        producer.begin_transaction()
        send(producer, ["a", "b"], "hanging")
        (listed,) = (row for row in tool_rows(tools(tool, "list")) if row["TransactionalId"] == name)
        assert listed["TransactionState"] == "Ongoing", listed
        young, named = ("--duration-filter", "600000"), ("--transactional-id-pattern", f"h.*{number}")
        for filters, there in ((young, False), (named, True)):
            rows = tool_rows(tools(tool, "list", *filters))
            assert any(row["TransactionalId"] == name for row in rows) == there, filters
        (described,) = tool_rows(tools(tool, "describe", "--transactional-id", name))
        assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", "hanging-0"), described
        (shown,) = tool_rows(tools(tool, "describe-producers", *place))
        assert shown["CurrentTransactionStartOffset"] == "0", shown
        rows = tool_rows(tools(tool, "find-hanging", "--topic", "hanging", "--max-transaction-timeout", "0"))
        assert not rows, rows
        tools(tool, *way(shown))
        assert not tool_rows(tools(tool, "describe-producers", *place))
        (described,) = tool_rows(tools(tool, "describe", "--transactional-id", name))
        assert described["TransactionState"] != "Ongoing", described
        with suppress(KafkaException):
            producer.commit_transaction(WAIT_S)
            raise AssertionError(f"{name} was committed after its end")
    assert records(tools, "hanging") == []


def client_metrics(tools: Tools) -> None:
    """A subscription to clients' metrics is made, listed, deleted."""
    tools("kafka-client-metrics", "--alter", "--name", "all", "--metrics", "org.apache.kafka", "--interval", "60000")
    assert "all" in tools("kafka-client-metrics", "--list").split()
    tools("kafka-client-metrics", "--delete", "--name", "all")
