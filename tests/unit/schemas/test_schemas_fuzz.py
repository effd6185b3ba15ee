"""Whatever is sent as a schema is read, or refused by a sentence; nothing else happens."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import SchemaKind
from tidelog.schemas.compatibility import CompatibilityLevel, incompatibilities, parse

AVRO_WORDS = re.findall(
    r"\S+",
    "type name namespace fields items values symbols size default doc aliases order logicalType record enum fixed array"
    " map union null int string bytes a a.b r ascending decimal precision",
)
PROTO_WORDS = re.findall(
    r"\S+",
    "syntax package import message enum oneof map reserved extend service rpc returns option optional repeated required"
    " string int32 M N a = ; { } [ ] < > ( ) , 0 1 2 -1 max to stream group 'proto3' // /* */ ' \" . \\",
)
NAMES = st.sampled_from(["a", "b", "$ref", "a/b"])
COUNTS = st.integers(0, 3)
SCHEMAS = st.deferred(
    lambda: (
        st.booleans()
        | st.fixed_dictionaries(
            {},
            optional={
                "$ref": st.sampled_from(["#", "#/definitions/a", "#/properties/a", "#/items/0", "a", "#a"]),
                "$id": st.sampled_from(["http://a.example/a", "a", "#a"]),
                "type": st.sampled_from(["string", "integer", "object", "array"]) | st.just(["null", "number"]),
                "properties": st.dictionaries(NAMES, SCHEMAS, max_size=2),
                "definitions": st.dictionaries(NAMES, SCHEMAS, max_size=2),
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "(", r"(a)\\1"]), SCHEMAS, max_size=1),
                "dependencies": st.dictionaries(NAMES, SCHEMAS | st.just(["a"]), max_size=1),
                "additionalProperties": SCHEMAS,
                "items": SCHEMAS | st.lists(SCHEMAS, min_size=1, max_size=2),
                "additionalItems": SCHEMAS,
                "required": st.lists(NAMES, unique=True, min_size=1, max_size=2),
                "anyOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "allOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "not": SCHEMAS,
                "enum": st.lists(COUNTS | NAMES | st.none(), min_size=1, max_size=3, unique=True),
                "const": COUNTS | st.none() | st.lists(NAMES, max_size=1),
                "if": SCHEMAS,
                "maxLength": COUNTS,
                "minimum": COUNTS | st.floats(0, 1),
                "multipleOf": st.floats(0.1, 10),
                "uniqueItems": st.booleans(),
                "unevaluatedProperties": SCHEMAS,
                "default": st.none(),
            },
        )
    )
)
DRAFTS = st.sampled_from(
    [{}, *({"$schema": f"https://json-schema.org/draft/{year}/schema"} for year in ("2019-09", "2020-12"))]
)


def values(words):
    """JSON of these words."""
    word = st.sampled_from(words)
    leaves = word | st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(word, inner, max_size=5))


def read(kind, text):
    """The schema, None where it is refused by a sentence."""
    try:
        found = parse(kind, text, {})
        found.check()
    except RegistryError as error:
        refused = error
    else:
        assert parse(kind, found.canonical, {}).canonical == found.canonical
        assert found.normalized == parse(kind, found.normalized, {}).normalized
        return found
    assert refused.code in (42201, 42209)
    assert len(str(refused)) > 10
    return None


def compare(one, other):
    if one is None or other is None:
        return
    messages = incompatibilities(CompatibilityLevel.FULL, one, [(1, other)])
    assert all(isinstance(message, str) for message in messages)
    assert incompatibilities(CompatibilityLevel.FULL, one, [(1, one)]) == []


@given(values(AVRO_WORDS), values(AVRO_WORDS))
def test_anything_as_avro(one, other):
    compare(*(read(SchemaKind.AVRO, json.dumps(value)) for value in (one, other)))


@given(SCHEMAS, SCHEMAS, DRAFTS)
def test_anything_as_json_schema(one, other, draft):
    texts = [json.dumps({**value, **draft} if isinstance(value, dict) else value) for value in (one, other)]
    compare(*(read(SchemaKind.JSON, text) for text in texts))


@given(st.lists(st.sampled_from(PROTO_WORDS), max_size=30), st.lists(st.sampled_from(PROTO_WORDS), max_size=30))
def test_anything_as_protobuf(one, other):
    compare(*(read(SchemaKind.PROTOBUF, " ".join(words)) for words in (one, other)))


@given(st.sampled_from([*SchemaKind]), st.text(max_size=60))
def test_any_text(kind, text):
    read(kind, text)


@pytest.mark.parametrize("kind", [*SchemaKind])
def test_long_texts(kind):
    for text in ("a" * 100_000, "[" * 100_000, "{" * 100_000, '"' * 9_999, "\\" * 9_999, "1" * 10_000, "/*" * 10_000):
        assert read(kind, text) is None
