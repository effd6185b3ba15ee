"""The client keeps what it asked for once, and no more than `cache.capacity` of it."""

import pytest
from support.logs import memory_lake

from tidelog.schema_registry import Schema, SchemaRegistryClient


def test_a_client_keeps_no_more_than_its_capacity(monkeypatch):
    lake, _, _ = memory_lake()
    client, sent = SchemaRegistryClient({"lake": lake, "cache.capacity": 2}), []
    for ask in (client._registry.schema, client._registry.register):
        spied = lambda *asked, ask=ask, **more: (sent.append((ask.__name__, asked[0])), ask(*asked, **more))[1]  # noqa: E731
        monkeypatch.setattr(client._registry, ask.__name__, spied)
    names = [f'{{"type":"fixed","name":"f","size":{size}}}' for size in (1, 2, 3)]
    for number, text in enumerate(names, 1):
        assert client.register_schema(f"s{number}", Schema(text)) == number
        client.get_schema(number)
    sent.clear()
    for number in (2, 3):
        client.get_schema(number)
        client.register_schema(f"s{number}", Schema(names[number - 1]))
    assert sent == []
    client.get_schema(1)
    assert sent == [("schema", 1)]


def test_a_capacity_is_one_or_more():
    with pytest.raises(ValueError, match=r"cache\.capacity"):
        SchemaRegistryClient({"lake": memory_lake()[0], "cache.capacity": 0})
