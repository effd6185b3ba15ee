"""Metrics of real clients (KIP-714): a subscription by Kafka's own tool, pushes of librdkafka and Java, columns."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

import confluent_kafka
from support.brokers import running_broker
from support.kafka_clients import ACCESS_TOOLS, ready
from support.kafka_programs import JavaProgram
from support.waiting import eventually

from tidelog.log.delta.layout import CLIENT_METRICS_TOPIC
from tidelog.log.lake import Lake

MEMBER = Path(__file__).parents[2] / "support/GroupMember.java"
JAVA = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{ACCESS_TOOLS.folder}/*"]


def client_metrics(address: str, *args: str) -> str:
    """What kafka-client-metrics.sh prints."""
    command = [*JAVA, "org.apache.kafka.tools.ClientMetricsCommand", "--bootstrap-server", address, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pushed(lake: Lake) -> dict[str, set[str]]:
    """{client id: names of metrics} that are in the topic."""
    metrics: dict[str, set[str]] = {}
    if CLIENT_METRICS_TOPIC in lake.topics(internal=True):
        for batch in lake.topic(CLIENT_METRICS_TOPIC).read(0, include_columns=True):
            for row in batch.column("columns").to_pylist():
                metrics.setdefault(f"{row['client_id']} {row['client_software_name']}", set()).add(row["metric"])
    return metrics


def test_clients_push_what_a_subscription_asks_for(lake: Lake, tmp_path: Path) -> None:
    ready(ACCESS_TOOLS)
    with ExitStack() as stack:
        address = stack.enter_context(running_broker(lake))
        asked = ("--metrics", "org.apache.kafka.", "--interval", "200", "--match", "client_id=shop-.*")
        client_metrics(address, "--alter", "--name", "shop", *asked)
        assert "interval.ms=200" in client_metrics(address, "--describe", "--name", "shop")
        settings = ("group.id=g", "client.id=shop-java")
        java = stack.enter_context(JavaProgram([*JAVA, MEMBER, address, "t", *settings], tmp_path / "java.log"))
        producer, other = (
            confluent_kafka.Producer({"bootstrap.servers": address, "client.id": name})
            for name in ("shop-rdkafka", "else")
        )

        def all_there() -> bool:
            for one in (producer, other):
                one.produce("t", b"v", partition=0)
                one.flush(10)
            there = pushed(lake)
            latency = "org.apache.kafka.producer.node.request.latency.avg"
            connections = "org.apache.kafka.consumer.connection.creation.total"
            return latency in there.get("shop-rdkafka confluent-kafka-python", ()) and connections in there.get(
                "shop-java apache-kafka-java", ()
            )

        try:
            eventually(all_there, "metrics of both clients")
        except AssertionError as e:
            raise AssertionError(f"{e}; there are {pushed(lake)}; {java.said()[-2000:]}") from None
        assert all(name.startswith("shop-") for name in pushed(lake))
        java.kill()
        assert client_metrics(address, "--list") == "shop\n"
        client_metrics(address, "--delete", "--name", "shop")
        assert client_metrics(address, "--list") == "\n"
