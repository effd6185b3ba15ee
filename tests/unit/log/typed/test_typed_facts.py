"""What a typed topic's metaData says of its values, and the tables that come of configurations."""

import pickle
from dataclasses import replace

import orjson
import pyarrow as pa
import pytest
from support.logs import metadata

from tidelog.log.base.errors import CorruptLogError, InvalidConfigError
from tidelog.log.delta.actions import Metadata
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.typed import tables
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.tables import TypedTable, configured, table_facts
from tidelog.schemas.base.errors import SchemaError


def record(**fields: object) -> str:
    """An Avro record with these fields."""
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return orjson.dumps({"type": "record", "name": "R", "fields": listed}).decode()


def written(number: int, text: str, version: int | None = None, subject: str | None = "s") -> WrittenSchema:
    return WrittenSchema(number, "avro", text, (), subject, version, None)


def typed(table: TypedTable | None, **overrides: str) -> Metadata:
    """The metaData of a topic with this table; overrides with `_` for `.`."""
    keys = {f"tidelog.{key.replace('_', '.')}": value for key, value in overrides.items()}
    plain = metadata()
    changed = replace(plain, configuration={**plain.configuration, **table_facts(table), **keys})
    return changed if table is None else replace(changed, schema=table.schema)


A, B = record(a="int"), record(a="int", b="string")
AVRO = {"value.columns": "avro", "value.schema.subject": "s"}


def test_a_plain_topic_has_no_typing() -> None:
    assert typing_of(None) is None
    assert typing_of(metadata()) is None
    assert configured(None, {"retention.ms": "1"}) is None
    assert configured(None, {"value.columns": "none"}) is None


def test_a_typed_topic_whose_subject_has_no_schema_yet_has_no_columns() -> None:
    table = configured(None, AVRO)
    assert table == TypedTable()
    typing = typing_of(typed(table, value_columns="avro", value_schema_subject="s"))
    assert typing is not None
    assert (typing.kind, typing.bytes, typing.validate) == ("avro", "keep", False)
    assert (typing.columns, len(typing.writers), typing.newest) == (None, 0, None)


def test_a_typing_knows_writers_columns_and_what_is_newest() -> None:
    table = configured(None, AVRO, [written(7, A, 2), written(9, B, 1)])
    assert table is not None
    given = {"value_columns": "avro", "value_bytes": "derive", "topic_validate": "true", "value_schema_subject": "s"}
    typing = typing_of(typed(table, **given))
    assert typing is not None
    assert (typing.kind, typing.bytes, typing.validate, typing.newest) == ("avro", "derive", True, 7)
    assert typing.columns == pa.struct([("a", pa.int32()), ("b", pa.string())])
    assert sorted(typing.writers) == [7, 9]
    assert 8 not in typing.writers
    assert typing.writers[7].whole
    assert typing.writers[7].schema.columns == pa.struct([("a", pa.int32())])
    assert typing_of(typed(table, **given)) is typing  # read once
    sent = pickle.loads(pickle.dumps(typing))
    assert (sent.columns, sorted(sent.writers), sent.newest) == (typing.columns, [7, 9], 7)
    assert sent.writers[9].schema.columns == typing.writers[9].schema.columns


def test_payloads_of_protobuf_have_message_indexes_unless_their_schema_is_inline() -> None:
    text = 'syntax = "proto3"; message M { int32 a = 1; }'
    table = TypedTable().with_schemas([WrittenSchema(number, "protobuf", text) for number in (1, -1)])
    typing = typing_of(typed(table, value_columns="protobuf", value_schema=text))
    assert typing is not None
    payloads = pa.array([b"\0\x08\x05", b"\x08\x05"])
    found = {number: writer.schema.decode(payloads) for number, writer in typing.writers.items()}
    assert {number: one.ok.tolist() for number, one in found.items()} == {1: [True, False], -1: [False, True]}
    assert [found[1].columns[0].as_py(), found[-1].columns[1].as_py()] == [{"a": 5}, {"a": 5}]


def test_that_values_may_be_derived_is_remembered() -> None:
    table = configured(None, AVRO, [written(1, A)])
    assert table is not None
    kept = typing_of(typed(table))
    assert kept is not None
    assert not kept.may_derive
    derives = configured(table, {**AVRO, "value.bytes": "derive"})
    assert derives is not None
    for after in (derives, configured(derives, AVRO), configured(derives, {}), derives.with_schemas([written(2, B)])):
        typing = typing_of(typed(after))
        assert typing is not None
        assert typing.may_derive
        assert typing.writers[1].schema.columns == pa.struct([("a", pa.int32())])
    assert "tidelog.value.derived" not in table_facts(configured(None, AVRO))


def test_a_writer_whose_field_is_no_column_is_not_whole() -> None:
    table = configured(None, AVRO, [written(1, A), written(2, record(a="string", b="string"))])
    typing = typing_of(typed(table, value_columns="avro", value_schema_subject="s"))
    assert typing is not None
    assert (typing.writers[1].whole, typing.writers[2].whole) == (True, False)


def test_a_header_names_a_schema_by_its_guid() -> None:
    guid = bytes(range(16))
    table = configured(None, AVRO, [replace(written(5, A), guid=guid.hex())])
    typing = typing_of(typed(table, value_columns="avro", value_schema_subject="s"))
    assert typing is not None
    assert typing.guids == {guid: 5}


def test_without_columns_now_the_earlier_ones_are_still_read() -> None:
    table = configured(configured(None, AVRO, [written(7, A)]), {})
    typing = typing_of(typed(table))
    assert typing is not None
    assert (typing.kind, typing.newest, sorted(typing.writers)) == (None, None, [7])
    assert typing.columns == pa.struct([("a", pa.int32())])


def test_inline_schemas_get_ids_below_zero_and_keep_them() -> None:
    first = configured(None, {"value.columns": "avro", "value.schema": A})
    second = configured(first, {"value.columns": "avro", "value.schema": B})
    assert second is not None
    assert [(one.id, one.text) for one in second.schemas] == [(-2, B), (-1, A)]
    assert configured(second, {"value.columns": "avro", "value.schema": A}) == second
    for text, newest in ((A, -1), (B, -2)):
        typing = typing_of(typed(second, value_columns="avro", value_schema=text))
        assert typing is not None
        assert typing.newest == newest


def test_an_inline_schema_after_a_subject_counts_below_zero_too() -> None:
    table = configured(configured(None, AVRO, [written(7, A)]), {"value.columns": "avro", "value.schema": B})
    assert table is not None
    assert [one.id for one in table.schemas] == [-1, 7]
    typing = typing_of(typed(table, value_columns="avro", value_schema=B))
    assert typing is not None
    assert typing.newest == -1


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(SchemaError):
        configured(None, {"value.columns": "avro", "value.schema": "no schema"})


def test_a_subject_of_another_kind_is_refused() -> None:
    with pytest.raises(
        InvalidConfigError, match=r"Subject 's' has schemas of the type AVRO, and value\.columns is json"
    ):
        configured(None, AVRO | {"value.columns": "json"}, [written(1, A)])


def test_a_known_schema_is_never_another_one_but_may_be_found_elsewhere() -> None:
    table = configured(None, AVRO, [written(1, A, 1)])
    assert table is not None
    assert table.with_schemas([written(1, B, 2)]) == table
    moved = table.with_schemas([written(1, A, 2, "t")])
    assert [(one.text, one.subject, one.version) for one in moved.schemas] == [(A, "t", 2)]
    assert moved.columns == table.columns


@pytest.mark.parametrize("bound", ["MOST_SCHEMAS", "MOST_SCHEMA_BYTES"])
def test_a_table_knows_so_many_schemas_and_no_more(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(tables, bound, 1 if bound == "MOST_SCHEMAS" else len(A) + 1)
    table = configured(None, AVRO, [written(1, A), written(2, B)])
    assert table is not None
    assert [one.id for one in table.schemas] == [1]
    assert table.columns == pa.struct([("a", pa.int32())])
    with pytest.raises(InvalidConfigError, match="The topic has 1 schemas, and takes no more"):
        configured(table, {"value.columns": "avro", "value.schema": B})


@pytest.mark.parametrize("text", ["", "{}", '[{"id": 1}]'])
def test_facts_that_can_not_be_read_are_refused_with_what_is_wrong(text: str) -> None:
    table = configured(None, AVRO, [written(1, A)])
    broken = typed(table, value_schemas=text)
    with pytest.raises(
        CorruptLogError, match=r"Topic 't': its metaData has facts about values .*: its? .*tidelog check"
    ):
        typing_of(broken)
