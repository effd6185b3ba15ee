"""Which columns a JSON Schema has, and why a property has none."""

import json
import pickle
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.compile import compile_schema

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
POINT_TYPE = pa.struct([("x", pa.float64()), ("y", pa.float64())])


def listed(kind):
    return pa.list_(pa.field("element", kind))


def of(properties, references=(), **more):
    text = json.dumps({"type": "object", "properties": properties, **more})
    return compile_schema("json", text, tuple(references))


TYPES = [
    (STRING, pa.string()),
    (INTEGER, pa.int64()),
    ({"type": "number"}, pa.float64()),
    ({"type": "boolean"}, pa.bool_()),
    ({"type": ["string"]}, pa.string()),
    ({"type": ["integer", "null"]}, pa.int64()),
    ({"type": ["null", "boolean"]}, pa.bool_()),
    ({"type": "string", "format": "date-time"}, pa.string()),
    ({"type": "string", "enum": ["a", "b"]}, pa.string()),
    ({"enum": ["a", None]}, pa.string()),
    ({"enum": [1, 2]}, pa.int64()),
    ({"enum": [1, 2.5]}, pa.float64()),
    ({"const": True}, pa.bool_()),
    ({"oneOf": [{"type": "null"}, STRING]}, pa.string()),
    ({"anyOf": [INTEGER, {"type": "null"}]}, pa.int64()),
    ({"oneOf": [STRING]}, pa.string()),
    ({"allOf": [INTEGER]}, pa.int64()),
    ({"oneOf": [{"type": "null"}, POINT]}, POINT_TYPE),
    (POINT, POINT_TYPE),
    ({"properties": {"a": STRING}}, pa.struct([("a", pa.string())])),
    ({"type": "array", "items": STRING}, listed(pa.string())),
    ({"type": ["array", "null"], "items": POINT}, listed(POINT_TYPE)),
    ({"type": "array", "items": {"type": "array", "items": INTEGER}}, listed(listed(pa.int64()))),
    ({"type": "object", "additionalProperties": INTEGER}, pa.map_(pa.string(), pa.int64())),
    ({"type": "object", "additionalProperties": POINT}, pa.map_(pa.string(), POINT_TYPE)),
    ({"type": "object", "properties": {"a": STRING}, "additionalProperties": INTEGER}, pa.struct([("a", pa.string())])),
]


@pytest.mark.parametrize(("schema", "kind"), TYPES, ids=[json.dumps(schema) for schema, _ in TYPES])
def test_a_propertys_column(schema, kind):
    values = of({"p": schema})
    assert values.columns == pa.struct([("p", kind)])
    assert values.left_out == {}


LEFT_OUT = [
    ({"type": ["string", "integer"]}, "it may be of several types"),
    ({"type": ["integer", "number"]}, "it may be of several types"),
    ({"enum": ["a", 1]}, "it may be of several types"),
    ({"oneOf": [STRING, INTEGER]}, "it may be of several types (oneOf)"),
    ({"anyOf": [STRING, INTEGER, {"type": "null"}]}, "it may be of several types (anyOf)"),
    ({"allOf": [STRING, {"minLength": 1}]}, "it must fit several schemas (allOf)"),
    ({"allOf": [POINT], "properties": {"z": STRING}}, "it must fit several schemas (allOf)"),
    ({}, "no type is said"),
    (True, "it may be anything"),
    (False, "no value fits it"),
    ({"type": "null"}, "null is no type of a column"),
    ({"type": "array"}, "its items may be anything"),
    ({"type": "array", "items": [STRING, INTEGER]}, "its items have types by their places"),
    ({"type": "array", "prefixItems": [STRING], "items": STRING}, "its items have types by their places"),
    ({"type": "object"}, "it has no properties, nor one type for all"),
    ({"type": "object", "additionalProperties": True}, "it has no properties, nor one type for all"),
    ({"type": "object", "properties": {"q": {}}}, "no property of it can be a column"),
    (
        {"type": "object", "patternProperties": {"^a": STRING}, "additionalProperties": STRING},
        "its properties have types by their names' patterns",
    ),
    ({"$ref": "#"}, "its type holds itself"),
    ({"$ref": "#/properties/p"}, "its type holds itself"),
    ({"type": "array", "items": {"$ref": "#"}}, "what it holds is left out: its type holds itself"),
    (
        {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
        "what it holds is left out: it may be of several types",
    ),
]


@pytest.mark.parametrize(("schema", "why"), LEFT_OUT, ids=[json.dumps(schema) for schema, _ in LEFT_OUT])
def test_a_property_without_a_column(schema, why):
    values = of({"a": STRING, "p": schema, "z": INTEGER})
    assert values.columns == pa.struct([("a", pa.string()), ("z", pa.int64())])
    assert values.left_out["p"] == why


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a;b", "a{b", "a}b", "a(b", "a)b", "a\nb", "a\tb", "a=b"])
def test_names_that_delta_forbids(name):
    values = of({"a": STRING, name: STRING})
    assert values.columns == pa.struct([("a", pa.string())])
    assert "Delta forbids" in values.left_out[name]


def test_names_that_differ_only_by_case():
    values = of({"Name": STRING, "name": INTEGER, "o": {"type": "object", "properties": {"A": STRING, "a": STRING}}})
    assert values.columns == pa.struct([("Name", pa.string()), ("o", pa.struct([("A", pa.string())]))])
    assert sorted(values.left_out) == ["name", "o.a"]


@pytest.mark.parametrize("name", ["a.b", "a-b", "größe", "class", "select", "0", "$id", "__proto__", "值"])
def test_other_names_are_columns(name):
    values = of({name: INTEGER})
    found = values.decode(pa.array([json.dumps({name: 7}).encode()]))
    assert found.columns.to_pylist() == [{name: 7}]


def test_properties_keep_their_order_through_references():
    definitions = {"P": {"type": "object", "properties": {"z": STRING, "a": STRING, "m": STRING}}}
    values = of({"y": {"$ref": "#/definitions/P"}, "b": STRING}, definitions=definitions)
    assert values.columns.names == ["y", "b"]
    assert [field.name for field in values.columns.field("y").type] == ["z", "a", "m"]


@pytest.mark.parametrize(
    ("reference", "definitions"),
    [
        ("#/definitions/P", {"definitions": {"P": POINT}}),
        ("#/$defs/P", {"$defs": {"P": POINT}}),
        ("#/definitions/a~1b%20c", {"definitions": {"a/b c": POINT}}),
        ("#/definitions/Q", {"definitions": {"Q": {"$ref": "#/definitions/P"}, "P": POINT}}),
        ("#point", {"$schema": DRAFT_2020, "$defs": {"P": {"$anchor": "point", **POINT}}}),
        ("p.json", {"$id": "http://a.example/s.json", "definitions": {"P": {"$id": "p.json", **POINT}}}),
    ],
)
def test_references_within_a_schema(reference, definitions):
    values = of({"p": {"$ref": reference}, "q": {"$ref": reference}}, **definitions)
    assert values.columns == pa.struct([("p", POINT_TYPE), ("q", POINT_TYPE)])


@pytest.mark.parametrize("identity", [{}, {"$id": "http://a.example/b/flight.json"}, {"$id": "flight.json"}])
def test_references_to_given_schemas(identity):
    line = {"type": "object", "properties": {"from": {"$ref": "point.json"}, "name": {"$ref": "#/definitions/n"}}}
    line["definitions"] = {"n": STRING}
    given = [("point.json", json.dumps(POINT)), ("line.json", json.dumps(line))]
    values = of({"l": {"$ref": "line.json"}, "p": {"$ref": "point.json"}}, given, **identity)
    assert values.columns == pa.struct(
        [("l", pa.struct([("from", POINT_TYPE), ("name", pa.string())])), ("p", POINT_TYPE)]
    )


@pytest.mark.parametrize("reference", ["#/definitions/none", "other.json", "http://a.example/other.json", "#none"])
def test_references_that_lead_nowhere(reference):
    with pytest.raises(SchemaError, match=r"other\.json|none"):
        of({"p": {"$ref": reference}})


def test_what_is_beside_a_reference_counts_from_2019_on():
    properties = {"p": {"$ref": "#/$defs/P", "minLength": 1, "description": "x"}}
    for draft, kept in (("http://json-schema.org/draft-07/schema#", True), (DRAFT_2020, False)):
        values = of({**properties, "a": STRING}, **{"$schema": draft, "$defs": {"P": STRING}})
        assert ("p" in values.columns.names) is kept
        assert values.left_out == ({} if kept else {"p": "its $ref has other keywords beside it (minLength)"})


@pytest.mark.parametrize(
    "root",
    [
        True,
        False,
        {},
        {"type": "string"},
        {"type": "array", "items": STRING},
        {"type": "object"},
        {"type": "object", "additionalProperties": STRING},
        {"oneOf": [POINT, {"type": "object", "properties": {"a": STRING}}]},
        {"type": "object", "properties": {"a": {}}},
    ],
)
def test_schemas_without_columns(root):
    values = compile_schema("json", json.dumps(root))
    assert values.columns is None
    assert values.left_out[""]
    found = values.decode(pa.array([b"{}", None], pa.binary()))
    assert found.ok.tolist() == [False, False]
    assert found.columns.to_pylist() == [None, None]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "5", '"a"', '{"type":"strin"}', '{"type":5}', "{" * 5000, '{"a":' * 500 + "1" + "}" * 500]
)
def test_what_is_no_schema(text):
    with pytest.raises(SchemaError):
        compile_schema("json", text)


def test_what_is_no_schema_is_told_in_one_line_with_its_place():
    with pytest.raises(SchemaError) as refused:
        compile_schema("json", '{"type": "object", "properties": {"a": {"type": "nope"}}}')
    said = str(refused.value)
    assert said.startswith("The schema is no JSON Schema: '#/properties/a/type': \"nope\" is not valid")
    assert len(said.splitlines()) == 1


def test_a_schema_whose_types_multiply_is_cut():
    names = [f"T{i}" for i in range(40)]
    definitions = {}
    for name, after in pairwise(names):
        twice = {"a": {"$ref": f"#/definitions/{after}"}, "b": {"$ref": f"#/definitions/{after}"}}
        definitions[name] = {"type": "object", "properties": twice}
    definitions[names[-1]] = STRING
    values = of({"p": {"$ref": "#/definitions/T0"}}, definitions=definitions)
    assert any("more than 10000" in why for why in values.left_out.values())


def test_defaults_of_the_first_level():
    values = of(
        {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "integer", "default": "no integer"},
            "c": {"type": "integer", "default": 7.0},
            "d": {"type": "array", "items": INTEGER, "default": [1, 2]},
            "e": {"type": ["string", "null"], "default": None},
            "f": {"default": 5},
            "g": {"type": "object", "additionalProperties": INTEGER, "default": {"k": 1}},
            "h": STRING,
        }
    )
    assert values.defaults == {("a",): "x", ("c",): 7, ("d",): [1, 2], ("e",): None, ("g",): {"k": 1}}
    for (name,), default in values.defaults.items():
        pa.scalar(default, values.columns.field(name).type)


def test_defaults_of_properties_within_others():
    inner = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}, "t": STRING}}
    values = of(
        {
            "a": inner,
            "b": {"type": "array", "items": inner},
            "c": {"type": "object", "additionalProperties": {"oneOf": [{"type": "null"}, inner]}},
        }
    )
    assert values.defaults == {("a", "n"): 1, ("b", "element", "n"): 1, ("c", "value", "n"): 1}


def test_compiled_once_and_pickled():
    values = of({"a": STRING})
    assert of({"a": STRING}) is values
    assert pickle.loads(pickle.dumps(values)) is values
    assert values.kind == "json"
    assert not values.exact


SCHEMAS = st.deferred(
    lambda: (
        st.booleans()
        | st.fixed_dictionaries(
            {},
            optional={
                "$ref": st.sampled_from(["#", "#/definitions/a", "#/properties/a", "#/items/0", "b", "#a", "//", "%"]),
                "$id": st.sampled_from(["http://a.example/a", "a", "#a", ""]),
                "type": st.sampled_from(["string", "integer", "object", "array", "null"]) | st.just(["null", "number"]),
                "properties": st.dictionaries(st.sampled_from(["a", "A", "b", "$ref", " "]), SCHEMAS, max_size=2),
                "definitions": st.dictionaries(st.sampled_from(["a", "b"]), SCHEMAS, max_size=2),
                "additionalProperties": SCHEMAS,
                "items": SCHEMAS | st.lists(SCHEMAS, min_size=1, max_size=2),
                "oneOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "allOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "enum": st.lists(st.sampled_from([None, "a", 1, 2.5, True, [], {}]), min_size=1, max_size=2),
                "default": st.sampled_from([None, "a", 1, [], {"a": 1}]),
                "required": st.just(["a"]),
            },
        )
    )
)  # fmt: skip


@given(SCHEMAS, SCHEMAS, st.sampled_from([b"{}", b'{"a":1}', b'{"a":{"b":null}}', b'{"a":["x"]}', b"[]"]))
def test_any_schema_is_compiled_or_refused(root, other, payload):
    try:
        values = compile_schema("json", json.dumps(root), (("b", json.dumps(other)),))
    except SchemaError:
        return
    found = values.decode(pa.array([payload]))
    assert found.columns.type == (values.columns or pa.struct([]))
    assert len(found.columns) == len(found.ok) == 1
    values.problem(payload)
