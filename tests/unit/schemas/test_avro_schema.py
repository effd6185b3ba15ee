"""Avro schemas as texts: canonical, normalised, valid; references to others."""

import json

import pytest

from tidelog.schemas.avro.parsed import AvroSchema
from tidelog.schemas.avro.reading import read
from tidelog.schemas.base.errors import RegistryError, SchemaError


def parsed(schema, **references):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    schema = AvroSchema(text, {name: json.dumps(other) for name, other in references.items()})
    schema.check()
    return schema


def record(*fields, name="r", **keys):
    return {"type": "record", "name": name, "fields": list(fields), **keys}


def field(kind, name="f", **keys):
    return {"name": name, "type": kind, **keys}


# (schema, its canonical text): as Avro's Java library writes it
CANONICAL = [
    ('"string"', '"string"'),
    ('{ "type": "string" }', '"string"'),
    ('{"logicalType": "date", "type": "int"}', '{"type":"int","logicalType":"date"}'),
    ('["null", {"type": "string"}]', '["null","string"]'),
    ('{"items": "int", "x": 1, "type": "array"}', '{"type":"array","items":"int","x":1}'),
    ('{"type": "map", "values": {"type": "long"}}', '{"type":"map","values":"long"}'),
    (
        '{"fields": [{"type": "string", "name": "f1"}], "type": "record", "name": "a.b.r", "namespace": "ignored"}',
        '{"type":"record","name":"r","namespace":"a.b","fields":[{"name":"f1","type":"string"}]}',
    ),
    (
        '{"name": "r", "type": "record", "aliases": ["old", "x.other"], "p": 1, "doc": "d", "namespace": "n", '
        '"fields": [{"order": "descending", "aliases": ["g"], "q": 2, "default": null, "doc": "e", "type": "null", '
        '"name": "f"}]}',
        '{"type":"record","name":"r","namespace":"n","doc":"d","fields":[{"name":"f","type":"null","doc":"e",'
        '"default":null,"order":"descending","aliases":["g"],"q":2}],"p":1,"aliases":["old","x.other"]}',
    ),
    (
        '{"symbols": ["A", "B"], "name": "e", "type": "enum", "default": "A"}',
        '{"type":"enum","name":"e","symbols":["A","B"],"default":"A"}',
    ),
    ('{"size": 4, "name": "x", "type": "fixed"}', '{"type":"fixed","name":"x","size":4}'),
    ('{"type": "error", "name": "x", "fields": []}', '{"type":"error","name":"x","fields":[]}'),
    (
        json.dumps(record(field("r", order="ascending"), field(["null", "n.r"], "g"), namespace="n")),
        '{"type":"record","name":"r","namespace":"n","fields":[{"name":"f","type":"r"},'
        '{"name":"g","type":["null","r"]}]}',
    ),
    (
        json.dumps(record(field(record(name="a.s")), field("a.s", "g"), namespace="n")),
        '{"type":"record","name":"r","namespace":"n","fields":[{"name":"f","type":'
        '{"type":"record","name":"s","namespace":"a","fields":[]}},{"name":"g","type":"a.s"}]}',
    ),
    (
        json.dumps(record(field(record(name="s", namespace="")), namespace="n")),
        '{"type":"record","name":"r","namespace":"n","fields":[{"name":"f","type":'
        '{"type":"record","name":"s","namespace":"","fields":[]}}]}',
    ),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_the_canonical_text(text, canonical):
    assert AvroSchema(text, {}).canonical == canonical
    assert AvroSchema(canonical, {}).canonical == canonical


def test_the_normalised_text_sorts_what_has_no_order():
    one = record(
        field("int", z=1, a={"y": 1, "x": [{"b": 1, "a": 2}]}, aliases=["h", "g"]),
        field({"type": "bytes", "scale": 2, "x": 1, "precision": 4, "logicalType": "decimal"}, "d"),
        aliases=["z", "a"],
    )
    assert parsed(one).normalized == (
        '{"type":"record","name":"r","fields":[{"name":"f","type":"int","aliases":["g","h"],'
        '"a":{"x":[{"a":2,"b":1}],"y":1},"z":1},{"name":"d","type":{"type":"bytes","logicalType":"decimal",'
        '"precision":4,"scale":2,"x":1}}],"aliases":["a","z"]}'
    )


def test_types_of_references_are_written_by_their_names():
    schema = parsed(record(field("n.s"), name="n.r"), s=record(name="n.s"))
    assert schema.canonical == '{"type":"record","name":"r","namespace":"n","fields":[{"name":"f","type":"s"}]}'
    assert schema.resolved == (
        '{"type":"record","name":"r","namespace":"n","fields":[{"name":"f","type":'
        '{"type":"record","name":"s","fields":[]}}]}'
    )


def test_types_inside_of_references_may_be_used():
    inner = record(field({"type": "enum", "name": "e", "symbols": ["A"]}), name="s")
    assert '"type":"e"' in parsed(record(field("e")), s=inner).canonical


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "not valid JSON"),
        ("1", "at '#': expected a type's name, an object or a list, found 1"),
        ("{}", "must be a type's name, found None"),
        ({"type": 3}, "must be a type's name, found 3"),
        ({"type": {"type": "int"}}, "must be a type's name"),
        ({"type": "array"}, "the array has no items"),
        ({"type": "map"}, "the map has no values"),
        ("[]x", "not valid JSON"),
        (["int", "int"], "the union has int twice"),
        (["int", ["null"]], "has a union as its branch"),
        ('"strin"', "the type 'strin' is not defined"),
        (record(field("s"), namespace="n"), "at '#/fields/0/type': the type 'n.s' is not defined"),
        ({"type": "record", "name": "r"}, "no list of fields"),
        ({"type": "record", "fields": []}, "the record has no name"),
        (record(name="1r"), "'1r' is no name"),
        (record(name="a..r"), "'' is no name"),
        (record(name="rä"), "is no name"),
        (record(name="int"), "a primitive's name"),
        (record(namespace=3), "namespace must be a text"),
        (record(field("int", "a-b")), "at '#/fields/0': 'a-b' is no name"),
        (record(field("int"), field("int")), "has the field 'f' twice"),
        (record({"name": "f"}), "the field 'f' has no type"),
        (record("f"), "must be an object with a name"),
        (record(field("int", order="up")), "the order of a field"),
        (record(field("int", aliases="g")), "aliases must be a list of names"),
        (record(field(record())), "the type 'r' is defined twice"),
        ({"type": "enum", "name": "e"}, "no list of symbols"),
        ({"type": "enum", "name": "e", "symbols": ["A", "A"]}, "a symbol twice"),
        ({"type": "enum", "name": "e", "symbols": ["a b"]}, "'a b' is no name"),
        ({"type": "enum", "name": "e", "symbols": ["A"], "default": "B"}, "is none of its symbols"),
        ({"type": "fixed", "name": "f"}, "the size of a fixed"),
        ({"type": "fixed", "name": "f", "size": -1}, "the size of a fixed"),
        ('{"type":"array","items":' * 300 + '"int"' + "}" * 300, "nested deeper than 200 levels"),
        (record(field("int", default="x")), "The default 'x' of the field 'f' in 'r' is no int"),
        (record(field("int", default=2**31)), "is no int"),
        (record(field("long", default=2**63)), "is no long"),
        (record(field("int", default=True)), "is no int"),
        (record(field("boolean", default=1)), "is no boolean"),
        (record(field("double", default="1")), "is no double"),
        (record(field("string", default=None)), "is no string"),
        (record(field("null", default=0)), "is no null"),
        (record(field(["null", "int"], default="x")), "is no union"),
        (record(field({"type": "array", "items": "int"}, default=["x"])), "is no array"),
        (record(field({"type": "map", "values": "int"}, default={"a": "x"})), "is no map"),
        (record(field({"type": "enum", "name": "e", "symbols": ["A"]}, default="B")), "is no e"),
        (record(field(record(field("int", "g"), name="s"), default={})), "is no s"),
        ({"type": "array", "items": record(field("int", default="x"))}, "is no int"),
    ],
)
def test_what_is_no_schema_is_refused_by_a_sentence(schema, message):
    with pytest.raises(RegistryError) as refused:
        parsed(schema)
    assert refused.value.code == 42201
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "schema",
    [
        record(field(["null", "int"], default=3)),
        record(field("float", default=1)),
        record(field("bytes", default="\u00ff")),
        record(field(record(field("int", "g", default=1), name="s"), default={})),
        record(field({"type": "map", "values": "int"}, default={})),
        [],
        json.loads('{"type":"array","items":' * 198 + '"int"' + "}" * 198),
    ],
)
def test_what_is_a_schema_is_accepted(schema):
    assert parsed(schema).canonical


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "enum", "name": "e", "symbols": "A" * 10**6}, True),
        ({"type": "enum", "name": "e", "symbols": "A" * 10**6}, False),
        ({"type": "fixed", "name": "f", "size": "1" * 10**6}, False),
        (record(field("n" * 10**6)), False),
        (record(field("int"), doc=["d" * 10**6]), True),
    ],
)
def test_a_refusal_shows_little_of_what_is_wrong(schema, strict):
    with pytest.raises(SchemaError) as refusal:
        read(json.dumps(schema), strict=strict)
    assert len(str(refusal.value)) < 500
