"""Which clients make a lake where there is none: those that write, when they do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidelog import AdminClient, Consumer, KafkaError, KafkaException, Lake, Producer
from tidelog.admin import ConfigResource, NewTopic, OffsetSpec, ResourceType
from tidelog.clients.values.partitions import TopicPartition


def refused(call: Callable[[], Any], folder: Path) -> None:
    """The call says that there is no lake, and none is there after it."""
    with pytest.raises(KafkaException, match="There is no lake at") as refusal:
        call()
    assert refusal.value.args[0].code() == KafkaError._INVALID_ARG
    assert not folder.exists()


def test_a_consumer_makes_none(tmp_path: Path):
    folder = tmp_path / "none"
    refused(lambda: Consumer({"bootstrap.servers": str(folder), "group.id": "g"}), folder)


LOOKS: dict[str, Callable[[AdminClient], Any]] = {
    "list_topics": lambda admin: admin.list_topics(),
    "list_topics of one": lambda admin: admin.list_topics("t"),
    "list_groups": lambda admin: admin.list_groups(),
    "list_consumer_groups": lambda admin: admin.list_consumer_groups().result(),
    "describe_configs": lambda admin: one(admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t")])),
    "describe_configs of the lake": lambda admin: one(
        admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")])
    ),
    "list_offsets": lambda admin: one(admin.list_offsets({TopicPartition("t", 0): OffsetSpec.latest()})),
    "delete_topics": lambda admin: one(admin.delete_topics(["t"])),
}


def one(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result()


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_an_admin_client_that_looks_makes_none(look: Callable[[AdminClient], Any], tmp_path: Path):
    folder = tmp_path / "none"
    with AdminClient({"bootstrap.servers": str(folder)}) as admin:
        refused(lambda: look(admin), folder)


def test_an_admin_client_that_creates_a_topic_makes_one(tmp_path: Path):
    with AdminClient({"bootstrap.servers": str(tmp_path / "lake")}) as admin:
        one(admin.create_topics([NewTopic("t", 2)]))
        assert list(admin.list_topics().topics) == ["t"]


def test_a_producer_that_produces_makes_one(tmp_path: Path):
    with Producer({"bootstrap.servers": str(tmp_path / "lake")}) as producer:
        refused(producer.list_topics, tmp_path / "lake")
        producer.produce("t", b"v")
        assert producer.flush(30) == 0
    assert Lake(tmp_path / "lake", create=False).offsets("t") == {0: (0, 1)}


def test_a_transactional_producer_makes_one(tmp_path: Path):
    with Producer({"bootstrap.servers": str(tmp_path / "lake"), "transactional.id": "x"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("t", b"v")
        producer.commit_transaction()
    assert Lake(tmp_path / "lake", create=False).offsets("t") == {0: (0, 1)}
