"""How rows become records, as tables over names and types: no Spark."""

import pytest

from tidelog.commands.failures import UsageProblemError
from tidelog.jobs.transfer.records import RecordExpressions, record_columns

ORDER = {"id": "bigint", "order at": "timestamp", "city": "string", "raw": "binary", "lines": "array<int>"}
KAFKA = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
COPIED_HEADERS = "transform({}, h -> named_struct('key', h.key, 'value', CAST(h.value AS BINARY)))"


def made(columns, types=None, header=None, **wanted):
    """The columns that the rule makes; `types` are those of expressions that are no plain column."""
    known = {**{f"`{name}`": kind for name, kind in columns.items()}, **(types or {})}
    options = RecordExpressions(header=[f"{name}={sql}" for name, sql in (header or {}).items()], **wanted)
    return record_columns(columns, options, header or {}, lambda _, sql: known[sql])


def as_json(*names):
    return f"to_json(struct({', '.join(f'`{name}`' for name in names)}), map('ignoreNullFields', 'false'))"


def test_the_columns_that_no_option_names_are_the_value():
    found = made(ORDER, key="id", timestamp="order at", header={"raw": "raw"})
    assert found["value"] == as_json("city", "lines")
    assert made({"a": "int", "b`c": "int"})["value"] == as_json("a", "b``c")


@pytest.mark.parametrize(
    ("key", "kind", "sql"),
    [
        ("city", None, "`city`"),
        ("raw", None, "`raw`"),
        ("id", None, "CAST(`id` AS STRING)"),
        ("order at", None, "CAST(`order at` AS STRING)"),
        ("id + 1", "bigint", "CAST(id + 1 AS STRING)"),
        ("price", "decimal(10,2)", "CAST(price AS STRING)"),
        ("lower(city)", "string", "lower(city)"),
        ("lines", None, "to_json(`lines`, map('ignoreNullFields', 'false'))"),
        ("struct(id)", "struct<id:bigint>", "to_json(struct(id), map('ignoreNullFields', 'false'))"),
    ],
)
def test_a_key_of_every_type(key, kind, sql):
    assert made(ORDER, {key: kind}, key=key)["key"] == sql
    assert made(ORDER, {key: kind}, value=key) == {"value": sql}


def test_records_stay_as_they_are_except_for_their_partition():
    assert made(KAFKA) == {
        "key": "`key`",
        "value": "`value`",
        "headers": COPIED_HEADERS.format("`headers`"),
        "timestamp": "`timestamp`",
    }
    assert made({"value": "string"}) == {"value": "`value`"}
    assert made(KAFKA, partition="partition")["partition"] == "CAST(`partition` AS INT)"
    assert made(KAFKA, {"upper(string(key))": "string"}, key="upper(string(key))")["key"] == "upper(string(key))"
    assert made(KAFKA, header={"a": "topic"})["headers"].startswith("array(named_struct('key', 'a'")


@pytest.mark.parametrize(
    "columns", [{"id": "int", "value": "string"}, {"key": "string", "value": "int"}, {"key": "string"}]
)
def test_other_rows_with_a_column_value_lose_nothing(columns):
    assert made(columns) == {"value": as_json(*columns)}


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("map<string,string>", COPIED_HEADERS.format("map_entries(h)")),
        ("map<string,binary>", COPIED_HEADERS.format("map_entries(h)")),
        ("array<struct<key:string,value:string>>", COPIED_HEADERS.format("h")),
        ("array<struct<key:string,value:binary>>", COPIED_HEADERS.format("h")),
    ],
)
def test_headers_of_every_shape(kind, sql):
    assert made(ORDER, {"h": kind}, headers="h")["headers"] == sql


def test_single_headers_keep_their_order_and_their_quotes():
    found = made(ORDER, {"'x'": "string"}, header={"it's": "'x'", "id": "id"})["headers"]
    assert found == (
        "array(named_struct('key', 'it\\'s', 'value', CAST('x' AS BINARY)),"
        " named_struct('key', 'id', 'value', CAST(CAST(`id` AS STRING) AS BINARY)))"
    )


@pytest.mark.parametrize(
    ("kind", "sql"), [("timestamp", "t"), ("date", "CAST(t AS TIMESTAMP)"), ("timestamp_ntz", "CAST(t AS TIMESTAMP)")]
)
def test_timestamps(kind, sql):
    assert made(ORDER, {"t": kind}, timestamp="t")["timestamp"] == sql


@pytest.mark.parametrize(
    ("wanted", "kind", "words"),
    [
        ({"key": "x"}, "interval day to second", "--key x is of type interval day to second"),
        ({"value": "x"}, "variant", "cast it to string or binary, such as --value 'CAST(x AS STRING)'"),
        ({"headers": "x"}, "string", "a map from string to string or binary, or an array of structs"),
        ({"headers": "x"}, "map<int,string>", "--header source=source"),
        ({"headers": "x"}, "array<struct<k:string,v:string>>", "structs of key and value"),
        ({"headers": "x", "header": {"a": "x"}}, "string", "--headers and --header both"),
        ({"timestamp": "x"}, "string", "'to_timestamp(x)' for text"),
        ({"timestamp": "x"}, "bigint", "'timestamp_millis(x)' for milliseconds"),
        ({"partition": "x"}, "string", "a whole number from 0 on"),
        ({"header": {"a": "x"}}, "variant", "--header a x is of type variant"),
    ],
)
def test_what_can_be_no_record_is_refused(wanted, kind, words):
    with pytest.raises(UsageProblemError) as error:
        made(ORDER, {"x": kind}, **wanted)
    assert words in str(error.value)


def test_a_value_of_no_columns_is_refused():
    with pytest.raises(UsageProblemError, match="Nothing is left for the value"):
        made({"id": "int"}, key="id")
