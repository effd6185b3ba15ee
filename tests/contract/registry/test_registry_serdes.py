"""tidelog's serializers: the bytes that confluent-kafka's read and write, by id and by header."""

import json

import pytest
from confluent_kafka import schema_registry as theirs
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJSONDeserializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJSONSerializer
from confluent_kafka.serialization import SerializationContext as TheirContext
from support.registry_servers import running_registry

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.lake import Lake
from tidelog.schema_registry import (
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    header_schema_id_serializer,
    topic_record_subject_name_strategy,
)
from tidelog.schema_registry.avro import AvroDeserializer, AvroSerializer
from tidelog.schema_registry.json_schema import JSONDeserializer, JSONSerializer

DELAY = {"name": "delay", "type": ["null", "int"], "default": None}
FLIGHT = json.dumps({"type": "record", "name": "a.Flight", "fields": [{"name": "carrier", "type": "string"}, DELAY]})
OBJECT = json.dumps({"title": "Flight", "type": "object", "properties": {"delay": {"type": "integer"}}})
UA = {"carrier": "UA", "delay": 3}


def context(**more):
    return SerializationContext("flights", MessageField.VALUE, **more)


@pytest.fixture
def client(tmp_path):
    with Lake(tmp_path / "lake") as lake, SchemaRegistryClient({"lake": lake}) as one:
        yield one


@pytest.fixture
def both(tmp_path):
    """Our client without a server and theirs, over one lake."""
    with running_registry(tmp_path / "lake") as running, Lake(tmp_path / "lake") as lake:
        yield SchemaRegistryClient({"lake": lake}), theirs.SchemaRegistryClient({"url": running.url})


def test_avro_is_written_and_read_as_confluent_kafka_does(both):
    ours, other = both
    written = AvroSerializer(ours, FLIGHT)(UA, context())
    assert written == TheirAvroSerializer(other, FLIGHT)(UA, TheirContext("flights", "value"))
    assert TheirAvroDeserializer(other)(written, TheirContext("flights", "value")) == UA
    assert AvroDeserializer(ours)(written, context()) == UA


def test_json_is_written_and_read_as_confluent_kafka_does(both):
    ours, other = both
    written = JSONSerializer(OBJECT, ours)({"delay": 3}, context())
    again = TheirJSONSerializer(OBJECT, other)({"delay": 3}, TheirContext("flights", "value"))
    assert written[:5] == again[:5] == b"\0\0\0\0\1"
    assert TheirJSONDeserializer(OBJECT, schema_registry_client=other)(written, TheirContext("flights", "value")) == {
        "delay": 3
    }
    assert JSONDeserializer(None, schema_registry_client=ours)(again, context()) == {"delay": 3}


@pytest.mark.parametrize("headers", [[], {}])
def test_the_schema_in_a_header(both, headers):
    ours, other = both
    flight = {"carrier": "United", "delay": 3}  # theirs refuses fewer than 6 bytes
    serializer = AvroSerializer(ours, FLIGHT, conf={"schema.id.serializer": header_schema_id_serializer})
    written = serializer(flight, context(headers=headers))
    assert [*dict(headers)] == ["__value_schema_id"]
    assert AvroDeserializer(ours)(written, context(headers=headers)) == flight
    assert TheirAvroDeserializer(other)(written, TheirContext("flights", "value", headers)) == flight
    with pytest.raises(SerializationError, match="can't be added to"):
        serializer(flight, context())


def test_a_reader_fills_in_defaults(client):
    written = AvroSerializer(client, FLIGHT)(UA, context())
    grown = json.loads(FLIGHT)
    grown["fields"].append({"name": "gate", "type": "string", "default": "?"})
    assert AvroDeserializer(client, json.dumps(grown))(written, context()) == {**UA, "gate": "?"}


def test_referenced_schemas(client):
    gate = '{"type":"record","name":"a.Gate","fields":[{"name":"n","type":"int"}]}'
    client.register_schema("gate", Schema(gate))
    outer = json.dumps({"type": "record", "name": "a.F", "fields": [{"name": "gate", "type": "a.Gate"}]})
    schema = Schema(outer, references=[SchemaReference("a.Gate", "gate", 1)])
    written = AvroSerializer(client, schema)({"gate": {"n": 7}}, context())
    assert AvroDeserializer(client)(written, context()) == {"gate": {"n": 7}}
    client.register_schema("number", Schema('{"type":"integer"}', "JSON"))
    text = '{"$id":"http://a.example/f.json","properties":{"n":{"$ref":"number.json"}}}'
    schema = Schema(text, "JSON", [SchemaReference("number.json", "number", 1)])
    serializer = JSONSerializer(schema, client, conf={"subject.name.strategy": lambda ctx, name: "json"})
    assert JSONDeserializer(None, schema_registry_client=client)(serializer({"n": 7}, context()), context()) == {"n": 7}
    with pytest.raises(SerializationError, match="'#/n'"):
        serializer({"n": "x"}, context())


def test_objects_of_classes_and_names_of_records(client):
    serializer = AvroSerializer(client, FLIGHT, lambda obj, ctx: {"carrier": obj, "delay": len(ctx.topic)})
    deserializer = AvroDeserializer(client, from_dict=lambda value, ctx: (ctx.topic, value["carrier"], value["delay"]))
    assert deserializer(serializer("UA", context()), context()) == ("flights", "UA", 7)
    union = f'["null", {FLIGHT}]'
    written = AvroSerializer(client, union, conf={"subject.name.strategy": lambda ctx, name: "u"})(UA, context())
    assert AvroDeserializer(client, return_record_name=True)(written, context()) == ("a.Flight", UA)


def test_nothing_stays_nothing(client):
    assert AvroSerializer(client, FLIGHT)(None, context()) is None
    assert AvroDeserializer(client)(None, context()) is None
    assert JSONSerializer(OBJECT, client)(None, context()) is None
    assert JSONDeserializer(OBJECT)(None, context()) is None


def test_the_newest_version_and_that_of_an_id(client):
    newest = {"auto.register.schemas": False, "use.latest.version": True}
    with pytest.raises(SchemaRegistryError):
        AvroSerializer(client, conf=newest)(UA, context())
    with pytest.raises(SchemaRegistryError):
        AvroSerializer(client, FLIGHT, conf={"auto.register.schemas": False})(UA, context())
    client.register_schema(
        "flights-value", Schema(FLIGHT, metadata=Metadata(properties=MetadataProperties({"k": "v"})))
    )
    for conf in (newest, {"use.schema.id": 1}, {"use.latest.with.metadata": {"k": "v"}}):
        assert AvroSerializer(client, conf=conf)(UA, context())[:5] == b"\0\0\0\0\1"
    with pytest.raises(SerializationError, match="has no schema"):
        AvroSerializer(client)(UA, context())


def test_subjects_of_records(client):
    conf = {"subject.name.strategy": topic_record_subject_name_strategy}
    AvroSerializer(client, FLIGHT, conf=conf)(UA, context())
    JSONSerializer(OBJECT, client, conf=conf)({}, context())
    assert client.get_subjects() == ["flights-Flight", "flights-a.Flight"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "names no schema"),
        (b"\0\0\0\0", "names no schema"),
        (b"UA", "names no schema"),
        (b"\1short", "names no schema"),
        (b"\0\0\0\0\1\xff\xff\xff", "does not fit its schema 1"),
    ],
)
def test_bytes_of_others_are_refused_by_a_sentence(client, data, message):
    AvroSerializer(client, FLIGHT)(UA, context())
    with pytest.raises(SerializationError, match=message):
        AvroDeserializer(client)(data, context())


def test_values_that_do_not_fit_are_refused_by_a_sentence(client):
    named = {"subject.name.strategy": lambda ctx, name: "json"}
    with pytest.raises(SerializationError, match="does not fit the schema"):
        AvroSerializer(client, FLIGHT)({"carrier": 1}, context())
    with pytest.raises(SerializationError, match="'#/delay'"):
        JSONSerializer(OBJECT, client, conf=named)({"delay": "x"}, context())
    written = JSONSerializer(OBJECT, client, conf={**named, "validate": False})({"delay": "x"}, context())
    with pytest.raises(SerializationError, match="'#/delay'"):
        JSONDeserializer(None, schema_registry_client=client)(written, context())
    assert JSONDeserializer(OBJECT, conf={"validate": False})(written, context()) == {"delay": "x"}
    with pytest.raises(SerializationError, match="not AVRO"):
        AvroDeserializer(client)(written, context())
    with pytest.raises(SerializationError, match="no JSON"):
        JSONDeserializer(OBJECT)(b"\0\0\0\0\1{", context())


@pytest.mark.parametrize("schema", ["{", '{"type":"recor"}', '"strin"'])
def test_schemas_that_are_none_are_refused(client, schema):
    with pytest.raises(SerializationError, match="is no"):
        AvroSerializer(client, schema)
    with pytest.raises(SerializationError, match="is no"):
        JSONDeserializer(schema)


@pytest.mark.parametrize(
    "conf",
    [
        {"no.such.key": 1},
        {"auto.register.schemas": "yes"},
        {"subject.name.strategy": 1},
        {"use.latest.version": True},
    ],
)
def test_other_settings_are_refused(client, conf):
    with pytest.raises(ValueError, match=r"propert|must be|needs"):
        AvroSerializer(client, FLIGHT, conf=conf)
