"""What makes a schema the same as another one."""

import hashlib
from uuid import UUID

import pytest

from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Reference, RuleSet, Schema, SchemaKind, SchemaMetadata

REFERENCE = {"name": "n", "subject": "s", "version": 258}
METADATA = {"tags": {"b": ["z", "y"], "a": ["x"]}, "properties": {"q": "2", "p": "1"}, "sensitive": ["t", "s"]}
RULE = {
    "name": "r",
    "doc": "d",
    "kind": "CONDITION",
    "mode": "WRITE",
    "type": "CEL",
    "tags": ["b", "a"],
    "params": {"k": "v"},
    "expr": "e",
    "onSuccess": "NONE",
    "onFailure": "ERROR",
    "disabled": True,
}


def guid(*parts):
    return str(UUID(hashlib.md5(b"".join(parts)).hexdigest()))


def test_the_text_alone():
    assert Schema('"string"').guid == guid(b'"string"')


def test_the_kind_does_not_count():
    assert Schema("true", SchemaKind.JSON).guid == Schema("true").guid


def test_references_count_in_their_order():
    one, other = Reference.of(REFERENCE), Reference("m", "s", 1)
    assert Schema("x", references=(one, other)).guid == guid(b"x", b"n", b"s", b"\0\0\1\2", b"m", b"s", b"\0\0\0\1")


def test_metadata_count_behind_a_one_and_sorted():
    schema = Schema("x", metadata=SchemaMetadata.of(METADATA))
    assert schema.guid == guid(b"x\1", b"ax", b"byz", b"p1q2", b"st")
    assert Schema("x", metadata=SchemaMetadata()).guid == guid(b"x\1")


def test_rules_count_behind_a_one():
    schema = Schema("x", rules=RuleSet.of({"domainRules": [RULE], "migrationRules": [{"name": "m"}]}))
    assert schema.guid == guid(b"x\1", b"m", b"rdCONDITIONWRITECEL", b"abkv", b"eNONEERROR\1")


def test_what_is_sent_comes_back():
    assert Reference.of(REFERENCE).json() == REFERENCE
    metadata = SchemaMetadata.of(METADATA)
    assert metadata.json() == {**METADATA, "tags": {"a": ["x"], "b": ["y", "z"]}, "sensitive": ["s", "t"]}
    assert SchemaMetadata.of(metadata.json()) == metadata
    rules = RuleSet.of({"domainRules": [RULE]})
    assert rules.json() == {"domainRules": [{**RULE, "tags": ["a", "b"]}]}
    assert RuleSet.of(rules.json()) == rules
    assert SchemaMetadata.of(None) is None
    assert RuleSet.of(None) is None


@pytest.mark.parametrize(
    ("read", "value", "code"),
    [
        (Reference.of, {"name": "n", "subject": "s"}, 42201),
        (Reference.of, {"name": "n", "subject": "s", "version": True}, 400),
        (Reference.of, "text", 400),
        (SchemaMetadata.of, [], 400),
        (SchemaMetadata.of, {"tags": []}, 400),
        (SchemaMetadata.of, {"properties": {"a": 1}}, 400),
        (SchemaMetadata.of, {"sensitive": "a"}, 400),
        (RuleSet.of, 1, 400),
        (RuleSet.of, {"domainRules": {}}, 400),
        (RuleSet.of, {"domainRules": ["x"]}, 400),
        (RuleSet.of, {"domainRules": [{"kind": "X"}]}, 400),
        (RuleSet.of, {"domainRules": [{"name": 1}]}, 400),
    ],
)
def test_other_shapes_are_refused(read, value, code):
    with pytest.raises(RegistryError) as refused:
        read(value)
    assert refused.value.code == code
