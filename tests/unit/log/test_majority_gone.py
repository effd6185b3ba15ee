"""A replicated store of which a majority of nodes is gone, so that it reads and takes no writes: nothing is lost."""

from collections.abc import Iterator, Sequence

import pytest
from support.small_s3 import SmallS3, options_of, small_nodes
from support.waiting import eventually

from tidelog import Producer
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.lake import Lake
from tidelog.log.topic import Topic

URI = "s3://bucket/lake"


@pytest.fixture
def nodes() -> Iterator[list[SmallS3]]:
    with small_nodes() as nodes:
        yield nodes


def write(nodes: Sequence[SmallS3], *, taken: bool) -> None:
    """Have the store take writes, or not."""
    for node in nodes:
        node.unwritable = not taken


def values(topic: Topic) -> list[bytes]:
    return [value for batch in topic.read(0) for value in batch.column("value").to_pylist()]


def test_a_writer_gets_an_error_to_try_again_by_and_readers_go_on(nodes: list[SmallS3]) -> None:
    with Lake(URI, options=options_of(nodes, retry_timeout_ms="1")) as lake:
        lake.create_topic("orders", 1)
        topic = lake.topic("orders")
        topic.append([{"value": "before"}])
        write(nodes, taken=False)
        with pytest.raises(StorageUnavailableError, match="Too few of the store's nodes are there to write") as refused:
            topic.append([{"value": "refused"}])
        assert refused.value.retriable
        assert "fewer requests" not in str(refused.value)
        assert values(topic) == [b"before"]
        write(nodes, taken=True)
        assert topic.append([{"value": "after"}]) == {0: (1, 2)}
        assert values(topic) == [b"before", b"after"]
    with Lake(URI, options=options_of(nodes)) as again:
        assert values(again.topic("orders")) == [b"before", b"after"]


def test_a_producer_tries_until_writes_are_taken_and_each_record_is_there_once(nodes: list[SmallS3]) -> None:
    options = options_of(nodes, retry_timeout_ms="1")
    with Lake(URI, options=options) as lake:
        lake.create_topic("orders", 1)
        topic = lake.topic("orders")
        acked: list[str] = []
        failed: list[object] = []

        def told(error: object, message: object) -> None:
            (failed if error else acked).append(error or message)  # type: ignore[arg-type]

        with Producer({"lake": URI, "retry.backoff.ms": 10, "linger.ms": 0, **options}) as producer:
            producer.produce("orders", b"before", on_delivery=told)
            assert producer.flush(60) == 0
            write(nodes, taken=False)
            for number in range(20):
                producer.produce("orders", str(number).encode(), on_delivery=told)
            eventually(lambda: any(line.startswith("PUT") for node in nodes for line in node.seen[-1:]), "a try")
            assert producer.flush(0.1) == 20
            write(nodes, taken=True)
            assert producer.flush(60) == 0
        assert (len(acked), failed) == (21, [])
        assert values(topic) == [b"before", *(str(number).encode() for number in range(20))]
