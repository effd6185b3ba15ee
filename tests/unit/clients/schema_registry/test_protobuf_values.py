"""Protobuf values as JSON: what a stranger's value asks of a schema costs no compilation of its own."""

import pytest

from tidelog.clients.schema_registry.json_values import _Protobuf
from tidelog.clients.values.errors import SerializationError
from tidelog.schema_registry import Schema
from tidelog.schemas.protobuf import loading

TEXT = 'syntax = "proto3"; message First { string text = 1; } message Second { int32 number = 1; }'


class OneSchema:
    """A registry's client that knows one schema, whatever is asked for."""

    def get_schema(self, _number):
        return Schema(TEXT, "PROTOBUF")


def test_a_schema_is_compiled_once_whatever_types_of_it_are_named(monkeypatch):
    compiled, files_of = [], loading.files_of
    monkeypatch.setattr(loading, "files_of", lambda *given: compiled.append(given) or files_of(*given))
    values = _Protobuf(OneSchema())
    assert [values.type_of(7, [place]).DESCRIPTOR.name for place in (0, 1)] == ["First", "Second"]
    for place in ([2], [0, 0], [99]):
        with pytest.raises(SerializationError, match="names a type that its schema lacks"):
            values.type_of(7, place)
    assert len(compiled) == 1
