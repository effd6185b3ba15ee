"""Serializers and deserializers that builders build: their arguments, and how they end."""

from typing import Any

import pytest
from support.logs import memory_lake

from tidelog.clients.consumer.deserializing import DeserializingConsumer
from tidelog.clients.producer.serializing import SerializingProducer
from tidelog.clients.values.errors import KafkaException
from tidelog.clients.values.serialization import Deserializer, Serializer, SerializerBuilder


class Builder(SerializerBuilder):
    """Builds one serializer, and takes a key of its own out of the configuration."""

    def __init__(self, own: str = "registry.url") -> None:
        self.own = own
        self.made = Made()
        self.seen: list[tuple[dict[str, Any], bool]] = []

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Any, dict[str, Any]]:
        self.seen.append((dict(conf), is_key))
        return self.made, {name: value for name, value in conf.items() if name != self.own}


class Made(Serializer, Deserializer):
    """A serde that remembers its arguments."""

    def __init__(self) -> None:
        self.cluster_id: Any = None
        self.closed = 0

    def __call__(self, given: Any, _: Any = None) -> Any:
        return given

    def set_cluster_id_resolver(self, resolver: Any) -> None:
        self.cluster_id = resolver

    def close(self) -> None:
        self.closed += 1


class Refusing(Made):
    def close(self) -> None:
        super().close()
        raise OSError("gone")


@pytest.mark.parametrize(
    ("kind", "what"), [(SerializingProducer, "serializer"), (DeserializingConsumer, "deserializer")]
)
def test_a_client_builds_tells_and_closes(kind: Any, what: str):
    lake = memory_lake()[0]
    key, value, given = Builder("a"), Builder("b"), Made()
    conf = {"lake": lake, "group.id": "g", "a": 1, "b": 2}
    client = kind({**conf, f"key.{what}.builder": key, f"value.{what}.builder": value})
    assert (key.seen, value.seen) == ([(conf, True)], [(conf, False)])
    assert key.made.cluster_id() == lake.uri
    client.close()
    client.close()
    assert (key.made.closed, value.made.closed) == (1, 1)
    with kind({"lake": lake, "group.id": "g", f"key.{what}": given}):
        pass
    assert given.closed == 0  # its owner's
    assert kind[str, dict] is not None


def test_what_was_built_is_closed_when_its_client_can_not_begin():
    built, failing = Builder(), Builder()
    failing.build = lambda *_: (_ for _ in ()).throw(OSError("no registry"))  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no registry"):
        SerializingProducer(
            {"lake": memory_lake()[0], "key.serializer.builder": built, "value.serializer.builder": failing}
        )
    assert built.made.closed == 1
    with pytest.raises(KafkaException, match="misspelt"):
        SerializingProducer({"lake": memory_lake()[0], "misspelt": 1, "key.serializer.builder": built})
    assert built.made.closed == 2


def test_all_are_closed_also_when_one_refuses():
    first, second = Builder(), Builder()
    first.made, second.made = Refusing(), Refusing()
    client = SerializingProducer(
        {"lake": memory_lake()[0], "key.serializer.builder": first, "value.serializer.builder": second}
    )
    with pytest.raises(OSError, match="gone"):
        client.close()
    client.close()
    assert (first.made.closed, second.made.closed) == (1, 1)


@pytest.mark.parametrize("answer", [None, Made(), (Made(), None), (Made(), {}, 1)])
def test_an_answer_that_is_no_pair(answer: Any):
    builder = Builder()
    builder.build = lambda *_: answer  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"value\.serializer\.builder must answer"):
        SerializingProducer({"lake": memory_lake()[0], "value.serializer.builder": builder})


def test_one_or_the_other():
    with pytest.raises(ValueError, match=r"either key\.serializer or key\.serializer\.builder"):
        SerializingProducer({"lake": memory_lake()[0], "key.serializer": Made(), "key.serializer.builder": Builder()})
