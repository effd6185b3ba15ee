"""Which columns a Protobuf schema has, and why a field has none."""

import base64
import pickle

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.typed.placing import type_at
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.compile import compile_schema
from tidelog.schemas.protobuf.text import compiled

POINT = "message Point { double x = 1; double y = 2; } "
POINT_TYPE = pa.struct([("x", pa.float64()), ("y", pa.float64())])
INSTANT = pa.timestamp("us", "UTC")


def listed(kind):
    return pa.list_(pa.field("element", kind))


def of(fields, more="", references=(), syntax="proto3", imports=()):
    header = f'syntax = "{syntax}"; package p; ' + "".join(f'import "{one}"; ' for one in imports)
    return compile_schema("protobuf", f"{header}message M {{ {fields} }} {more}", tuple(references))


TYPES = [
    ("double f = 1;", pa.float64()),
    ("float f = 1;", pa.float32()),
    ("int32 f = 1;", pa.int32()),
    ("int64 f = 1;", pa.int64()),
    ("uint32 f = 1;", pa.int64()),
    ("uint64 f = 1;", pa.int64()),
    ("sint32 f = 1;", pa.int32()),
    ("sint64 f = 1;", pa.int64()),
    ("fixed32 f = 1;", pa.int64()),
    ("fixed64 f = 1;", pa.int64()),
    ("sfixed32 f = 1;", pa.int32()),
    ("sfixed64 f = 1;", pa.int64()),
    ("bool f = 1;", pa.bool_()),
    ("string f = 1;", pa.string()),
    ("bytes f = 1;", pa.binary()),
    ("E f = 1;", pa.string()),
    ("optional int32 f = 1;", pa.int32()),
    ("oneof o { string f = 1; }", pa.string()),
    ("Point f = 1;", POINT_TYPE),
    ("repeated int32 f = 1;", listed(pa.int32())),
    ("repeated E f = 1;", listed(pa.string())),
    ("repeated Point f = 1;", listed(POINT_TYPE)),
    ("map<string, int32> f = 1;", pa.map_(pa.string(), pa.int32())),
    ("map<int64, Point> f = 1;", pa.map_(pa.string(), POINT_TYPE)),
    ("map<bool, E> f = 1;", pa.map_(pa.string(), pa.string())),
    ("google.protobuf.Timestamp f = 1;", INSTANT),
    ("repeated google.protobuf.Timestamp f = 1;", listed(INSTANT)),
    ("map<string, google.protobuf.Timestamp> f = 1;", pa.map_(pa.string(), INSTANT)),
    ("google.protobuf.DoubleValue f = 1;", pa.float64()),
    ("google.protobuf.FloatValue f = 1;", pa.float32()),
    ("google.protobuf.Int64Value f = 1;", pa.int64()),
    ("google.protobuf.UInt64Value f = 1;", pa.int64()),
    ("google.protobuf.Int32Value f = 1;", pa.int32()),
    ("google.protobuf.UInt32Value f = 1;", pa.int64()),
    ("google.protobuf.BoolValue f = 1;", pa.bool_()),
    ("google.protobuf.StringValue f = 1;", pa.string()),
    ("google.protobuf.BytesValue f = 1;", pa.binary()),
    ("repeated google.protobuf.StringValue f = 1;", listed(pa.string())),
    ("google.protobuf.Duration f = 1;", pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])),
    ("google.protobuf.Any f = 1;", pa.struct([("type_url", pa.string()), ("value", pa.binary())])),
]
KNOWN = [f"google/protobuf/{name}.proto" for name in ("timestamp", "wrappers", "duration", "any", "empty", "struct")]
ENUM = "enum E { A = 0; B = 1; } "


@pytest.mark.parametrize(("fields", "kind"), TYPES, ids=[fields for fields, _ in TYPES])
def test_a_fields_column(fields, kind):
    values = of(fields, (POINT if "Point" in fields else "") + ENUM, imports=KNOWN)
    assert values.columns == pa.struct([("f", kind)])
    assert values.left_out == {}


LEFT_OUT = [
    ("M f = 2;", "the message 'p.M' holds itself"),
    ("repeated M f = 2;", "what it holds is left out: the message 'p.M' holds itself"),
    ("map<string, M> f = 2;", "what it holds is left out: the message 'p.M' holds itself"),
    ("N f = 2;", "no field of it can be a column"),
    ("Empty f = 2;", "no field of it can be a column"),
    ("repeated Empty f = 2;", "what it holds is left out: no field of it can be a column"),
    ("google.protobuf.Struct f = 2;", "it may be anything"),
    ("repeated google.protobuf.Value f = 2;", "what it holds is left out: it may be anything"),
    ("google.protobuf.ListValue f = 2;", "it may be anything"),
]


@pytest.mark.parametrize(("field", "why"), LEFT_OUT, ids=[field for field, _ in LEFT_OUT])
def test_a_field_without_a_column(field, why):
    inner = "message N { M m = 1; } " if "N f" in field else "message Empty { }"
    values = of(f"int32 a = 1; {field} int32 z = 3;", inner, imports=KNOWN)
    assert values.columns == pa.struct([("a", pa.int32()), ("z", pa.int32())])
    assert values.left_out["f"] == why


def test_a_group_has_no_column():
    values = of("optional int32 a = 1; optional group G = 2 { optional int32 b = 1; }", syntax="proto2")
    assert values.columns == pa.struct([("a", pa.int32())])
    assert values.left_out == {"g": "it is a group"}


def test_names_that_differ_only_by_case():
    fields = "optional int32 Name = 1; optional string name = 2; optional Q q = 3;"
    values = of(fields, "message Q { optional int32 a = 1; optional int32 A = 2; }", syntax="proto2")
    assert values.columns == pa.struct([("Name", pa.int32()), ("q", pa.struct([("a", pa.int32())]))])
    assert sorted(values.left_out) == ["name", "q.A"]


def test_the_columns_are_those_of_all_roots():
    """`Point` is held by another message, and is none."""
    values = of("int32 id = 1; Point p = 2;", POINT + "message Other { int32 id = 5; string name = 2; bool p = 3; }")
    assert values.columns == pa.struct([("id", pa.int32()), ("p", POINT_TYPE), ("name", pa.string())])
    assert list(values.left_out) == ["Other.p"]


def test_bare_payloads_are_of_the_first_root_alone():
    text = 'syntax = "proto3"; message One { int32 id = 1; } message Other { string name = 1; }'
    assert compile_schema("protobuf", text).columns.names == ["id", "name"]
    bare = compile_schema("protobuf", text, bare=True)
    assert bare.columns.names == ["id"]
    assert bare.defaults == {("id",): 0}
    assert bare.decode(pa.array([b"\x08\x05"])).columns.to_pylist() == [{"id": 5}]


@pytest.mark.parametrize("more", ["", "message Other { M m = 1; }"])
def test_a_message_that_holds_itself_is_a_root_nevertheless(more):
    values = of("int32 id = 1; M inner = 2;" if not more else "int32 id = 1; Other o = 2;", more)
    assert values.columns == pa.struct([("id", pa.int32())])


def test_messages_inside_of_messages_hold_too():
    text = "message Inner { int32 a = 1; } message Outer { message Box { Inner i = 1; } Box b = 1; }"
    values = compile_schema("protobuf", f'syntax = "proto3"; {text}')
    assert values.columns.names == ["b"]


@pytest.mark.parametrize("serialized", [False, True])
def test_imports_of_references(serialized):
    point = f'syntax = "proto3"; package geo; import "unit.proto"; {POINT.replace("}", "Unit u = 3; }")}'
    unit = 'syntax = "proto3"; package geo; enum Unit { METER = 0; }'
    references = (("unit.proto", unit), ("geo/point.proto", point))
    text = """syntax = "proto3"; import "geo/point.proto"; import "google/protobuf/timestamp.proto";
        message Move { geo.Point from = 1; google.protobuf.Timestamp at = 2; }"""
    if serialized:
        text = base64.b64encode(compiled(text, dict(references)).file[-1].SerializeToString()).decode()
    values = compile_schema("protobuf", text, references)
    point = pa.struct([*POINT_TYPE, ("u", pa.string())])
    assert values.columns == pa.struct([("from", point), ("at", INSTANT)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "message",
        'syntax = "proto3";',
        'syntax = "proto3"; enum E { A = 0; }',
        'syntax = "proto3"; message M { Unknown u = 1; }',
        'syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }',
        'syntax = "proto3"; import "none.proto"; message M { int32 a = 1; }',
        'syntax = "proto3"; message M ' + "{ message M " * 100 + "{}" + "}" * 100,
        "\0",
        base64.b64encode(FileDescriptorProto(name="a", dependency=['x"; import "y']).SerializeToString()).decode(),
        base64.b64encode(FileDescriptorProto(name="a", dependency=["none.proto"]).SerializeToString()).decode(),
    ],
)
def test_what_is_no_schema(text):
    with pytest.raises(SchemaError):
        compile_schema("protobuf", text)


def test_a_descriptor_that_breaks_the_rules():
    file = FileDescriptorProto(name="a.proto", syntax="proto3")
    file.message_type.add(name="M").field.add(name="f", number=1, type=11, type_name=".None", label=1)
    with pytest.raises(SchemaError, match="Protobuf's rules"):
        compile_schema("protobuf", base64.b64encode(file.SerializeToString()).decode())


def test_a_schema_without_columns():
    values = of("", "message N { N n = 1; }")
    assert values.columns is None
    found = values.decode(pa.array([b"\0", b"\2\2", None], pa.binary()))
    assert found.columns.to_pylist() == [None] * 3
    assert not found.ok.any()


def test_a_schema_whose_types_multiply_is_cut():
    more = "".join(f"message T{i} {{ T{i + 1} a = 1; T{i + 1} b = 2; }} " for i in range(40))
    values = of("T0 t = 1;", more + "message T40 { int32 a = 1; }")
    assert any("more than 10000" in why for why in values.left_out.values())


def test_defaults():
    proto3 = of(
        "int32 a = 1; string b = 2; bytes c = 3; E d = 4; optional int32 e = 5; repeated int32 f = 6;"
        "map<string, int32> g = 7; Point h = 8; google.protobuf.Int32Value i = 9; oneof o { int32 j = 10; }",
        POINT + ENUM,
        imports=KNOWN,
    )
    firsts = {path[0]: one for path, one in proto3.defaults.items() if len(path) == 1}
    assert firsts == {"a": 0, "b": "", "c": b"", "d": "A", "f": [], "g": []}
    within = {path: one for path, one in proto3.defaults.items() if len(path) > 1}
    assert within == {("h", "x"): 0, ("h", "y"): 0}
    held = of("repeated Point a = 1; map<string, Point> b = 2; map<string, int32> c = 3;", POINT)
    assert {path for path in held.defaults if path[-1] == "x"} == {("a", "element", "x"), ("b", "value", "x")}
    proto2 = of(
        'optional int32 a = 1 [default = -7]; optional string b = 2 [default = "é"]; optional E c = 3 [default = B];'
        "optional int32 d = 4; required int32 e = 5; optional double f = 6 [default = inf];",
        ENUM,
        syntax="proto2",
    )
    assert proto2.defaults == {("a",): -7, ("b",): "é", ("c",): "B", ("f",): float("inf")}
    for values in (proto3, proto2):
        for path, default in values.defaults.items():
            pa.scalar(default, type_at(values.columns, path))


def test_compiled_once_and_pickled():
    for bare in (False, True):
        values = compile_schema("protobuf", f'syntax = "proto3"; {POINT}', bare=bare)
        assert compile_schema("protobuf", f'syntax = "proto3"; {POINT}', bare=bare) is values
        assert pickle.loads(pickle.dumps(values)) is values
        assert values.kind == "protobuf"
        assert not values.exact


FIELD_TYPES = ["int32", "string", "A", "B", "C", "map<string, A>", "map<int32, bytes>", "E", "uint64"]


LABELS = st.sampled_from(["", "repeated ", "optional "])
FIELDS = st.tuples(LABELS, st.sampled_from(FIELD_TYPES), st.sampled_from(["a", "b", "A", "x_y"]), st.integers(1, 9))


@given(st.dictionaries(st.sampled_from("ABC"), st.lists(FIELDS, max_size=4), min_size=1))
def test_any_schema_is_compiled_or_refused(messages):
    text = 'syntax = "proto3"; enum E { Z = 0; } '
    for name, fields in messages.items():
        inner = "".join(f"{label}{kind} {field} = {number}; " for label, kind, field, number in fields)
        text += f"message {name} {{ {inner}}} "
    try:
        values = compile_schema("protobuf", text)
    except SchemaError:
        return
    found = values.decode(pa.array([b"\0", b"\2\2", b"\2\4", b"\0\x0a\x00"]))
    assert found.columns.type == (values.columns or pa.struct([]))
    found.columns.validate(full=True)
