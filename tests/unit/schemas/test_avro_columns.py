"""Which columns an Avro schema has, what is left out and why, and what its defaults are."""

import json
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from support.avro_payloads import record, rows, write

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.compile import compile_schema

MICROS = pa.timestamp("us", "UTC")


def compiled(schema, *references):
    texts = tuple((name, json.dumps(text)) for name, text in references)
    return compile_schema("avro", schema if isinstance(schema, str) else json.dumps(schema), texts)


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


TYPES = {
    "boolean": ("boolean", pa.bool_()),
    "int": ("int", pa.int32()),
    "long": ("long", pa.int64()),
    "float": ("float", pa.float32()),
    "double": ("double", pa.float64()),
    "bytes": ("bytes", pa.binary()),
    "string": ("string", pa.string()),
    "object": ({"type": "string", "avro.java.string": "String"}, pa.string()),
    "date": (logical("int", "date"), pa.date32()),
    "time-millis": (logical("int", "time-millis"), pa.int32()),
    "time-micros": (logical("long", "time-micros"), pa.int64()),
    "timestamp-millis": (logical("long", "timestamp-millis"), MICROS),
    "timestamp-micros": (logical("long", "timestamp-micros"), MICROS),
    "timestamp-nanos": (logical("long", "timestamp-nanos"), pa.int64()),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), pa.int64()),
    "uuid": (logical("string", "uuid"), pa.string()),
    "decimal": (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2)),
    "decimal without scale": (logical("bytes", "decimal", precision=38), pa.decimal128(38)),
    "wider decimal than Delta's": (logical("bytes", "decimal", precision=39), pa.binary()),
    "decimal without precision": (logical("bytes", "decimal"), pa.binary()),
    "date on what is no int": (logical("string", "date"), pa.string()),
    "fixed": ({"type": "fixed", "name": "F", "size": 3}, pa.binary()),
    "duration": ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, pa.binary()),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
    "null first": (["null", "int"], pa.int32()),
    "null last": (["int", "null"], pa.int32()),
    "union of one": (["int"], pa.int32()),
    "array": ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.field("element", pa.int32()))),
    "map": ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.int32())),
    "record": (
        {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]},
        pa.struct([("x", pa.int32())]),
    ),
    "type of a type": ({"type": {"type": "map", "values": "int"}}, pa.map_(pa.string(), pa.int32())),
}


@pytest.mark.parametrize("name", TYPES)
def test_the_column_of_a_type(name):
    kind, column = TYPES[name]
    schema = compiled(record(it=kind))
    assert schema.columns == pa.struct([("it", column)])
    assert schema.exact
    assert not schema.left_out


NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
}
LEFT_OUT = {
    "several types": (["null", "int", "string"], "it", "several types"),
    "two types": (["int", "string"], "it", "several types"),
    "null": ("null", "it", "null"),
    "only null": (["null"], "it", "several types"),
    "recursion": (NODE, "it.next", "'Node' holds itself"),
    "array of null": ({"type": "array", "items": "null"}, "it", "no bytes"),
    "array of empty records": (
        {"type": "array", "items": {"type": "record", "name": "N", "fields": []}},
        "it",
        "no bytes",
    ),
    "array of a union": ({"type": "array", "items": ["int", "string"]}, "it", "several types"),
    "map of null": ({"type": "map", "values": "null"}, "it", "null"),
    "empty record": ({"type": "record", "name": "N", "fields": []}, "it", "no field"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_can_be_no_column_is_left_out_with_its_reason(name):
    kind, path, why = LEFT_OUT[name]
    schema = compiled(record(before="int", it=kind, after="string"))
    assert why in schema.left_out[path]
    assert not schema.exact
    assert {"before", "after"} <= {field.name for field in schema.columns}
    if name == "recursion":
        assert schema.columns.field("it").type == pa.struct([("v", pa.int32())])
    else:
        assert schema.columns.get_field_index("it") < 0


VALUES = {
    "several types": [None, 5, "text"],
    "two types": [5, "text"],
    "null": [None],
    "only null": [None],
    "recursion": [{"v": 1, "next": {"v": 2, "next": None}}, {"v": 3, "next": None}],
    "array of null": [[], [None, None]],
    "array of empty records": [[], [{}] * 70],
    "array of a union": [[], [1, "a", 2]],
    "map of null": [{}, {"k": None}],
    "empty record": [{}],
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("many", [1, 100])
def test_the_other_fields_are_read_across_what_is_left_out(name, many):
    raw = record(before="int", it=LEFT_OUT[name][0], after="string")
    values = [{"before": i, "it": one, "after": f"{i}"} for i, one in enumerate(VALUES[name] * many)]
    found = compiled(raw).decode(pa.array(write(raw, values), pa.binary()))
    assert found.ok.all()
    assert [(one["before"], one["after"]) for one in rows(found.columns)] == [(i, f"{i}") for i in range(len(values))]


def test_names_that_clash_or_are_forbidden_are_left_out():
    schema = compiled(record(**{"id": "int", "ID": "int", "a b": "int", "x=y": "int", "other": "int"}))
    assert [field.name for field in schema.columns] == ["id", "other"]
    assert "'id' only by case" in schema.left_out["ID"]
    assert "forbids" in schema.left_out["a b"]
    found = schema.decode(pa.array([bytes([2, 4, 6, 8, 10]), bytes([2, 4, 6, 8])], pa.binary()))
    assert found.columns.to_pylist() == [{"id": 1, "other": 5}, None]


@pytest.mark.parametrize("text", ['"string"', "string", '["null", "int"]', '{"type": "array", "items": "int"}'])
def test_a_schema_that_is_no_record_has_no_columns(text):
    schema = compiled(text)
    assert schema.columns is None
    assert schema.left_out == {"": "it is no record"}
    found = schema.decode(pa.array([b"\x00", b"\xff"], pa.binary()))
    assert found.ok.tolist() == [True, False]
    assert len(found.columns) == 2


def test_a_record_that_holds_itself_has_its_other_fields():
    schema = compiled(NODE)
    assert schema.columns == pa.struct([("v", pa.int32())])
    payloads = [
        bytes([2, 2, 4, 2, 6, 0]),
        bytes([2, 2, 4, 2, 6]),
        b"\x02\x02" * 90 + b"\x02\x00",
        b"\x02\x02" * 5000 + b"\x02\x00",
    ]
    for many in (1, 50):
        found = schema.decode(pa.array(payloads * many, pa.binary()))
        assert found.ok.tolist() == [True, False, False, False] * many
    assert schema.problem(payloads[2]).endswith("it is nested deeper than 100 levels.")


def test_named_types_namespaces_and_references():
    inner = {
        "type": "record",
        "name": "In",
        "namespace": "a.b",
        "aliases": ["Old"],
        "fields": [{"name": "x", "type": "int"}],
    }
    fields = [
        {"name": "one", "type": inner},
        {"name": "two", "type": "a.b.In"},
        {"name": "three", "type": ["null", {"type": "array", "items": "a.b.In"}]},
        {"name": "four", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}},
        {"name": "five", "type": "E"},
        {"name": "six", "type": "other.Ref"},
    ]
    schema = {"type": "record", "name": "Top", "namespace": "c", "fields": fields}
    reference = {"type": "record", "name": "other.Ref", "fields": [{"name": "y", "type": "string"}]}
    found = compiled(schema, ("ref.avsc", reference))
    struct = pa.struct([("x", pa.int32())])
    assert found.columns.field("one").type == found.columns.field("two").type == struct
    assert found.columns.field("three").type == pa.list_(pa.field("element", struct))
    assert found.columns.field("five").type == pa.string()
    assert found.columns.field("six").type == pa.struct([("y", pa.string())])
    assert found.exact
    with pytest.raises(SchemaError, match=r"the type 'other\.Ref' is not defined"):
        compiled(schema)


WRONG = (
    "{",
    '{"type": "record"}',
    "nothing",
    "7",
    '{"type": 5}',
    '{"type": []}{',
    "[" * 100_000,
    '{"type": "fixed", "name": "F", "size": -1}',
    '{"type": "enum", "name": "R", "symbols": 5}',
    '{"type": "record", "name": "R", "fields": 5}',
    '{"type": "record", "name": "R", "fields": [5]}',
    '{"type": "record", "name": "R", "fields": [{"name": "x"}]}',
)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_schema_is_refused(text):
    with pytest.raises(SchemaError):
        compiled(text)


def test_a_schema_that_is_immense_once_written_out_is_refused():
    kinds = [{"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}]
    for i in range(1, 40):
        fields = [{"name": name, "type": f"R{i - 1}"} for name in "ab"]
        kinds.append({"type": "record", "name": f"R{i}", "fields": fields})
    with pytest.raises(SchemaError, match="more than 10000 types"):
        compiled("R39", *((f"{i}", kind) for i, kind in enumerate(kinds)))


def test_the_defaults_of_fields():
    fields = [
        {"name": "a", "type": ["null", "int"], "default": None},
        {"name": "b", "type": "bytes", "default": "\u00ff\u0001"},
        {"name": "c", "type": logical("bytes", "decimal", precision=5, scale=2), "default": "\u00ff\u0080"},
        {
            "name": "wide",
            "type": logical("bytes", "decimal", precision=38, scale=2),
            "default": "\u0001" + "\u0002" * 14,
        },
        {"name": "d", "type": logical("long", "timestamp-millis"), "default": 5},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "default": "B"},
        {"name": "f", "type": {"type": "array", "items": logical("int", "date")}, "default": [3]},
        {"name": "g", "type": {"type": "map", "values": "int"}, "default": {"k": 7}},
        {
            "name": "h",
            "type": {"type": "record", "name": "In", "fields": [{"name": "x", "type": ["string", "null"]}]},
            "default": {"x": "text"},
        },
        {"name": "i", "type": "int"},
        {"name": "j", "type": "double", "default": 1},
    ]
    schema = compiled({"type": "record", "name": "Top", "fields": fields})
    assert ("i",) not in schema.defaults
    assert schema.defaults["b",] == b"\xff\x01"
    assert schema.defaults["c",] == Decimal("-1.28")
    assert schema.defaults["wide",] == Decimal("52330207554645125511072061043512.34")
    made = {name: pa.array([value], schema.columns.field(name).type) for (name,), value in schema.defaults.items()}
    assert made["d"].cast(pa.int64()).to_pylist() == [5000]
    assert made["f"].flatten().cast(pa.int32()).to_pylist() == [3]
    assert made["g"].to_pylist() == [[("k", 7)]]
    assert made["h"].to_pylist() == [{"x": "text"}]
    assert made["a"].null_count == 1


def test_nothing_heavy_is_imported():
    code = (
        "import sys\nfrom tidelog.schemas.compile import compile_schema\n"
        "compile_schema('avro', '\"int\"').decode\n"
        "print([m for m in ('polars', 'pandas', 'fastavro', 'google.protobuf') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_defaults_of_fields_within_others():
    """A record's default has those of the fields that it leaves out."""
    inner = {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int", "default": 7}]}
    fields = [
        {"name": "a", "type": ["null", inner], "default": None},
        {"name": "b", "type": {"type": "array", "items": "In"}},
        {"name": "c", "type": {"type": "map", "values": "In"}},
        {"name": "d", "type": "In", "default": {}},
    ]
    schema = compiled({"type": "record", "name": "Top", "fields": fields})
    within = {path: one for path, one in schema.defaults.items() if path[-1] == "x"}
    assert within == {("a", "x"): 7, ("b", "element", "x"): 7, ("c", "value", "x"): 7, ("d", "x"): 7}
    assert schema.defaults["d",] == {"x": 7}
