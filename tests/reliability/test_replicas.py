"""Four nodes of a replicated store, real processes: two are killed, past what it promises, and one comes back.

Where MinIO's server is not there (`make setup-demo-replicas` builds it) the test is skipped.
"""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from support.broker_processes import PATIENCE_S, broker_command

from tidelog.cli.demo.store_nodes import BUCKET, StoreNodes, find_program
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.lake import Lake

URI = f"s3://{BUCKET}/lake"


@pytest.fixture
def nodes(tmp_path: Path):
    try:
        find_program()
    except UsageProblemError as e:
        pytest.skip(str(e))
    with StoreNodes(tmp_path / "nodes") as nodes:
        yield nodes


def test_without_a_majority_writers_are_told_to_try_again_and_go_on_with_one_node_more(nodes: StoreNodes) -> None:
    options = nodes.options() | {"lake.store.retry.timeout.ms": "1000"}
    with (
        Lake(URI, options=options) as lake,
        broker_command(URI, "--listener", "127.0.0.1:0", env=nodes.environment) as broker,
    ):
        lake.create_topic("orders", 2)
        topic = lake.topic("orders")
        acked = [topic.append([{"value": "before", "partition": 0}])]
        told: list[object] = []
        producer = Producer({"bootstrap.servers": broker.ready()["listener"], "delivery.timeout.ms": 1000 * PATIENCE_S})
        producer.produce("orders", b"before", partition=1, on_delivery=lambda error, _: told.append(error))
        assert producer.flush(PATIENCE_S) == 0

        for number in (2, 3):
            nodes.kill(number)
        producer.produce("orders", b"meanwhile", partition=1, on_delivery=lambda error, _: told.append(error))
        producer.poll(0)
        with pytest.raises(StorageUnavailableError) as refused:
            topic.append([{"value": "refused", "partition": 0}])
        assert refused.value.retriable
        assert values(lake, 0) == [b"before"]  # any two nodes are enough to read
        assert told == [None]

        nodes.start(3)
        nodes.await_up([3])
        acked.append(topic.append([{"value": "after", "partition": 0}]))
        assert producer.flush(PATIENCE_S) == 0
        assert told == [None, None]
        # What was refused is there once or not at all, between what was acknowledged.
        found = values(lake, 0)
        assert [value for value in found if value != b"refused"] == [b"before", b"after"]
        assert found.count(b"refused") <= 1
        assert found[acked[-1][0][0]] == b"after"
        assert values(lake, 1) == [b"before", b"meanwhile"]


def values(lake: Lake, partition: int) -> list[bytes]:
    """What a reader finds in a partition."""
    batches = lake.topic("orders").read(partition)
    return [value for batch in batches for value in batch.column("value").to_pylist()]
