"""Headers, routing, predicates, and chains of transformations: Kafka's own cases as rows."""

from datetime import date
from decimal import Decimal

import pytest
from support.connect_records import sink_record, source_record, transformed

from tidelog.connect.config.definition import ConfigDef
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectHeader
from tidelog.connect.data.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    SchemaType,
    date_schema,
    decimal_schema,
    struct_of,
)
from tidelog.connect.transforms.chain import apply_chain, chain_keys, chain_of
from tidelog.connect.transforms.plugins import PREDICATES, TRANSFORMATIONS

TEXT_WITH_DEFAULT = ConnectSchema(SchemaType.STRING, optional=True, default="default")
EXISTING = ConnectHeader("header1", "existing-value", STRING)

# --- headers -----------------------------------------------------------------------------------------------

INNER = struct_of({"foo": STRING})
# (fields, headers, (schema, value) of field1, names of headers appended and the values they have)
HEADERS_FROM = [
    ("field1", "inserted1", (STRING, "one"), [("inserted1", STRING, "one")]),
    ("field1", "header1", (STRING, "one"), [("header1", STRING, "one")]),
    ("field1", "inserted1", (INNER, {"foo": "x"}), [("inserted1", INNER, {"foo": "x"})]),
    ("field1,field1", "i1,i2", (STRING, "one"), [("i1", STRING, "one"), ("i2", STRING, "one")]),
    ("field1,field2", "i1,i1", (STRING, "one"), [("i1", STRING, "one"), ("i1", STRING, "two")]),
]


@pytest.mark.parametrize(("fields", "headers", "first", "appended"), HEADERS_FROM)
@pytest.mark.parametrize("operation", ["copy", "move"])
@pytest.mark.parametrize("side", ["Key", "Value"])
@pytest.mark.parametrize("with_schema", [True, False])
def test_header_from(side, operation, with_schema, fields, headers, first, appended):
    value = {"field1": first[1], "field2": "two"}
    schema = struct_of({"field1": first[0], "field2": STRING}) if with_schema else None
    record = source_record(schema, value, side, headers=(EXISTING,))
    config = {"fields": fields, "headers": headers, "operation": operation}
    found = transformed(f"HeaderFrom${side}", config, record)
    kept = value if operation == "copy" else {k: v for k, v in value.items() if k not in fields.split(",")}
    assert (found.key if side == "Key" else found.value) == kept
    assert found.headers == (
        EXISTING,
        *(ConnectHeader(name, one, kind if with_schema else None) for name, kind, one in appended),
    )
    found_schema = found.key_schema if side == "Key" else found.value_schema
    assert ([field.name for field in found_schema.fields] if with_schema else found_schema) == (
        [*kept] if with_schema else None
    )


@pytest.mark.parametrize(("replaces", "value"), [("true", "default"), ("false", None)])
def test_header_from_replaces_null_with_defaults_when_asked(replaces, value):
    record = source_record(struct_of({"a": TEXT_WITH_DEFAULT, "b": TEXT_WITH_DEFAULT}), {"a": None, "b": None})
    config = {"fields": "a", "headers": "h", "operation": "move", "replace.null.with.default": replaces}
    found = transformed("HeaderFrom$Value", config, record)
    assert found.headers == (ConnectHeader("h", value, TEXT_WITH_DEFAULT),)
    assert found.value == {"b": value}


@pytest.mark.parametrize(("fields", "headers"), [("foo", "foo,bar"), ("foo,bar", "foo"), ("", "")])
def test_header_from_needs_a_header_for_each_field(fields, headers):
    with pytest.raises(ConnectConfigError, match=r"same number of elements|Empty list"):
        transformed(
            "HeaderFrom$Value", {"fields": fields, "headers": headers, "operation": "copy"}, source_record(None, {})
        )


def test_header_from_refuses_fields_that_a_schema_lacks():
    config = {"fields": "no", "headers": "h", "operation": "copy"}
    with pytest.raises(DataError, match="Field does not exist: no"):
        transformed("HeaderFrom$Value", config, source_record(struct_of({"a": INT32}), {"a": 1}))
    assert transformed("HeaderFrom$Value", config, source_record(None, {"a": 1})).headers == (ConnectHeader("h", None),)


# (text, value, schema)
LITERALS = [
    ("inserted-value", "inserted-value", STRING),
    ("1", 1, INT8),
    ("-129", -129, INT16),
    ("40000", 40_000, INT32),
    ("3000000000", 3_000_000_000, INT64),
    ("18446744073709551616", Decimal(1 << 64), decimal_schema(0)),
    ("1.5", 1.5, FLOAT32),
    ("1.5e300", 1.5e300, FLOAT64),
    ("true", True, BOOLEAN),
    ("null", None, None),
    ('"quoted"', "quoted", STRING),
    ('[1, "a"]', [1, "a"], None),
    ('{"a": 1}', {"a": 1}, None),
    ("[no", "[no", STRING),
    ("2026-01-02", date(2026, 1, 2), date_schema()),
]


@pytest.mark.parametrize(("text", "value", "schema"), LITERALS)
@pytest.mark.parametrize("name", ["inserted", "header1"])
def test_insert_header_appends_the_narrowest_value(name, text, value, schema):
    record = source_record(None, "v", headers=(EXISTING,))
    found = transformed("InsertHeader", {"header": name, "value.literal": text}, record)
    assert found == record.but(headers=(EXISTING, ConnectHeader(name, value, schema)))
    assert type(found.headers[1].value) is type(value)


@pytest.mark.parametrize("config", [{"header": "h"}, {"value.literal": "1"}])
def test_insert_header_needs_a_name_and_a_value(config):
    with pytest.raises(ConnectConfigError, match="Missing required configuration"):
        transformed("InsertHeader", config, source_record(None, 1))


@pytest.mark.parametrize("dropped", [(), ("one",), ("one", "other")])
def test_drop_headers_removes_all_of_a_name(dropped):
    headers = tuple(ConnectHeader("to-drop", one, STRING) for one in dropped)
    record = source_record(None, 1, headers=(EXISTING, *headers))
    assert transformed("DropHeaders", {"headers": "to-drop,other"}, record) == record.but(headers=(EXISTING,))
    with pytest.raises(ConnectConfigError, match="Empty list"):
        transformed("DropHeaders", {"headers": ""}, record)


# --- routing and schemas' names ----------------------------------------------------------------------------

# (regex, replacement, topic, new topic)
ROUTES = [
    ("foo", "bar", "foo", "bar"),
    ("foo", "bar", "orig", "orig"),
    ("foo", "bar", "foot", "foot"),
    ("(.*)", "$1", "orig", "orig"),
    ("(.*)", "prefix-$1", "orig", "prefix-orig"),
    ("(.*)", "$1-suffix", "orig", "orig-suffix"),
    (r"(.*)-(\d\d\d\d\d\d\d\d)", "$1", "index-20160117", "index"),
    (r"(?<db>\w+)\.(?<table>\w+)", "${table}-${db}", "shop.orders", "orders-shop"),
    ("(a)(.*)", "$22-$0", "abc", "bc2-abc"),
    ("(.*)", r"\$1", "orig", "$1"),
    ("(.*)", r"a\\b", "orig", r"a\b"),
]


@pytest.mark.parametrize(("regex", "replacement", "topic", "routed"), ROUTES)
def test_regex_router(regex, replacement, topic, routed):
    record = sink_record(None, 1).but(topic=topic)
    assert transformed("RegexRouter", {"regex": regex, "replacement": replacement}, record) == record.but(topic=routed)


@pytest.mark.parametrize(
    "config",
    [{"regex": "[", "replacement": ""}, {"regex": "a", "replacement": "$1"}, {"regex": "a", "replacement": "$"}],
)
def test_regex_router_refuses_what_is_no_expression(config):
    with pytest.raises(ConnectConfigError, match=r"Invalid regex|Illegal group reference"):
        transformed("RegexRouter", config, source_record(None, 1))


def test_timestamp_router():
    record = source_record(None, 1, timestamp_ms=1_483_425_001_864)
    assert transformed("TimestampRouter", {}, record).topic == "test-20170103"
    config = {"topic.format": "${timestamp}/${topic}", "timestamp.format": "HH"}
    assert transformed("TimestampRouter", config, record).topic == "06/test"
    with pytest.raises(DataError, match="Timestamp missing"):
        transformed("TimestampRouter", {}, source_record(None, 1))


@pytest.mark.parametrize(
    ("config", "name", "version"),
    [
        ({"schema.name": "foo"}, "foo", 1),
        ({"schema.version": "42"}, "orig", 42),
        ({"schema.name": "foo", "schema.version": "42"}, "foo", 42),
    ],
)
@pytest.mark.parametrize("side", ["Key", "Value"])
def test_set_schema_metadata(side, config, name, version):
    schema = struct_of({"f1": STRING, "f2": INT32}, name="orig", version=1)
    for value in ({"f1": "value1", "f2": 1}, None):
        found = transformed(f"SetSchemaMetadata${side}", config, source_record(schema, value, side))
        renamed = struct_of({"f1": STRING, "f2": INT32}, name=name, version=version)
        assert ((found.key_schema, found.key) if side == "Key" else (found.value_schema, found.value)) == (
            renamed,
            value,
        )


def test_set_schema_metadata_needs_a_schema_and_something_to_set():
    config = {"schema.name": "foo"}
    assert transformed("SetSchemaMetadata$Value", config, source_record(INT32, 1)).value == 1
    record = source_record(None, None)
    assert transformed("SetSchemaMetadata$Value", config, record) is record
    with pytest.raises(DataError, match="Schema required for"):
        transformed("SetSchemaMetadata$Value", config, source_record(None, 42))
    with pytest.raises(ConnectConfigError, match="Neither schema name nor version"):
        transformed("SetSchemaMetadata$Value", {}, source_record(INT32, 42))


@pytest.mark.parametrize(("replaces", "value"), [("true", "default"), ("false", None)])
def test_set_schema_metadata_replaces_null_with_defaults_when_asked(replaces, value):
    config = {"schema.name": "foo", "replace.null.with.default": replaces}
    record = source_record(struct_of({"f1": TEXT_WITH_DEFAULT}), {"f1": None})
    assert transformed("SetSchemaMetadata$Value", config, record).value == {"f1": value}


# --- predicates and chains ---------------------------------------------------------------------------------


def headed(*names):
    return source_record(None, 1, headers=tuple(ConnectHeader(name, None) for name in names))


# (predicate, its configuration, record, whether it holds)
HOLDS = [
    ("TopicNameMatches", {"pattern": "my-prefix-.*"}, source_record(None, 1).but(topic="my-prefix-"), True),
    ("TopicNameMatches", {"pattern": "my-prefix-.*"}, source_record(None, 1).but(topic="my-prefix-foo"), True),
    ("TopicNameMatches", {"pattern": "my-prefix-.*"}, source_record(None, 1).but(topic="x-my-prefix-foo"), False),
    ("TopicNameMatches", {"pattern": "my-prefix-.*"}, source_record(None, 1).but(topic="your-prefix-"), False),
    ("TopicNameMatches", {"pattern": "my-prefix-.*"}, source_record(None, 1).but(topic=None), False),
    ("HasHeaderKey", {"name": "foo"}, headed("foo"), True),
    ("HasHeaderKey", {"name": "foo"}, headed("bar", "foo", "bar", "foo"), True),
    ("HasHeaderKey", {"name": "foo"}, headed("bar", "bar"), False),
    ("HasHeaderKey", {"name": "foo"}, headed(), False),
    ("RecordIsTombstone", {}, source_record(INT32, None), True),
    ("RecordIsTombstone", {}, source_record(INT32, 0), False),
]


def filtering(predicate, config, **others):
    return {
        "transforms": "drop",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "p",
        "predicates": "p",
        "predicates.p.type": predicate,
        **{f"predicates.p.{key}": value for key, value in config.items()},
        **others,
    }


@pytest.mark.parametrize(("name", "config", "record", "holds"), HOLDS)
@pytest.mark.parametrize("package", ["", "org.apache.kafka.connect.transforms.predicates."])
def test_filter_drops_the_records_of_a_predicate(package, name, config, record, holds):
    assert apply_chain(chain_of(filtering(package + name, config)), record) == (None if holds else record)
    negated = filtering(package + name, config, **{"transforms.drop.negate": "true"})
    assert apply_chain(chain_of(negated), record) == (record if holds else None)


@pytest.mark.parametrize(
    ("name", "config", "why"),
    [
        ("TopicNameMatches", {}, 'Missing required configuration "predicates.p.pattern"'),
        ("TopicNameMatches", {"pattern": ""}, "String must be non-empty"),
        ("TopicNameMatches", {"pattern": "["}, "Invalid regex"),
        ("HasHeaderKey", {}, 'Missing required configuration "predicates.p.name"'),
        ("HasHeaderKey", {"name": ""}, "String must be non-empty"),
        ("NoSuch", {}, "String must be one of"),
    ],
)
def test_predicates_refuse_configurations(name, config, why):
    with pytest.raises(ConnectConfigError, match=why):
        chain_of(filtering(name, config))


def test_a_chain_applies_its_transformations_in_order():
    config = {
        "transforms": "insert, mask ,route",
        "transforms.insert.type": "InsertField$Value",
        "transforms.insert.static.field": "secret",
        "transforms.insert.static.value": "s",
        "transforms.mask.type": "MaskField$Value",
        "transforms.mask.fields": "secret",
        "transforms.mask.replacement": "***",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": "to-$0",
    }
    found = apply_chain(chain_of(config), source_record(None, {"a": 1}))
    assert (found.topic, found.value) == ("to-test", {"a": 1, "secret": "***"})
    assert [one.alias for one in chain_of(config)] == ["insert", "mask", "route"]
    assert chain_of({}) == ()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"transforms": "a,a", "transforms.a.type": "Filter"}, "Duplicate alias"),
        ({"transforms": "a"}, 'Missing required configuration "transforms.a.type"'),
        ({"transforms": "a", "transforms.a.type": "com.example.Own"}, "String must be one of"),
        ({"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"}, "which `predicates` lacks"),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "true"},
            "without transforms.a.predicate",
        ),
        ({"transforms": "a", "transforms.a.type": "Flatten"}, "String must be one of"),
    ],
)
def test_chains_that_contradict_themselves_are_refused(config, why):
    with pytest.raises(ConnectConfigError, match=why):
        chain_of(config)


def test_validation_names_the_keys_of_every_alias():
    config = {"transforms": "c", "transforms.c.type": "Cast$Key", "transforms.c.spec": "x:no", "predicates": "p",
              "predicates.p.type": "HasHeaderKey"}  # fmt: skip
    found = {value.name: value for value in ConfigDef(chain_keys(config)).validate(config)}
    assert found["transforms.c.type"].errors == []
    assert "Invalid type found in casting spec: no" in found["transforms.c.spec"].errors[0]
    assert found["transforms.c.replace.null.with.default"].value is True
    assert found["predicates.p.name"].errors
    groups = {key.group for key in chain_keys(config)}
    assert groups == {"Transforms", "Transforms: c", "Predicates", "Predicates: p"}


def test_every_plugin_of_kafka_is_there_by_its_class():
    package = "org.apache.kafka.connect.transforms."
    sided = ["Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField", "ReplaceField",
             "SetSchemaMetadata", "TimestampConverter"]  # fmt: skip
    whole = ["DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey"]
    names = {f"{package}{name}${side}" for name in sided for side in ("Key", "Value")}
    names |= {package + name for name in whole}
    assert {name for name in TRANSFORMATIONS if name.startswith(package)} == names
    predicates = {f"{package}predicates.{name}" for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")}
    assert {name for name in PREDICATES if name.startswith(package)} == predicates
