"""The registry's decisions about contexts and settings; its records, and their fold."""

import pytest
from support.registries import INT, LONG, TEXT, Registry, record, refused

from tidelog.operations.schemas.deleting import decide_delete_context
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.look_ups import look_up
from tidelog.operations.schemas.records import read
from tidelog.operations.schemas.settings import (
    Mode,
    config_of,
    decide_no_config,
    decide_no_mode,
    mode_of,
)
from tidelog.schemas.base.model import Reference, RuleSet, Schema, SchemaKind, SchemaMetadata


@pytest.fixture
def registry():
    return Registry()


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
    assert config_of(registry.state, "a") == {"normalize": True, "compatibilityLevel": "FULL"}
    with refused(40408):
        config_of(registry.state, "b")
    registry.take(decide_no_config(registry.state, "a")[1])
    with refused(40401):
        decide_no_config(registry.state, "a")
    registry.take(decide_no_config(registry.state, None)[1])
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
        ({"normalize": "yes"}, 400),
        ({"alias": 1}, 400),
        ({"defaultMetadata": []}, 400),
        ({"overrideRuleSet": 1}, 400),
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
    registry.take(decide_no_mode(registry.state, "a")[1])
    with refused(40401):
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
    with refused(42205):
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
    registry.register(":.c:a", "true", SchemaKind.JSON, metadata=SchemaMetadata(sensitive=("s",)))
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


# --- what a configuration gives to schemas -----------------------------------------------------------------


def test_a_configuration_gives_metadata_before_and_after_a_schemas_own():
    registry = Registry()
    registry.config(
        "a",
        defaultMetadata={"properties": {"owner": "all", "kept": "default"}, "tags": {"f": ["x"]}},
        overrideMetadata={"properties": {"forced": "yes", "level": "9"}, "sensitive": ["forced"]},
    )
    own = SchemaMetadata(tags={"f": ("y",)}, properties={"owner": "me", "level": "1"})
    registry.register("a", INT, metadata=own)
    assert registry.state.version("a", 1).schema.metadata == SchemaMetadata(
        tags={"f": ("x", "y")},
        properties={"forced": "yes", "kept": "default", "level": "9", "owner": "me"},
        sensitive=("forced",),
    )
    assert look_up(registry.state, "a", Schema(INT, SchemaKind.AVRO, (), own, None)).version == 1
    assert look_up(registry.state, "a", Schema(INT)).version == 1
    # Without any of its own it has the newest version's, and with the same again nothing is new.
    assert registry.register("a", INT) == (1, 1)
    assert registry.register("b", INT)[0] == 2
    assert registry.state.version("b", 1).schema.metadata is None


def test_a_configuration_gives_rules_by_their_names():
    def rule(name, expression):
        return {"name": name, "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": expression}

    registry = Registry()
    registry.config(
        "a",
        defaultRuleSet={"domainRules": [rule("one", "default"), rule("two", "default")]},
        overrideRuleSet={"domainRules": [rule("three", "override")]},
    )
    own = RuleSet.of({"domainRules": [rule("two", "own"), rule("three", "own")]})
    registry.register("a", INT, rules=own)
    found = registry.state.version("a", 1).schema.rules.json()["domainRules"]
    assert [(one["name"], one["expr"]) for one in found] == [("one", "default"), ("two", "own"), ("three", "override")]
