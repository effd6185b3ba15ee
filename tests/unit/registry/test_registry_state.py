"""The registry's decisions: each as records, applied to the state as every registry applies them."""

import json

import pytest

from tidelog.registry.base.errors import RegistryError
from tidelog.registry.base.model import Metadata, Reference, RuleSet, Schema, SchemaKind
from tidelog.registry.state.deleting import decide_delete_context, decide_delete_subject, decide_delete_version
from tidelog.registry.state.fold import RegistryState
from tidelog.registry.state.records import read
from tidelog.registry.state.registering import Registration, decide_register, look_up, why_incompatible
from tidelog.registry.state.settings import (
    Mode,
    config_of,
    decide_config,
    decide_mode,
    decide_no_config,
    decide_no_mode,
    mode_of,
)


class Registry:
    """A state, and all records that made it, as bytes."""

    def __init__(self):
        self.state = RegistryState()
        self.log = []

    def take(self, records):
        pairs = [(record.key(), record.payload()) for record in records]
        self.log += pairs
        self.state.take(read(key, value) for key, value in pairs)

    def compacted(self):
        """A state folded from the newest record of each key, without tombstones."""
        newest = {key: (i, value) for i, (key, value) in enumerate(self.log)}
        state = RegistryState()
        kept = sorted((i, key, value) for key, (i, value) in newest.items() if value is not None)
        state.take(read(key, value) for _, key, value in kept)
        return state

    def register(self, subject, text, kind=SchemaKind.AVRO, references=(), metadata=None, rules=None, **more):
        schema = Schema(text, kind, tuple(references), metadata, rules)
        found = decide_register(self.state, Registration(subject, schema, **more))
        self.take(found.records)
        return found.version.id, found.version.version

    def delete_version(self, subject, version, **more):
        number, records = decide_delete_version(self.state, subject, version, **more)
        self.take(records)
        return number

    def delete_subject(self, subject, **more):
        numbers, records = decide_delete_subject(self.state, subject, **more)
        self.take(records)
        return numbers

    def config(self, subject, **change):
        self.take(decide_config(self.state, subject, change))

    def mode(self, subject, mode, **more):
        self.take(decide_mode(self.state, subject, mode, **more))


@pytest.fixture
def registry():
    return Registry()


def record(*fields, name="r"):
    listed = [{"name": field, "type": "string", "default": ""} for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed})


def refused(code):
    return pytest.raises(RegistryError, check=lambda error: error.code == code)


INT, LONG, TEXT = '"int"', '"long"', '"string"'

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
    with_metadata = registry.register("a", INT, metadata=Metadata(properties={"k": "v"}))[0]
    with_rules = registry.register("a", INT, rules=RuleSet(enable_at="x"))[0]
    with_reference = registry.register("a", INT, references=[Reference("n", "n", 1)])[0]
    assert len({plain, with_metadata, with_rules, with_reference}) == 4


def test_what_is_left_out_is_that_of_the_newest_version(registry):
    metadata = Metadata(properties={"k": "v"})
    registry.register("a", INT, metadata=metadata)
    registry.register("a", LONG)
    assert registry.state.version("a", 2).schema.metadata == metadata
    changed = Metadata(properties={"k": "w"})
    assert registry.register("a", "", metadata=changed)[1] == 3
    assert registry.state.version("a", 3).schema == Schema(LONG, metadata=changed)
    with refused(42201):
        registry.register("b", " ")


def test_normalisation_by_request_or_configuration(registry):
    one, other = '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'
    assert registry.register("a", one)[0] != registry.register("a", other)[0]
    assert registry.register("b", one, normalize=True) == (2, 1)
    registry.config("c", normalize=True)
    assert registry.register("c", one) == (2, 1)
    assert look_up(registry.state, "c", Schema(one)).id == 2


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
    registry.register("a", INT, metadata=Metadata(properties={"major": "1"}))
    registry.register("a", TEXT, metadata=Metadata(properties={"major": "2"}))
    assert registry.register("a", LONG, metadata=Metadata(properties={"major": "1"}))[1] == 3


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
    registry.register("a", INT, metadata=Metadata(properties={"k": "v"}))
    assert look_up(registry.state, "a", Schema('{"type": "int"}')).version == 1
    with refused(40403):
        look_up(registry.state, "a", Schema(LONG))
    with refused(40403):
        look_up(registry.state, "a", Schema(INT, metadata=Metadata(properties={"k": "w"})))
    with refused(40401):
        look_up(registry.state, "b", Schema(INT))
    registry.delete_version("a", 1)
    with refused(40401):
        look_up(registry.state, "a", Schema(INT))
    assert look_up(registry.state, "a", Schema(INT), deleted=True).version == 1


# --- contexts ----------------------------------------------------------------------------------------------


def test_contexts_have_ids_of_their_own(registry):
    registry.register("a", INT)
    assert registry.register(":.c:a", LONG) == (1, 1)
    assert registry.register(":.c:b", INT) == (2, 1)
    assert registry.state.contexts() == [".", ".c"]
    assert registry.state.subjects() == ["a"]
    assert registry.state.subjects(":.c:") == [":.c:a", ":.c:b"]
    assert registry.state.subjects(":*:a") == [":.c:a", "a"]
    assert registry.state.ids_of_guid(Schema(INT).digest()) == [(".", 1), (".c", 2)]


def test_references_are_looked_for_in_the_subjects_context(registry):
    registry.register(":.c:n", record(name="n"))
    registry.register(":.c:a", '"n"', references=[Reference("n", "n", 1)])
    with refused(42201):
        registry.register("a", '"n"', references=[Reference("n", "n", 1)])
    registry.register("a", '"n"', references=[Reference("n", ":.c:n", 1)])


def test_a_context_is_deleted_when_it_is_empty(registry):
    registry.register(":.c:a", INT)
    with refused(42211):
        decide_delete_context(registry.state, ".c")
    registry.delete_subject(":.c:a")
    registry.delete_subject(":.c:a", permanent=True)
    assert registry.state.contexts() == [".", ".c"]
    registry.take(decide_delete_context(registry.state, ".c"))
    assert registry.state.contexts() == ["."]
    with refused(42205):
        decide_delete_context(registry.state, ".")


# --- settings ----------------------------------------------------------------------------------------------


def test_configurations_come_from_the_subject_its_context_or_all(registry):
    level = lambda subject: config_of(registry.state, subject, in_scope=True)["compatibilityLevel"]  # noqa: E731
    assert (level(None), level("a")) == ("BACKWARD", "BACKWARD")
    registry.config(":.__GLOBAL:", compatibilityLevel="NONE")
    assert level(":.c:a") == "NONE"
    registry.config(None, compatibility="full")
    assert (level("a"), level(":.c:a")) == ("FULL", "NONE")
    registry.config(":.c:", compatibilityLevel="FORWARD")
    assert level(":.c:a") == "FORWARD"
    registry.config("a", normalize=True)
    assert config_of(registry.state, "a") == {"subject": "a", "normalize": True, "compatibilityLevel": "FULL"}
    with refused(40408):
        config_of(registry.state, "b")
    registry.take(decide_no_config(registry.state, "a"))
    with refused(40408):
        decide_no_config(registry.state, "a")
    registry.take(decide_no_config(registry.state, None))
    assert level(None) == "NONE"


def test_a_change_of_configuration_keeps_the_rest(registry):
    registry.config("a", compatibilityLevel="FULL", alias="b", defaultMetadata={"properties": {"k": "v"}})
    registry.config("a", alias=None, compatibilityGroup="g")
    assert registry.state.configs["a"] == {
        "subject": "a",
        "compatibilityLevel": "FULL",
        "compatibilityGroup": "g",
        "defaultMetadata": {"properties": {"k": "v"}},
    }


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"compatibility": "sideways"}, 42203),
        ({"compatibilityLevel": 1}, 42203),
        ({"compatibilityPolicy": "x"}, 42203),
        ({"normalize": "yes"}, 422),
        ({"alias": 1}, 422),
        ({"defaultMetadata": []}, 42210),
        ({"overrideRuleSet": 1}, 42210),
    ],
)
def test_other_configurations_are_refused(registry, change, code):
    with refused(code):
        registry.config("a", **change)


def test_modes_come_from_the_subject_its_context_or_all(registry):
    assert mode_of(registry.state, None) is Mode.READWRITE
    with refused(40409):
        mode_of(registry.state, "a")
    registry.mode(None, "readonly")
    assert mode_of(registry.state, "a", in_scope=True) is Mode.READONLY
    with refused(42205):
        registry.register("a", INT)
    with refused(42205):
        registry.config("a", compatibilityLevel="NONE")
    registry.mode("a", "READWRITE")
    registry.register("a", INT)
    registry.take(decide_no_mode(registry.state, "a"))
    with refused(40409):
        decide_no_mode(registry.state, "a")
    with refused(42205):
        registry.delete_subject("a")
    with refused(42204):
        registry.mode("a", "sideways")


def test_a_global_override_makes_all_read_only(registry):
    registry.mode("a", "READWRITE")
    registry.mode(None, "READONLY_OVERRIDE")
    with refused(42205):
        registry.register("a", INT)


def test_imports_bring_their_ids_and_are_not_tested(registry):
    with refused(42205):
        registry.register("a", INT, id=7)
    registry.mode("a", "IMPORT")
    with refused(42205):
        registry.register("a", INT)
    assert registry.register("a", INT, id=7, version=3) == (7, 3)
    assert registry.register("a", TEXT, id=9) == (9, 4)
    assert registry.register("a", INT, id=7) == (7, 3)
    with refused(42207):
        registry.register("a", LONG, id=9)
    registry.mode("a", "READWRITE")
    assert registry.register("b", LONG) == (10, 1)


def test_import_mode_needs_a_place_without_subjects(registry):
    registry.register("a", INT)
    for place in ("a", None):
        with refused(42205):
            registry.mode(place, "IMPORT")
    registry.mode("b", "IMPORT")
    registry.mode("a", "IMPORT", force=True)
    registry.mode("a", "READWRITE")
    registry.delete_subject("a")
    registry.mode(None, "IMPORT")
    assert len(registry.state) == 0


# --- records -----------------------------------------------------------------------------------------------


def test_records_have_confluents_keys_and_values(registry):
    registry.register("a", INT)
    registry.register(":.c:a", "true", SchemaKind.JSON, metadata=Metadata(sensitive=("s",)))
    registry.delete_subject("a")
    registry.config(None, compatibilityLevel="FULL")
    registry.config("a", compatibilityLevel="NONE")
    registry.mode("a", "READONLY")
    assert registry.log == [
        (
            b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
            b'{"subject":"a","version":1,"id":1,"md5":"71JOobkecxc9k4reNsHbMg==","schema":"\\"int\\"","deleted":false}',
        ),
        (
            b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
            b'{"tenant":"default","context":".c"}',
        ),
        (
            b'{"keytype":"SCHEMA","subject":":.c:a","version":1,"magic":1}',
            b'{"subject":":.c:a","version":1,"id":1,"md5":"Ahaaev49ilFsJ9cXblQxFQ==","schemaType":"JSON",'
            b'"metadata":{"sensitive":["s"]},"schema":"true","deleted":false}',
        ),
        (b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', b'{"subject":"a","version":1}'),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"FULL"}'),
        (b'{"keytype":"CONFIG","subject":"a","magic":0}', b'{"subject":"a","compatibilityLevel":"NONE"}'),
        (b'{"keytype":"MODE","subject":"a","magic":0}', b'{"subject":"a","mode":"READONLY"}'),
    ]


def test_records_of_other_registries_are_read():
    state = RegistryState()
    pairs = [
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}'),
        (
            b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
            b'{"subject":"a","version":1,"id":5,"schema":"\\"int\\"","schemaType":null,"references":[],'
            b'"metadata":null,"offset":3,"ts":4,"unknown":1}',
        ),
        (b'{"keytype":"SCHEMA","subject":"b","version":1,"magic":1}', b'{"subject":"b"}'),
        (b'{"keytype":"SCHEMA","subject":"b","version":1,"magic":1}', b'{"id":1,"schema":"x","schemaType":"X"}'),
    ]
    state.take(read(*pair) for pair in pairs)
    assert state.configs == {None: {"compatibilityLevel": "NONE"}}
    assert state.by_id(5) == Schema(INT)
    assert state.skipped == 2
    assert state.next_id() == 6


@pytest.mark.parametrize(
    "pair",
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"[]", b"{}"),
        (b'{"keytype":"ASSOC"}', b"{}"),
        (b'{"keytype":"MODE"}', b"x"),
        (b'{"keytype":"MODE"}', b"[]"),
        (b'{"keytype":"MODE","subject":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":"x"}', b"{}"),
    ],
)
def test_other_records_of_the_topic_are_none_of_the_registry(pair):
    assert read(*pair) is None


def test_a_fold_of_the_compacted_log_is_the_same_state(registry):
    registry.config(None, compatibilityLevel="NONE")
    for text in (INT, LONG, TEXT):
        registry.register("a", text)
        registry.register("b", text)
    registry.delete_version("a", 2)
    registry.register("a", LONG)
    registry.delete_subject("b")
    registry.register("b", INT)
    registry.mode("b", "READONLY")
    compacted = registry.compacted()
    for subject in ("a", "b"):
        assert compacted.versions(subject, deleted=True) == registry.state.versions(subject, deleted=True)
    assert (compacted.modes, compacted.configs) == (registry.state.modes, registry.state.configs)
    assert compacted.next_id() == registry.state.next_id() == 4
