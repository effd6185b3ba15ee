"""Kafka's own kafka-transactions at a broker: a transaction that hangs is shown, and ended by an operator."""

import subprocess

import pytest
from confluent_kafka import KafkaException
from support.brokers import running_broker
from support.kafka_clients import TOOLS, ready, tool_rows
from support.transactional_clients import WAIT_S, agreed, send, transactional

from tidelog.log.lake import Lake

PLACE = ("--topic", "out", "--partition", "0")


def transactions(address: str, *args: str) -> list[dict[str, str]]:
    """The rows that the tool prints."""
    command = [*map(str, TOOLS.command(TOOLS.folder)), "--bootstrap-server", address, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return tool_rows(done.stdout) if done.stdout.strip() else []


@pytest.mark.parametrize("way", ["by its start offset", "by its producer", "by its id"])
def test_an_operator_ends_a_transaction_that_hangs(lake: Lake, way: str) -> None:
    ready(TOOLS)
    lake.create_topic("out", partitions=1)
    with running_broker(lake) as address:
        producer = transactional(address, "hanging")
        producer.begin_transaction()
        send(producer, ["committed"])
        producer.commit_transaction(WAIT_S)
        producer.begin_transaction()
        send(producer, ["a", "b"])
        assert not transactions(address, "find-hanging", *PLACE, "--max-transaction-timeout", "0")
        (shown,) = transactions(address, "describe-producers", *PLACE)
        assert shown["CurrentTransactionStartOffset"] == "1", "behind what is committed"
        ends = {
            "by its start offset": ("abort", *PLACE, "--start-offset", "1"),
            "by its producer": (
                *("abort", *PLACE, "--producer-id", shown["ProducerId"], "--producer-epoch", shown["ProducerEpoch"]),
                *("--coordinator-epoch", shown["LatestCoordinatorEpoch"]),
            ),
            "by its id": ("forceTerminateTransaction", "--transactionalId", "hanging"),
        }
        transactions(address, *ends[way])
        assert not transactions(address, "describe-producers", *PLACE)
        with pytest.raises(KafkaException) as refused:
            producer.commit_transaction(WAIT_S)
        assert refused.value.args[0].fatal()
        assert agreed(lake, address) == ["committed"]
