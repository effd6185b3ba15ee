"""Each rule of JSON Schema compatibility: a change it is about, and its place."""

import json

import pytest

from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.json_schema.parsed import JsonSchema
from tidelog.schemas.json_schema.rules import RULES

TEXT, NUMBER, BOOLEAN = {"type": "string"}, {"type": "number"}, {"type": "boolean"}


def text(**keywords):
    return {"type": "string", **keywords}


def number(**keywords):
    return {"type": "number", **keywords}


def array(**keywords):
    return {"type": "array", **keywords}


def record(properties=None, **keywords):
    return {"type": "object", "properties": properties or {}, **keywords}


def closed(properties=None, **keywords):
    return record(properties, additionalProperties=False, **keywords)


def partly(properties=None, beside=NUMBER, **keywords):
    return record(properties, additionalProperties=beside, **keywords)


def modern(schema):
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


# (rule, place, old schema, new schema)
ROWS = [
    ("ID_CHANGED", "#", text(**{"$id": "http://a.example/1"}), text(**{"$id": "http://a.example/2"})),
    ("TITLE_CHANGED", "#", text(title="a"), text(title="b")),
    ("DESCRIPTION_CHANGED", "#", text(description="a"), text(description="b")),
    ("DEFAULT_CHANGED", "#", text(default="a"), text(default="b")),
    ("SCHEMA_ADDED", "#/items", array(), array(items=TEXT)),
    ("SCHEMA_REMOVED", "#/items", array(items=TEXT), array()),
    ("TYPE_EXTENDED", "#", {"type": "integer"}, NUMBER),
    ("TYPE_NARROWED", "#", NUMBER, {"type": "integer"}),
    ("TYPE_CHANGED", "#", TEXT, NUMBER),
    ("MAX_LENGTH_ADDED", "#/maxLength", TEXT, text(maxLength=3)),
    ("MAX_LENGTH_REMOVED", "#/maxLength", text(maxLength=3), TEXT),
    ("MAX_LENGTH_INCREASED", "#/maxLength", text(maxLength=3), text(maxLength=4)),
    ("MAX_LENGTH_DECREASED", "#/maxLength", text(maxLength=3), text(maxLength=2)),
    ("MIN_LENGTH_ADDED", "#/minLength", TEXT, text(minLength=3)),
    ("MIN_LENGTH_REMOVED", "#/minLength", text(minLength=3), TEXT),
    ("MIN_LENGTH_INCREASED", "#/minLength", text(minLength=3), text(minLength=4)),
    ("MIN_LENGTH_DECREASED", "#/minLength", text(minLength=3), text(minLength=2)),
    ("PATTERN_ADDED", "#/pattern", TEXT, text(pattern="a")),
    ("PATTERN_REMOVED", "#/pattern", text(pattern="a"), TEXT),
    ("PATTERN_CHANGED", "#/pattern", text(pattern="a"), text(pattern="b")),
    ("MAXIMUM_ADDED", "#/maximum", NUMBER, number(maximum=3)),
    ("MAXIMUM_REMOVED", "#/maximum", number(maximum=3), NUMBER),
    ("MAXIMUM_INCREASED", "#/maximum", number(maximum=3), number(maximum=3.5)),
    ("MAXIMUM_DECREASED", "#/maximum", number(maximum=3), number(maximum=2)),
    ("MINIMUM_ADDED", "#/minimum", NUMBER, number(minimum=3)),
    ("MINIMUM_REMOVED", "#/minimum", number(minimum=3), NUMBER),
    ("MINIMUM_INCREASED", "#/minimum", number(minimum=3), number(minimum=4)),
    ("MINIMUM_DECREASED", "#/minimum", number(minimum=3), number(minimum=2)),
    ("EXCLUSIVE_MAXIMUM_ADDED", "#/exclusiveMaximum", NUMBER, number(exclusiveMaximum=3)),
    ("EXCLUSIVE_MAXIMUM_REMOVED", "#/exclusiveMaximum", number(exclusiveMaximum=3), NUMBER),
    ("EXCLUSIVE_MAXIMUM_INCREASED", "#/exclusiveMaximum", number(exclusiveMaximum=3), number(exclusiveMaximum=4)),
    ("EXCLUSIVE_MAXIMUM_DECREASED", "#/exclusiveMaximum", number(exclusiveMaximum=3), number(exclusiveMaximum=2)),
    ("EXCLUSIVE_MINIMUM_ADDED", "#/exclusiveMinimum", NUMBER, number(exclusiveMinimum=3)),
    ("EXCLUSIVE_MINIMUM_REMOVED", "#/exclusiveMinimum", number(exclusiveMinimum=3), NUMBER),
    ("EXCLUSIVE_MINIMUM_INCREASED", "#/exclusiveMinimum", number(exclusiveMinimum=3), number(exclusiveMinimum=4)),
    ("EXCLUSIVE_MINIMUM_DECREASED", "#/exclusiveMinimum", number(exclusiveMinimum=3), number(exclusiveMinimum=2)),
    ("MULTIPLE_OF_ADDED", "#/multipleOf", NUMBER, number(multipleOf=10)),
    ("MULTIPLE_OF_REMOVED", "#/multipleOf", number(multipleOf=10), NUMBER),
    ("MULTIPLE_OF_EXPANDED", "#/multipleOf", number(multipleOf=0.1), number(multipleOf=0.3)),
    ("MULTIPLE_OF_REDUCED", "#/multipleOf", number(multipleOf=10), number(multipleOf=2.5)),
    ("MULTIPLE_OF_CHANGED", "#/multipleOf", number(multipleOf=10), number(multipleOf=3)),
    ("REQUIRED_ATTRIBUTE_ADDED", "#/required/a", record({"a": TEXT}), record({"a": TEXT}, required=["a"])),
    (
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "#/required/a",
        record({"a": TEXT}),
        record({"a": text(default="x")}, required=["a"]),
    ),
    ("REQUIRED_ATTRIBUTE_REMOVED", "#/required/a", record({"a": TEXT}, required=["a"]), record({"a": TEXT})),
    ("MAX_PROPERTIES_ADDED", "#/maxProperties", record(), record(maxProperties=3)),
    ("MAX_PROPERTIES_REMOVED", "#/maxProperties", record(maxProperties=3), record()),
    ("MAX_PROPERTIES_INCREASED", "#/maxProperties", record(maxProperties=3), record(maxProperties=4)),
    ("MAX_PROPERTIES_DECREASED", "#/maxProperties", record(maxProperties=3), record(maxProperties=2)),
    ("MIN_PROPERTIES_ADDED", "#/minProperties", record(), record(minProperties=3)),
    ("MIN_PROPERTIES_REMOVED", "#/minProperties", record(minProperties=3), record()),
    ("MIN_PROPERTIES_INCREASED", "#/minProperties", record(minProperties=3), record(minProperties=4)),
    ("MIN_PROPERTIES_DECREASED", "#/minProperties", record(minProperties=3), record(minProperties=2)),
    ("DEPENDENCY_ARRAY_ADDED", "#/dependencies/a", record(), record(dependencies={"a": ["b"]})),
    ("DEPENDENCY_ARRAY_REMOVED", "#/dependencies/a", record(dependencies={"a": ["b"]}), record()),
    (
        "DEPENDENCY_ARRAY_EXTENDED",
        "#/dependencies/a",
        modern(record(dependentRequired={"a": ["b"]})),
        modern(record(dependentRequired={"a": ["b", "c"]})),
    ),
    (
        "DEPENDENCY_ARRAY_NARROWED",
        "#/dependencies/a",
        record(dependencies={"a": ["b", "c"]}),
        record(dependencies={"a": ["b"]}),
    ),
    (
        "DEPENDENCY_ARRAY_CHANGED",
        "#/dependencies/a",
        record(dependencies={"a": ["b"]}),
        record(dependencies={"a": ["c"]}),
    ),
    ("DEPENDENCY_SCHEMA_ADDED", "#/dependencies/a", record(), record(dependencies={"a": record()})),
    (
        "DEPENDENCY_SCHEMA_REMOVED",
        "#/dependencies/a",
        modern(record(dependentSchemas={"a": record()})),
        modern(record()),
    ),
    ("ADDITIONAL_PROPERTIES_ADDED", "#/additionalProperties", closed(), record()),
    ("ADDITIONAL_PROPERTIES_REMOVED", "#/additionalProperties", record(), closed()),
    ("ADDITIONAL_PROPERTIES_EXTENDED", "#/additionalProperties", partly(), record()),
    ("ADDITIONAL_PROPERTIES_NARROWED", "#/additionalProperties", record(), partly()),
    (
        "UNEVALUATED_PROPERTIES_ADDED",
        "#/unevaluatedProperties",
        modern(record(unevaluatedProperties=False)),
        modern(record()),
    ),
    (
        "UNEVALUATED_PROPERTIES_REMOVED",
        "#/unevaluatedProperties",
        modern(record()),
        modern(record(unevaluatedProperties=False)),
    ),
    (
        "UNEVALUATED_PROPERTIES_EXTENDED",
        "#/unevaluatedProperties",
        modern(record(unevaluatedProperties=TEXT)),
        modern(record(unevaluatedProperties=True)),
    ),
    (
        "UNEVALUATED_PROPERTIES_NARROWED",
        "#/unevaluatedProperties",
        modern(record(unevaluatedProperties=True)),
        modern(record(unevaluatedProperties=TEXT)),
    ),
    ("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", "#/properties/a", record({"a": TEXT}), record()),
    ("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/a", closed({"a": TEXT}), closed()),
    ("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/a", closed({"a": False}), closed()),
    (
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
        partly({"a": {"type": "integer"}}),
        partly(),
    ),
    (
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
        closed({"a": TEXT}, patternProperties={"^a": NUMBER}),
        closed(patternProperties={"^a": NUMBER}),
    ),
    ("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/a", record(), record({"a": {}})),
    ("REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/a", record(), record({"a": TEXT}, required=["a"])),
    (
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/a",
        record(),
        record({"a": text(default="x")}, required=["a"]),
    ),
    ("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/a", record(), record({"a": TEXT})),
    (
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
        partly(beside={"type": "integer"}),
        partly({"a": NUMBER}, beside={"type": "integer"}),
    ),
    (
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
        modern(record(unevaluatedProperties=NUMBER)),
        modern(record({"a": TEXT}, unevaluatedProperties=NUMBER)),
    ),
    ("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "#/properties/a", closed(), closed({"a": {}}, required=["a"])),
    (
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "#/properties/a",
        closed(),
        closed({"a": text(default="x")}, required=["a"]),
    ),
    ("OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "#/properties/a", closed(), closed({"a": TEXT})),
    ("MAX_ITEMS_ADDED", "#/maxItems", array(), array(maxItems=3)),
    ("MAX_ITEMS_REMOVED", "#/maxItems", array(maxItems=3), array()),
    ("MAX_ITEMS_INCREASED", "#/maxItems", array(maxItems=3), array(maxItems=4)),
    ("MAX_ITEMS_DECREASED", "#/maxItems", array(maxItems=3), array(maxItems=2)),
    ("MIN_ITEMS_ADDED", "#/minItems", array(), array(minItems=3)),
    ("MIN_ITEMS_REMOVED", "#/minItems", array(minItems=3), array()),
    ("MIN_ITEMS_INCREASED", "#/minItems", array(minItems=3), array(minItems=4)),
    ("MIN_ITEMS_DECREASED", "#/minItems", array(minItems=3), array(minItems=2)),
    ("MAX_CONTAINS_ADDED", "#/maxContains", modern(array()), modern(array(maxContains=3))),
    ("MAX_CONTAINS_REMOVED", "#/maxContains", modern(array(maxContains=3)), modern(array())),
    ("MAX_CONTAINS_INCREASED", "#/maxContains", modern(array(maxContains=3)), modern(array(maxContains=4))),
    ("MAX_CONTAINS_DECREASED", "#/maxContains", modern(array(maxContains=3)), modern(array(maxContains=2))),
    ("MIN_CONTAINS_ADDED", "#/minContains", modern(array()), modern(array(minContains=3))),
    ("MIN_CONTAINS_REMOVED", "#/minContains", modern(array(minContains=3)), modern(array())),
    ("MIN_CONTAINS_INCREASED", "#/minContains", modern(array(minContains=3)), modern(array(minContains=4))),
    ("MIN_CONTAINS_DECREASED", "#/minContains", modern(array(minContains=3)), modern(array(minContains=2))),
    ("UNIQUE_ITEMS_ADDED", "#/uniqueItems", array(), array(uniqueItems=True)),
    ("UNIQUE_ITEMS_REMOVED", "#/uniqueItems", array(uniqueItems=True), array()),
    (
        "ADDITIONAL_ITEMS_ADDED",
        "#/additionalItems",
        array(items=[TEXT], additionalItems=False),
        array(items=[TEXT]),
    ),
    ("ADDITIONAL_ITEMS_REMOVED", "#/additionalItems", modern(array()), modern(array(items=False))),
    (
        "ADDITIONAL_ITEMS_EXTENDED",
        "#/additionalItems",
        modern(array(prefixItems=[TEXT], items=TEXT)),
        modern(array(prefixItems=[TEXT])),
    ),
    (
        "ADDITIONAL_ITEMS_NARROWED",
        "#/additionalItems",
        array(items=[TEXT]),
        array(items=[TEXT], additionalItems=TEXT),
    ),
    ("UNEVALUATED_ITEMS_ADDED", "#/unevaluatedItems", modern(array(unevaluatedItems=False)), modern(array())),
    ("UNEVALUATED_ITEMS_REMOVED", "#/unevaluatedItems", modern(array()), modern(array(unevaluatedItems=False))),
    ("UNEVALUATED_ITEMS_EXTENDED", "#/unevaluatedItems", modern(array(unevaluatedItems=TEXT)), modern(array())),
    ("UNEVALUATED_ITEMS_NARROWED", "#/unevaluatedItems", modern(array()), modern(array(unevaluatedItems=TEXT))),
    ("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", "#/items/1", array(items=[TEXT, TEXT]), array(items=[TEXT])),
    (
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/items/1",
        array(items=[TEXT, TEXT], additionalItems=False),
        array(items=[TEXT], additionalItems=False),
    ),
    (
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/items/1",
        array(items=[TEXT, False], additionalItems=False),
        array(items=[TEXT], additionalItems=False),
    ),
    (
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        array(items=[TEXT, TEXT], additionalItems=TEXT),
        array(items=[TEXT], additionalItems=TEXT),
    ),
    (
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        array(items=[TEXT, TEXT], additionalItems=NUMBER),
        array(items=[TEXT], additionalItems=NUMBER),
    ),
    ("ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "#/items/1", array(items=[TEXT]), array(items=[TEXT, {}])),
    ("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", "#/items/1", array(items=[TEXT]), array(items=[TEXT, TEXT])),
    (
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "#/items/1",
        array(items=[TEXT], additionalItems=False),
        array(items=[TEXT, TEXT], additionalItems=False),
    ),
    (
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        array(items=[TEXT], additionalItems=TEXT),
        array(items=[TEXT, TEXT], additionalItems=TEXT),
    ),
    (
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        modern(array(prefixItems=[TEXT], unevaluatedItems=NUMBER)),
        modern(array(prefixItems=[TEXT, TEXT], unevaluatedItems=NUMBER)),
    ),
    ("ENUM_ARRAY_EXTENDED", "#/enum", {"enum": [1, "a"]}, {"enum": ["a", 1.0, None]}),
    ("ENUM_ARRAY_NARROWED", "#/enum", {"enum": [1, "a"]}, {"enum": [1]}),
    ("ENUM_ARRAY_CHANGED", "#/enum", {"enum": [1]}, {"enum": [True]}),
    ("COMBINED_TYPE_EXTENDED", "#", {"oneOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER]}),
    ("COMBINED_TYPE_CHANGED", "#", {"anyOf": [TEXT, NUMBER]}, {"oneOf": [TEXT, NUMBER]}),
    ("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "#", {"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, BOOLEAN]}),
    ("PRODUCT_TYPE_EXTENDED", "#", {"allOf": [TEXT]}, {"allOf": [TEXT, {"maxLength": 3}]}),
    ("PRODUCT_TYPE_NARROWED", "#", {"allOf": [TEXT, {"maxLength": 3}]}, {"allOf": [TEXT]}),
    ("SUM_TYPE_EXTENDED", "#", {"oneOf": [TEXT, NUMBER]}, {"oneOf": [NUMBER, BOOLEAN, TEXT]}),
    ("SUM_TYPE_NARROWED", "#", {"oneOf": [TEXT, NUMBER]}, {"oneOf": [NUMBER]}),
    ("NOT_TYPE_EXTENDED", "#/not", {"not": text(maxLength=3)}, {"not": TEXT}),
    ("NOT_TYPE_NARROWED", "#/not", {"not": TEXT}, {"not": text(maxLength=3)}),
]

# (what, whether it is compatible, old schema, new schema)
CASES = [
    ("a type joins alternatives", True, TEXT, {"type": ["string", "null"]}),
    ("a type leaves alternatives", False, {"type": ["string", "null"]}, TEXT),
    ("a type becomes a part of a product", False, TEXT, {"allOf": [TEXT, NUMBER]}),
    ("a product becomes one of its parts", True, {"allOf": [TEXT, NUMBER]}, TEXT),
    ("a sum becomes one of its parts", False, {"oneOf": [TEXT, NUMBER]}, TEXT),
    ("one alternative is none", True, {"oneOf": [TEXT]}, TEXT),
    ("a type becomes one alternative", True, TEXT, {"allOf": [TEXT]}),
    ("alternatives change places", True, {"oneOf": [TEXT, NUMBER]}, {"oneOf": [NUMBER, TEXT]}),
    ("equal alternatives count once", True, {"allOf": [TEXT, TEXT]}, {"allOf": [TEXT]}),
    ("each alternative has a partner of its own", False, {"anyOf": [text(maxLength=1), text(maxLength=2)]},
     {"anyOf": [text(maxLength=2), NUMBER]}),
    ("a partner is taken from another", True,
     {"anyOf": [{"type": "integer"}, {"type": "integer", "maximum": 5}]},
     {"anyOf": [{"type": "integer", "maximum": 5}, {"type": "integer"}]}),
    ("an enumeration is added to a type", False, TEXT, {"type": "string", "enum": ["a"]}),
    ("an enumeration is taken from a type", True, {"type": "string", "enum": ["a"]}, TEXT),
    ("anything is accepted", True, TEXT, {}),
    ("anything is accepted, said by true", True, record({"a": TEXT}), record({"a": True})),
    ("nothing was accepted", True, record({"a": False}), record({"a": TEXT})),
    ("nothing is accepted", False, record({"a": TEXT}), record({"a": False})),
    ("a constant changes", False, {"const": 1}, {"const": 2}),
    ("a constant is written differently", True, {"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}),
    ("bytes of Kafka Connect change their type", True, number(**{"connect.type": "bytes"}),
     text(**{"connect.type": "bytes"})),
    ("draft 4 has exclusive limits by a flag", False,
     {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "maximum": 5},
     {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "maximum": 5, "exclusiveMaximum": True}),
    ("a keyword beside a reference counts from 2019 on", False,
     modern({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}),
     modern({"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": TEXT}})),
    ("a keyword beside a reference does not count before", True,
     {"$ref": "#/definitions/a", "definitions": {"a": TEXT}},
     {"$ref": "#/definitions/a", "maxLength": 3, "definitions": {"a": TEXT}}),
    ("a pattern that needs backtracking covers nothing", False, closed({"aa": TEXT}),
     closed(patternProperties={r"(a)\1": TEXT})),
]  # fmt: skip


def differences(old, new, **policy):
    schemas = [JsonSchema(json.dumps(schema), {}) for schema in (old, new)]
    for schema in schemas:
        schema.check()
    return schemas[1].differences_from(schemas[0], **policy)


@pytest.mark.parametrize(("rule", "place", "old", "new"), ROWS, ids=[row[0] for row in ROWS])
def test_a_change_is_found_at_its_place_and_judged_by_its_rule(rule, place, old, new):
    found = differences(old, new)
    assert (rule, place) in [(one.rule.name, "/".join(("#", *one.path))) for one in found]
    if RULES[rule].compatible:
        assert not any(one.breaking() for one in found)


def test_every_rule_has_a_row():
    assert sorted(row[0] for row in ROWS) == sorted(RULES)


@pytest.mark.parametrize(("what", "compatible", "old", "new"), CASES, ids=[row[0] for row in CASES])
def test_whether_a_change_is_compatible(what, compatible, old, new):
    assert any(one.breaking() for one in differences(old, new)) is not compatible


def test_the_lenient_policy_lets_open_content_models_gain_properties():
    old, new = record(), record({"a": TEXT})
    assert any(one.breaking() for one in differences(old, new))
    assert not any(one.breaking(lenient=True) for one in differences(old, new, lenient=True))


def node(child):
    return {"$ref": "#/definitions/n", "definitions": {"n": record({"next": {"$ref": "#/definitions/n"}, **child})}}


def test_circular_schemas_are_compared_to_their_end():
    assert not any(one.breaking() for one in differences(node({"v": TEXT}), node({"v": TEXT})))
    assert any(one.breaking() for one in differences(node({"v": TEXT}), node({"v": NUMBER})))


def test_what_was_assumed_of_a_circle_is_looked_at_again():
    """Each of two types has the other as an alternative; only the outer one's own property breaks."""

    def both(last):
        a = closed({"b": {"$ref": "#/definitions/b"}, "z": last})
        b = closed({"a": {"$ref": "#/definitions/a"}})
        alternatives = {"anyOf": [{"$ref": "#/definitions/b"}, TEXT]}
        return {**closed({"one": {"$ref": "#/definitions/a"}, "two": alternatives}), "definitions": {"a": a, "b": b}}

    found = differences(both(TEXT), both(NUMBER))
    assert ("COMBINED_TYPE_SUBSCHEMAS_CHANGED", ("properties", "two")) in [(one.rule.name, one.path) for one in found]


def test_a_chain_of_2_000_references_is_compared():
    def chain(last):
        links = {str(i): record({"n": {"$ref": f"#/definitions/{i + 1}"}}) for i in range(2_000)}
        return {"$ref": "#/definitions/0", "definitions": {**links, "2000": last}}

    (found,) = differences(chain(TEXT), chain(NUMBER))
    assert found.rule.name == "TYPE_CHANGED"
    assert len(found.path) == 4_000


def test_a_reference_may_lead_over_10_000_others():
    links = {str(i): {"$ref": f"#/definitions/{i + 1}"} for i in range(10_000)}
    schema = {"$ref": "#/definitions/0", "definitions": {**links, "10000": TEXT}}
    assert [one.rule.name for one in differences(schema, NUMBER)] == ["TYPE_CHANGED"]


def test_more_pairs_than_the_bound_are_refused(monkeypatch):
    monkeypatch.setattr("tidelog.schemas.base.comparison.MOST_PAIRS", 10_000)
    wide = {"oneOf": [text(maxLength=number) for number in range(100)]}
    with pytest.raises(RegistryError, match="pairs of parts") as refused:
        differences(wide, {"oneOf": [text(maxLength=-1 + number) for number in range(1, 102)]})
    assert refused.value.code == 42209


def test_types_that_double_at_each_level_are_compared_once_each():
    def doubling(last):
        levels = {
            str(i): record({"a": {"$ref": f"#/definitions/{i + 1}"}, "b": {"$ref": f"#/definitions/{i + 1}"}})
            for i in range(60)
        }
        return {"$ref": "#/definitions/0", "definitions": {**levels, "60": last}}

    found = differences(doubling(TEXT), doubling(NUMBER))
    assert {one.rule.name for one in found} == {"TYPE_CHANGED"}


def test_an_evil_pattern_does_not_hang():
    name = "a" * 60 + "!"
    found = differences(closed({name: TEXT}), closed(patternProperties={"^(a+)+$": TEXT}))
    assert [one.rule.name for one in found] == ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]
