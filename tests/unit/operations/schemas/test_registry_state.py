"""The registry's decisions about ids, versions, compatibility, deletes and references."""

import json

import pytest
from support.registries import INT, LONG, TEXT, Registry, record, refused

from tidelog.operations.schemas.look_ups import look_up
from tidelog.operations.schemas.reading import prepare
from tidelog.operations.schemas.records import read
from tidelog.operations.schemas.registering import Registration, decide_register, why_incompatible
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Reference, RuleSet, Schema, SchemaKind, SchemaMetadata


@pytest.fixture
def registry():
    return Registry()


# --- ids and versions --------------------------------------------------------------------------------------


def test_ids_are_dense_and_a_schema_has_one_everywhere(registry):
    assert registry.register("a", INT) == (1, 1)
    assert registry.register("b", TEXT) == (2, 1)
    assert registry.register("a", LONG) == (3, 2)
    assert registry.register("b", '{"type": "string"}') == (2, 1)
    assert registry.register("c", LONG) == (3, 1)
    assert registry.state.places_of(3) == [registry.state.version("a", 2), registry.state.version("c", 1)]
    assert registry.state.by_id(3).text == LONG


def test_a_refused_schema_uses_no_id(registry):
    registry.register("a", INT)
    for text, code in ((TEXT, 40901), ("{", 42201), ('"x"', 42201)):
        with refused(code):
            registry.register("a", text)
    assert registry.register("a", LONG) == (2, 2)


def test_the_same_schema_gets_what_it_has_without_a_test(registry):
    registry.register("a", INT)
    registry.register("a", LONG)
    assert registry.register("a", INT) == (1, 1)


def test_the_message_names_rule_place_and_version(registry):
    registry.register("a", record("f"))
    new = json.dumps({"type": "record", "name": "r", "fields": [{"name": "g", "type": "int"}]})
    with pytest.raises(RegistryError) as found:
        registry.register("a", new)
    for part in (
        'incompatible with an earlier schema for subject "a"',
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "'#/fields/0'",
        "additionalInfo:'g'",
        "oldSchemaVersion: 1",
        "compatibility: 'BACKWARD'",
    ):
        assert part in str(found.value)


def test_references_metadata_and_rules_are_part_of_identity(registry):
    registry.config(None, compatibilityLevel="NONE")
    registry.register("n", record(name="n"))
    plain = registry.register("a", INT)[0]
    with_metadata = registry.register("a", INT, metadata=SchemaMetadata(properties={"k": "v"}))[0]
    with_rules = registry.register("a", INT, rules=RuleSet(enable_at="x"))[0]
    with_reference = registry.register("a", INT, references=[Reference("n", "n", 1)])[0]
    assert len({plain, with_metadata, with_rules, with_reference}) == 4


def test_what_is_left_out_is_that_of_the_newest_version(registry):
    metadata = SchemaMetadata(properties={"k": "v"})
    registry.register("a", INT, metadata=metadata)
    registry.register("a", LONG)
    assert registry.state.version("a", 2).schema.metadata == metadata
    changed = SchemaMetadata(properties={"k": "w"})
    assert registry.register("a", "", metadata=changed)[1] == 3
    assert registry.state.version("a", 3).schema == Schema(LONG, metadata=changed)
    with refused(42201):
        registry.register("b", " ")


def test_normalisation_by_request_or_configuration(registry):
    one, other = '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'
    assert registry.register("a", one) == registry.register("a", other) == (1, 1)  # one type, as Confluent has it
    assert registry.register("b", other) == (2, 1)
    assert registry.register("c", one, normalize=True) == (2, 1)
    registry.config("d", normalize=True)
    assert registry.register("d", one) == (2, 1)
    assert look_up(registry.state, "d", Schema(one)).id == 2


# --- compatibility -----------------------------------------------------------------------------------------

PLUS = {"a": record("f"), "b": record("f", "g")}
BARE = json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": "string"}]})
GROWN = json.dumps(
    {"type": "record", "name": "r", "fields": [{"name": "f", "type": "string"}, {"name": "h", "type": "int"}]}
)
NOTHING = json.dumps({"type": "record", "name": "r", "fields": []})


@pytest.mark.parametrize(
    ("level", "versions", "new", "accepted"),
    [
        ("BACKWARD", [GROWN], BARE, True),
        ("BACKWARD", [BARE], GROWN, False),
        ("FORWARD", [BARE], GROWN, True),
        ("FORWARD", [GROWN], BARE, False),
        ("FULL", [BARE], GROWN, False),
        ("FULL", [GROWN], BARE, False),
        ("FULL", [PLUS["a"]], PLUS["b"], True),
        ("NONE", [BARE], TEXT, True),
        ("BACKWARD", [NOTHING, BARE], BARE + " ", True),
        ("BACKWARD", [NOTHING, PLUS["a"]], BARE, True),
        ("BACKWARD_TRANSITIVE", [NOTHING, PLUS["a"]], BARE, False),
        ("FORWARD", [BARE, PLUS["a"]], NOTHING, True),
        ("FORWARD_TRANSITIVE", [BARE, PLUS["a"]], NOTHING, False),
        ("FULL", [BARE, PLUS["a"]], NOTHING, True),
        ("FULL_TRANSITIVE", [BARE, PLUS["a"]], NOTHING, False),
        ("FULL_TRANSITIVE", [NOTHING, PLUS["a"]], PLUS["b"], True),
    ],
)
def test_levels(registry, level, versions, new, accepted):
    registry.config(None, compatibilityLevel="NONE")
    for text in versions:
        registry.register("a", text)
    registry.config("a", compatibilityLevel=level.lower())
    if accepted:
        registry.register("a", new)
    else:
        with refused(40901):
            registry.register("a", new)


def test_kinds_are_incompatible_with_each_other(registry):
    registry.register("a", INT)
    with refused(40901):
        registry.register("a", "true", SchemaKind.JSON)
    found = why_incompatible(registry.state, "a", Schema("true", SchemaKind.JSON), registry.state.versions("a"))
    assert found[0] == "Incompatible because of different schema type"


def test_deleted_versions_do_not_count(registry):
    registry.register("a", INT)
    registry.register("a", LONG)
    registry.delete_version("a", 2)
    assert registry.register("a", '{"type":"int","x":1}')[1] == 3


def test_the_lenient_policy(registry):
    registry.config("a", compatibilityPolicy="lenient")
    registry.register("a", '{"type":"object"}', SchemaKind.JSON)
    registry.register("a", '{"type":"object","properties":{"a":{"type":"string"}}}', SchemaKind.JSON)
    registry.config("a", compatibilityPolicy="STRICT")
    with refused(40901):
        registry.register("a", '{"type":"object","properties":{"b":{"type":"string"}}}', SchemaKind.JSON)


def test_versions_of_another_compatibility_group_do_not_count(registry):
    registry.config("a", compatibilityGroup="major")
    registry.register("a", INT, metadata=SchemaMetadata(properties={"major": "1"}))
    registry.register("a", TEXT, metadata=SchemaMetadata(properties={"major": "2"}))
    assert registry.register("a", LONG, metadata=SchemaMetadata(properties={"major": "1"}))[1] == 3


# --- deletes -----------------------------------------------------------------------------------------------


def test_soft_deletes_keep_numbers_and_ids_taken(registry):
    registry.register("a", INT)
    registry.register("a", LONG)
    assert registry.delete_version("a", 2) == 2
    assert [one.version for one in registry.state.versions("a")] == [1]
    assert registry.state.by_id(2).text == LONG
    assert registry.register("a", '"double"') == (3, 3)
    with refused(40406):
        registry.delete_version("a", 2)


def test_a_deleted_schema_gets_its_id_and_a_new_number(registry):
    registry.register("a", INT)
    registry.delete_version("a", 1)
    assert registry.register("a", INT) == (1, 2)
    assert registry.state.version("a", 1, deleted=True) is None


def test_a_deleted_schema_that_is_referenced_stays(registry):
    registry.register("n", record(name="n"))
    registry.register("a", '"n"', references=[Reference("n", "n", 1)])
    registry.delete_version("a", 1)
    registry.delete_version("n", 1)
    assert registry.register("n", record(name="n")) == (1, 2)
    assert registry.state.version("n", 1, deleted=True).deleted


def test_permanent_deletes_come_after_soft_ones(registry):
    registry.register("a", INT)
    registry.register("a", LONG)
    with refused(40407):
        registry.delete_version("a", 1, permanent=True)
    with refused(40405):
        registry.delete_subject("a", permanent=True)
    assert registry.delete_subject("a") == [1, 2]
    with refused(40404):
        registry.delete_subject("a")
    with refused(40406):
        registry.delete_version("a", 1)
    assert registry.delete_version("a", 1, permanent=True) == 1
    assert registry.delete_subject("a", permanent=True) == [2]
    with refused(40401):
        registry.delete_subject("a", permanent=True)
    assert registry.state.by_id(1) is None
    assert len(registry.state) == 0


def test_an_id_is_not_given_again_after_a_permanent_delete_and_compaction(registry):
    registry.register("a", INT)
    registry.register("b", TEXT)
    registry.delete_subject("b")
    registry.delete_subject("b", permanent=True)
    registry.state = registry.compacted()
    assert registry.register("b", TEXT) == (3, 1)


def test_the_last_permanent_delete_takes_the_settings_away(registry):
    for subject in ("a", "b"):
        registry.register(subject, INT)
        registry.config(subject, compatibilityLevel="FULL")
        registry.mode(subject, "READWRITE")
    registry.delete_version("a", -1)
    registry.delete_version("a", 1, permanent=True)
    registry.delete_subject("b")
    registry.delete_subject("b", permanent=True)
    assert registry.state.configs == registry.state.modes == {}


@pytest.mark.parametrize(("version", "code"), [(7, 40402), (-1, 40402)])
def test_versions_that_are_not_there_are_not_deleted(registry, version, code):
    registry.register("a", INT)
    registry.delete_version("a", 1)
    with refused(code):
        registry.delete_version("a", version)
    with refused(40401):
        registry.delete_version("b", version)


def test_referenced_versions_are_not_deleted(registry):
    registry.register("n", record(name="n"))
    registry.register("a", '"n"', references=[Reference("n", "n", 1)])
    assert [one.subject for one in registry.state.referenced_by("n", 1)] == ["a"]
    for delete in (lambda: registry.delete_version("n", 1), lambda: registry.delete_subject("n")):
        with refused(42206):
            delete()
    registry.delete_subject("a")
    registry.delete_subject("n")
    with refused(42206):  # the softly deleted schema may come back
        registry.delete_subject("n", permanent=True)
    registry.delete_subject("a", permanent=True)
    registry.delete_subject("n", permanent=True)


def test_a_subject_that_references_itself_is_deleted(registry):
    registry.config("a", compatibilityLevel="NONE")
    registry.register("a", record(name="n"))
    registry.register("a", '"n"', references=[Reference("n", "a", 1)])
    assert registry.delete_subject("a") == [1, 2]
    assert registry.delete_subject("a", permanent=True) == [1, 2]


# --- references --------------------------------------------------------------------------------------------


def test_references_of_references_are_found_and_those_that_are_missing_refused(registry):
    registry.register("x", record(name="x"))
    registry.register("y", json.dumps({"type": "array", "items": "x"}), references=[Reference("x", "x", 1)])
    outer = json.dumps({"type": "map", "values": "x"})
    assert registry.register("z", outer, references=[Reference("y", "y", 1)])[1] == 1
    with refused(42201):
        registry.register("w", '"x"', references=[Reference("x", "x", 2)])
    with refused(42201):
        registry.register("w", '"x"')


def test_the_newest_version_may_be_referenced_and_is_stored_by_its_number(registry):
    registry.register("n", record(name="n"))
    registry.register("a", '"n"', references=[Reference("n", "n", -1)])
    assert registry.state.version("a", 1).schema.references == (Reference("n", "n", 1),)


def test_deleted_schemas_are_not_referenced_by_new_ones(registry):
    registry.register("n", record(name="n"))
    registry.delete_version("n", 1)
    with refused(42201):
        registry.register("a", '"n"', references=[Reference("n", "n", 1)])


# --- look-ups ----------------------------------------------------------------------------------------------


def test_look_ups(registry):
    registry.register("a", INT, metadata=SchemaMetadata(properties={"k": "v"}))
    assert look_up(registry.state, "a", Schema('{"type": "int"}')).version == 1
    with refused(40403):
        look_up(registry.state, "a", Schema(LONG))
    with refused(40403):
        look_up(registry.state, "a", Schema(INT, metadata=SchemaMetadata(properties={"k": "w"})))
    with refused(40401):
        look_up(registry.state, "b", Schema(INT))
    registry.delete_version("a", 1)
    with refused(40401):
        look_up(registry.state, "a", Schema(INT))
    assert look_up(registry.state, "a", Schema(INT), deleted=True).version == 1


def test_a_schema_that_was_read_ahead_is_not_read_again(registry, monkeypatch):
    text = '{"type":"fixed","name":"ahead","size":1}'
    prepare(registry.state, "a", Schema(text))()
    monkeypatch.setattr("tidelog.schemas.compatibility._KINDS", {})
    assert registry.register("a", text) == (1, 1)


@pytest.mark.parametrize("schema", [Schema("{"), Schema(INT, references=(Reference("n", "n", 1),))])
def test_what_cant_be_read_ahead_is_refused_later(registry, schema):
    prepare(registry.state, "a", schema)()
    with refused(42201):
        decide_register(registry.state, Registration("a", schema))


@pytest.mark.parametrize("value", [None, b""])
def test_a_record_without_a_value_takes_a_version_away(value):
    """Confluent's registry writes none, Karapace one without bytes."""
    made = Registry()
    made.register("s", INT)
    made.delete_subject("s")
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    made.state.take([read(key, value)])
    assert made.state.subjects("", deleted=True) == []
