"""Avro's schema resolution: each rule, each promotion, and Apache's own checker as a second opinion."""

import json

import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse
from hypothesis import given
from hypothesis import strategies as st

from tidelog.schemas.avro.compare import PROMOTIONS, RULES
from tidelog.schemas.avro.model import PRIMITIVES
from tidelog.schemas.avro.parsed import AvroSchema
from tidelog.schemas.base.errors import RegistryError


def differences(writer, reader):
    old, new = (AvroSchema(json.dumps(schema), {}) for schema in (writer, reader))
    return new.differences_from(old)


def record(*fields, name="r", **keys):
    return {"type": "record", "name": name, "fields": list(fields), **keys}


def field(kind, name="f", **keys):
    return {"name": name, "type": kind, **keys}


def enum(*symbols, name="e", **keys):
    return {"type": "enum", "name": name, "symbols": list(symbols), **keys}


def fixed(size, name="x"):
    return {"type": "fixed", "name": name, "size": size}


# (rule, place, what it says more, writer's schema, reader's schema)
ROWS = [
    ("TYPE_MISMATCH", "", "reader type: INT not compatible with writer type: STRING", "string", "int"),
    ("NAME_MISMATCH", "name", "expected: n.r", record(name="n.r"), record(name="n.s")),
    ("FIXED_SIZE_MISMATCH", "size", "expected: 3, found: 4", fixed(3), fixed(4)),
    ("MISSING_ENUM_SYMBOLS", "symbols", "[B, C]", enum("B", "A", "C"), enum("A")),
    ("MISSING_UNION_BRANCH", "1", "reader union lacking writer type: INT", ["null", "int"], ["null", "string"]),
    ("MISSING_UNION_BRANCH", "", "reader union lacking writer type: INT", "int", ["null", "string"]),
    ("READER_FIELD_AMBIGUOUS", "fields/0", "f, g", record(field("int"), field("int", "g")),
     record(field("int", aliases=["g", "f"]))),
    ("TYPE_MISMATCH", "1", "reader type: INT not compatible with writer type: STRING", ["int", "string"], "int"),
    ("READER_FIELD_MISSING_DEFAULT_VALUE", "fields/1", "g", record(field("int")),
     record(field("int"), field("int", "g"))),
]  # fmt: skip

# (what, whether the reader reads it, writer's schema, reader's schema)
CASES = [
    ("a field with a default is new", True, record(), record(field("int", default=1))),
    ("a field with a default null is new", True, record(), record(field("null", default=None))),
    ("a field is gone", True, record(field("int")), record()),
    ("a field has another name and an alias", True, record(field("int")), record(field("int", "g", aliases=["f"]))),
    ("fields change places", True, record(field("int"), field("string", "g")),
     record(field("string", "g"), field("int"))),
    ("a type becomes a branch", True, "int", ["null", "int"]),
    ("a type becomes a branch that it is promoted to", True, "int", ["null", "double"]),
    ("a branch becomes a type", False, ["null", "int"], "int"),
    ("all branches are promoted to a type", True, ["int", "long"], "double"),
    ("a branch is new", True, ["null", "int"], ["int", "string", "null"]),
    ("a union is empty", True, [], "int"),
    ("a name has another namespace", True, record(name="a.r"), record(name="b.r")),
    ("a name is an alias of the reader", True, record(name="a.r"), record(name="s", aliases=["a.r"])),
    ("an alias without a namespace is in the reader's", False, record(name="a.r"), record(name="b.s", aliases=["r"])),
    ("an enum of another name", False, enum("A"), enum("A", name="d")),
    ("a fixed of another name", False, fixed(3), fixed(3, name="y")),
    ("an enum with a default reads unknown symbols", True, enum("A", "B"), enum("A", default="A")),
    ("an enum has more symbols", True, enum("A"), enum("B", "A")),
    ("items are promoted", True, {"type": "array", "items": "int"}, {"type": "array", "items": "long"}),
    ("items differ", False, {"type": "array", "items": "int"}, {"type": "array", "items": "string"}),
    ("values differ", False, {"type": "map", "values": "int"}, {"type": "map", "values": "string"}),
    ("a logical type changes", True, {"type": "int", "logicalType": "date"}, "int"),
    ("a record inside of itself", True, record(field(["null", "r"])), record(field(["null", "r"]))),
    ("a record inside of itself changes", False, record(field(["null", "r"]), field("int", "v")),
     record(field(["null", "r"]), field("string", "v"))),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "place", "detail", "writer", "reader"), ROWS, ids=[f"{r[0]}-{r[1]}" for r in ROWS])
def test_a_difference_is_found_at_its_place(rule, place, detail, writer, reader):
    (found,) = differences(writer, reader)
    assert (found.rule.name, "/".join(found.path), found.detail) == (rule, place, detail)
    assert found.breaking()


def test_every_rule_has_a_row():
    assert {row[0] for row in ROWS} == {*RULES}


@pytest.mark.parametrize("writer", PRIMITIVES)
@pytest.mark.parametrize("reader", PRIMITIVES)
def test_promotions(writer, reader):
    allowed = {
        ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"),
        ("float", "double"), ("string", "bytes"), ("bytes", "string"),
    }  # fmt: skip
    assert (not differences(writer, reader)) is (writer == reader or (writer, reader) in allowed)
    assert {(one, other) for other, ones in PROMOTIONS.items() for one in ones} == allowed


@pytest.mark.parametrize(("what", "reads", "writer", "reader"), CASES, ids=[row[0] for row in CASES])
def test_whether_a_reader_reads(what, reads, writer, reader):
    assert (not differences(writer, reader)) is reads


def test_places_of_inner_types():
    writer = record(field({"type": "array", "items": {"type": "map", "values": ["null", "int"]}}))
    reader = record(field({"type": "array", "items": {"type": "map", "values": ["null", "string"]}}))
    assert ["/".join(found.path) for found in differences(writer, reader)] == ["fields/0/type/items/values/1"]


def test_1_000_types_that_hold_each_other_are_compared():
    def chain(last):
        references = {}
        inner = last
        for i in range(1_000):
            references[str(i)] = json.dumps(record(field(inner), name=f"r{i}"))
            inner = f"r{i}"
        return AvroSchema(json.dumps(inner), references)

    (found,) = chain("string").differences_from(chain("int"))
    assert found.rule.name == "TYPE_MISMATCH"
    assert chain("long").differences_from(chain("int")) == ()
    with pytest.raises(RegistryError, match="nested deeper"):
        assert chain("int").resolved


names = st.sampled_from(["a", "b"])
primitives = st.sampled_from(PRIMITIVES)


@st.composite
def schemas(draw, depth=3, made=None):
    """A schema; each name is of one type in it."""
    made = {} if made is None else made
    kind = draw(
        st.sampled_from(["primitive", "record", "enum", "fixed", "array", "map", "union"] if depth else ["primitive"])
    )
    inner = lambda: draw(schemas(depth=depth - 1, made=made))  # noqa: E731
    if kind in ("record", "enum", "fixed"):
        name = draw(names)
        if name in made:
            return name
        made[name] = kind
        if kind == "enum":
            symbols = sorted(draw(st.sets(st.sampled_from("ABC"), min_size=1)))
            return enum(*symbols, name=name, **draw(st.sampled_from([{}, {"default": symbols[0]}])))
        if kind == "fixed":
            return fixed(draw(st.integers(1, 2)), name)
        fields = [
            field(inner(), one, **draw(st.sampled_from([{}, {"aliases": ["v"]}])))
            for one in sorted(draw(st.sets(st.sampled_from("xyz"))))
        ]
        if draw(st.booleans()):
            fields.append(field("null", "w", default=None))
        return record(*fields, name=name)
    if kind == "array":
        return {"type": "array", "items": inner()}
    if kind == "map":
        return {"type": "map", "values": inner()}
    if kind == "union":
        return draw(st.lists(primitives, unique=True, max_size=3))
    return draw(primitives)


@given(schemas(), schemas())
def test_apaches_checker_agrees(writer, reader):
    apache = ReaderWriterCompatibilityChecker().get_compatibility(parse(json.dumps(reader)), parse(json.dumps(writer)))
    assert (not differences(writer, reader)) is (apache.compatibility is SchemaCompatibilityType.compatible)
