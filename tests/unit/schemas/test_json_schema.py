"""JSON Schemas as texts: canonical, normalised, valid; references to others."""

import json

import pytest

from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.json_schema.parsed import JsonSchema


def parsed(schema, **references):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return JsonSchema(text, {name.replace("_", "."): json.dumps(other) for name, other in references.items()})


def test_the_canonical_text_is_one_line_with_keys_as_sent():
    assert parsed('{ "type":\n"string", "minLength": 1, "title": "ä/" }').canonical == (
        '{"type":"string","minLength":1,"title":"ä/"}'
    )


def test_the_normalised_text_has_its_keys_sorted():
    assert parsed('{"type": "object", "properties": {"b": {}, "a": {}}}').normalized == (
        '{"properties":{"a":{},"b":{}},"type":"object"}'
    )


def test_numbers_keep_their_digits():
    assert (
        parsed('{"maximum": 123456789012345678901234567890}').canonical == '{"maximum":123456789012345678901234567890}'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('"text"', "must be a JSON object or a boolean, found str"),
        ("[]", "found list"),
        ('{"type": "strin"}', "at '#/type'"),
        ('{"properties": {"a": {"minLength": "1"}}}', "at '#/properties/a/minLength'"),
        ('{"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 3}', "draft 4"),
        ('{"$schema": "https://json-schema.org/draft/2019-09/schema", "type": 3}', "draft 2019"),
        ('{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": 3}', "draft 2020"),
        ('{"$schema": "http://json-schema.org/draft-06/schema#", "type": 3}', "draft 6"),
        ('{"$schema": "http://unknown.invalid/schema", "type": 3}', "draft 7"),
        ('{"$ref": "#/definitions/a"}', "'#/definitions/a' leads nowhere: nothing is at 'definitions'"),
        ('{"items": [{"$ref": "#/items/7"}]}', "nothing is at '7'"),
        ('{"$ref": "#a"}', "no such anchor"),
        ('{"properties": {"default": {"$ref": "other.json"}}}', "no schema is referenced under that name"),
        ('{"$ref": "#"}', "leads back to itself"),
        ('{"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}', "back to itself"),
        (
            '{"$schema": "https://json-schema.org/draft/2019-09/schema", "$ref": "#/x", "properties": {}}',
            "'#/x' leads nowhere",
        ),
        ("[" * 100_000 + "]" * 100_000, "nested deeper than 200 levels"),
        ('{"not":' * 201 + "{}" + "}" * 201, "nested deeper than 200 levels"),
    ],
)
def test_what_is_no_schema_is_refused_by_a_sentence(text, message):
    with pytest.raises(RegistryError) as refused:
        JsonSchema(text, {}).check()
    assert refused.value.code == 42201
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["true", "false", "{}", '{"type": "object", "default": {"$ref": "nowhere"}}'])
def test_what_is_a_schema_is_accepted(text):
    JsonSchema(text, {}).check()


def test_a_schema_of_200_levels_is_accepted_and_compared():
    def deep(last):
        return json.loads('{"not":' * 198 + json.dumps(last) + "}" * 198)

    new = parsed(deep({"type": "string"}))
    new.check()
    assert new.differences_from(parsed(deep({"type": "number"})))


@pytest.mark.parametrize(
    "reference",
    [
        "other.json",
        "other.json#",
        "other.json#/definitions/text",
        "other.json#named",
        "http://a.example/other.json",
        "#/definitions/local",
        "local.json",
        "#here",
        "#/definitions/a~1b~0%25",
    ],
)
def test_references_are_found(reference):
    other = {"type": "string", "definitions": {"text": {"type": "string"}, "n": {"$id": "#named", "type": "string"}}}
    local = {
        "local": {"$id": "local.json", "type": "string"},
        "here": {"$id": "#here", "type": "string"},
        "a/b~%": {"type": "string"},
    }
    schema = parsed(
        {"$id": "http://a.example/root.json", "properties": {"p": {"$ref": reference}}, "definitions": local},
        other_json=other,
    )
    schema.check()
    number = parsed({"properties": {"p": {"type": "number"}}})
    text = parsed({"properties": {"p": {"type": "string"}}})
    assert [one.rule.name for one in schema.differences_from(number)][-1] == "TYPE_CHANGED"
    assert not any(one.breaking() for one in schema.differences_from(text))


def test_schemas_that_are_referenced_reference_others():
    schema = parsed(
        {"$ref": "b.json"},
        b_json={"properties": {"c": {"$ref": "c.json"}}},
        c_json={"properties": {"b": {"$ref": "b.json"}}},
    )
    schema.check()
    assert schema.differences_from(schema) == ()


def test_the_schema_of_schemas_may_be_referenced():
    schema = parsed({"$ref": "http://json-schema.org/draft-07/schema#"})
    schema.check()
