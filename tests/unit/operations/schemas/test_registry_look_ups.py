"""Which version a schema is, whatever form it is sent in; what metadata and `validateFields` ask of fields."""

import json

import pytest
from support.registries import INT, LONG, TEXT, Registry, record, refused

from tidelog.operations.schemas.look_ups import look_up
from tidelog.operations.schemas.registering import NEWEST, Registration, decide_register
from tidelog.schemas.base.model import Reference, Schema, SchemaKind, SchemaMetadata

ARRAY = '{"type":"array","items":"n"}'
INLINE = f'{{"type":"array","items":{record(name="n")}}}'
REFERENCE = Reference("n", "n", 1)


@pytest.fixture
def registry():
    return Registry()


def stating(version, **properties):
    return SchemaMetadata(properties={"confluent:version": str(version), **properties})


def test_a_schema_with_its_references_written_out_is_the_stored_one(registry):
    registry.register("n", record(name="n"))
    assert registry.register("a", ARRAY, references=[REFERENCE]) == (2, 1)
    assert look_up(registry.state, "a", Schema(INLINE)).version == 1
    assert registry.register("a", INLINE) == (2, 1)
    with refused(40403):
        look_up(registry.state, "a", Schema(INLINE.replace('"n"', '"m"')))


def test_a_schema_with_references_is_not_one_that_was_stored_without(registry):
    registry.register("n", record(name="n"))
    registry.register("a", INLINE)
    assert registry.register("a", ARRAY, references=[REFERENCE])[1] == 2


def test_the_newest_version_of_a_reference_is_looked_up_by_its_number(registry):
    registry.register("n", record(name="n"))
    registry.register("a", ARRAY, references=[REFERENCE])
    assert look_up(registry.state, "a", Schema(ARRAY, references=(Reference("n", "n", -1),))).version == 1
    registry.register("n", record("f", name="n"))
    with refused(40403):
        look_up(registry.state, "a", Schema(ARRAY, references=(Reference("n", "n", -1),)))


def test_json_and_protobuf_are_looked_up_by_their_text(registry):
    registry.register("j", '{"a":1,"b":2}', SchemaKind.JSON)
    with refused(40403):
        look_up(registry.state, "j", Schema('{"b":2,"a":1}', SchemaKind.JSON))
    with refused(40403):
        look_up(registry.state, "j", Schema("true", SchemaKind.JSON))


def test_one_that_was_sent_just_so_comes_before_others(registry):
    """Of versions that differ in metadata, the bare one is what a bare question is about."""
    registry.register("a", INT)
    registry.register("a", INT, metadata=SchemaMetadata(properties={"k": "v"}))
    assert look_up(registry.state, "a", Schema(INT)).version == 1
    assert registry.register("a", INT) == (1, 1)
    registry.register("b", INT, metadata=SchemaMetadata(properties={"k": "v"}))
    assert look_up(registry.state, "b", Schema(INT)).version == 1


# --- versions that metadata state ----------------------------------------------------------------------------


def test_a_registration_that_asks_for_a_version_has_it_stated(registry):
    assert registry.register("a", INT, version=1) == (1, 1)
    assert registry.state.version("a", 1).schema.metadata == stating(1)
    assert registry.register("a", LONG) == (2, 2)
    # Without metadata of its own it takes the newest version's, with its own number.
    assert registry.state.version("a", 2).schema.metadata == stating(2)
    with refused(42201):
        registry.register("a", '"double"', version=9)


def test_a_schema_is_found_whether_the_version_is_stated_or_not(registry):
    registry.register("a", INT, version=1)
    assert registry.register("a", INT) == (1, 1)
    assert look_up(registry.state, "a", Schema(INT)).version == 1
    registry.register("b", INT)
    assert look_up(registry.state, "b", Schema(INT, metadata=stating(1))).version == 1
    with refused(40403):
        look_up(registry.state, "b", Schema(INT, metadata=stating(2)))
    with refused(40403):
        look_up(registry.state, "b", Schema(INT, metadata=stating(1, k="v")))


def test_the_newest_version_is_made_unless_it_is_that(registry):
    registry.config("a", compatibility="NONE")
    registry.register("a", INT)
    assert registry.register("a", INT, version=NEWEST) == (1, 1)
    registry.register("a", LONG)
    assert registry.register("a", INT, version=NEWEST)[1] == 3
    assert registry.state.version("a", 3).schema.metadata == stating(3)
    assert registry.register("a", INT, version=NEWEST)[1] == 3


# --- what is there is answered wherever nothing may be written ---------------------------------------------------


def test_a_schema_that_is_there_is_registered_also_in_a_read_only_subject(registry):
    registry.register("a", INT)
    registry.mode(None, "READONLY")
    assert registry.register("a", INT) == (1, 1)
    for subject, text in (("a", LONG), ("b", INT)):
        with refused(42205):
            registry.register(subject, text)


def test_an_import_of_what_is_there_has_its_numbers(registry):
    registry.mode("a", "IMPORT")
    registry.register("a", INT, id=7, version=3)
    registry.register("a", INT, id=7, version=5)
    assert registry.register("a", INT, id=7, version=3) == (7, 3)
    assert registry.register("a", INT, id=7, version=5) == (7, 5)
    with refused(42205):
        registry.register("a", LONG, id=7, version=6)


def test_force_registers_without_a_test(registry):
    registry.register("a", INT)
    with refused(40901):
        registry.register("a", TEXT)
    with refused(42201):
        registry.register("a", "{", force=True)
    assert registry.register("a", TEXT, force=True) == (2, 2)


# --- fields --------------------------------------------------------------------------------------------------


def proto(*fields):
    listed = "".join(f"string {one} = {i + 1};" for i, one in enumerate(fields))
    return f'syntax = "proto3"; message M {{ {listed} }}'


def json_schema(*fields):
    return json.dumps({"type": "object", "properties": {one: {"type": "string"} for one in fields}})


KINDS = [(SchemaKind.AVRO, record), (SchemaKind.JSON, json_schema), (SchemaKind.PROTOBUF, proto)]
RESERVED = SchemaMetadata(properties={"confluent:reserved": "old, older,"})


@pytest.mark.parametrize(("kind", "schema"), KINDS, ids=[kind for kind, _ in KINDS])
@pytest.mark.parametrize("level", ["NONE", "BACKWARD"])
def test_names_that_metadata_reserve_are_no_fields(registry, kind, schema, level):
    registry.config("a", validateFields=True, compatibility=level)
    with refused(40901) as error:
        registry.register("a", schema("f", "old"), kind, metadata=RESERVED)
    assert "conflicts with the reserved field old" in str(error.value)
    assert f"{{validateFields: 'true', compatibility: '{level}'}}" in str(error.value)
    registry.register("a", schema("f"), kind, metadata=RESERVED)
    with refused(40901) as error:
        registry.register("a", schema("f"), kind, metadata=SchemaMetadata(properties={"confluent:reserved": "old"}))
    assert "reserved field older removed" in str(error.value)


@pytest.mark.parametrize(("kind", "schema"), KINDS, ids=[kind for kind, _ in KINDS])
def test_names_are_not_tested_without_validate_fields(registry, kind, schema):
    registry.register("a", schema("old"), kind, metadata=RESERVED)


def test_properties_of_json_begin_with_no_two_dollars_where_fields_are_validated(registry):
    registry.register("a", json_schema("$$x"), SchemaKind.JSON)
    registry.config(None, validateFields=True)
    with refused(42201) as error:
        registry.register("b", json_schema("$$x"), SchemaKind.JSON)
    assert "#/properties/$$x" in str(error.value)


def test_a_subject_takes_what_its_configuration_leaves_out(registry):
    registry.config(None, validateFields=True, compatibilityGroup="g")
    registry.config("a", normalize=False)
    with refused(42201):
        registry.register("a", json_schema("$$x"), SchemaKind.JSON)
    registry.config("a", validateFields=False)
    registry.register("a", json_schema("$$x"), SchemaKind.JSON)


# --- modes ---------------------------------------------------------------------------------------------------


def test_forward_is_a_mode_of_all_contexts(registry):
    for place in (None, "a", ":.c:"):
        with refused(42204):
            registry.mode(place, "FORWARD")
    registry.mode(":.__GLOBAL:", "FORWARD")
    with refused(42205):
        registry.register("a", INT)
    assert registry.register("a", INT, id=7) == (7, 1)
    assert registry.register("a", TEXT, id=8) == (8, 2)


def test_a_mode_of_none_is_taken_away(registry):
    registry.mode("a", "READONLY")
    registry.mode("a", None)
    assert registry.state.modes == {}


def test_a_decision_is_the_same_whoever_makes_it(registry):
    """It reads the state and the request, nothing else."""
    registry.register("n", record(name="n"))
    wanted = Registration("a", Schema(ARRAY, references=(REFERENCE,)))
    assert decide_register(registry.state, wanted) == decide_register(registry.state, wanted)
