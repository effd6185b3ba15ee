"""The settings of serializers, one by one, beside confluent-kafka's; rules are refused by their names; asyncio."""

import asyncio
import json

import pytest
from confluent_kafka import schema_registry as theirs
from confluent_kafka.schema_registry import avro as their_avro
from confluent_kafka.schema_registry import json_schema as their_json
from confluent_kafka.serialization import SerializationContext as TheirContext
from google.protobuf.timestamp_pb2 import Timestamp
from support.logs import FakeClock
from support.registry_servers import running_registry

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.lake import Lake
from tidelog.schema_registry import (
    AsyncSchemaRegistryClient,
    Rule,
    RuleMode,
    RuleSet,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
    header_schema_id_serializer,
    prefix_schema_id_deserializer,
)
from tidelog.schema_registry.avro import AsyncAvroDeserializer, AsyncAvroSerializer, AvroDeserializer, AvroSerializer
from tidelog.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from tidelog.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)

DELAY = {"name": "delay", "type": ["null", "int"], "default": None}
FIELDS = [{"name": "carrier", "type": "string"}, DELAY]
FLIGHT = json.dumps({"type": "record", "name": "a.Flight", "fields": FIELDS})
OBJECT = json.dumps({"title": "Flight", "type": "object", "properties": {"delay": {"type": "integer"}}})
UA = {"carrier": "United", "delay": 3}
NEWEST = {"auto.register.schemas": False, "use.latest.version": True}


def context(headers=None):
    return SerializationContext("flights", MessageField.VALUE, headers)


@pytest.fixture
def both(tmp_path):
    """Our client without a server and theirs, over one lake."""
    with running_registry(tmp_path / "lake") as running, Lake(tmp_path / "lake") as lake:
        yield SchemaRegistryClient({"lake": lake}), theirs.SchemaRegistryClient({"url": running.url})


@pytest.fixture
def client(tmp_path):
    with Lake(tmp_path / "lake") as lake, SchemaRegistryClient({"lake": lake}) as one:
        yield one


@pytest.mark.parametrize("name", ["TOPIC", "record", "TOPIC_RECORD", "ASSOCIATED", None])
def test_strategies_by_their_names_give_confluents_subjects(both, name):
    ours, other = both
    conf = {"subject.name.strategy.type": name}
    written = AvroSerializer(ours, FLIGHT, conf=conf)(UA, context())
    [subject] = ours.get_subjects()
    ours.delete_subject(subject)
    assert written == their_avro.AvroSerializer(other, FLIGHT, conf=conf)(UA, TheirContext("flights", "value"))
    assert ours.get_subjects() == [subject]


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"subject.name.strategy.type": "NONE"}, "must be one of TOPIC, RECORD, TOPIC_RECORD, ASSOCIATED"),
        ({"subject.name.strategy.type": "SIDEWAYS"}, "must be one of"),
        ({"use.schema.id": "1"}, "must be a number"),
        ({"use.latest.with.metadata": "k"}, "must be a dict"),
        ({"schema.id.serializer": "header"}, "must be callable"),
        ({"validate.strict": 1}, "must be a boolean"),
        ({"validation.rules.execution": "BEFORE_DOMAIN_RULES"}, "run no rules"),
        ({"validation.rules.executor": object()}, "run no rules"),
    ],
)
def test_settings_that_can_not_be_are_refused(client, conf, message):
    with pytest.raises(ValueError, match=message):
        AvroSerializer(client, FLIGHT, conf=conf)


def test_a_fallback_of_associations(client):
    conf = {"subject.name.strategy.type": "ASSOCIATED"}
    none = {**conf, "subject.name.strategy.conf": {"subject.name.strategy.fallback.type": "NONE"}}
    with pytest.raises(SerializationError, match="No subject is associated with topic flights"):
        AvroSerializer(client, FLIGHT, conf=none)(UA, context())
    record = {**conf, "subject.name.strategy.conf": {"subject.name.strategy.fallback.type": "RECORD"}}
    AvroSerializer(client, FLIGHT, conf=record)(UA, context())
    assert client.get_subjects() == ["a.Flight"]


def test_strict_values(both):
    ours, other = both
    for conf, value, fits in (
        ({}, {**UA, "more": 1}, True),
        ({}, {"carrier": "United"}, True),
        ({"validate.strict": True}, {**UA, "more": 1}, False),
        ({"validate.strict": True}, {"carrier": "United"}, False),
        ({"validate.strict.allow.default": True}, {**UA, "more": 1}, False),
        ({"validate.strict.allow.default": True}, {"carrier": "United"}, True),
    ):
        mine, their = AvroSerializer(ours, FLIGHT, conf=conf), their_avro.AvroSerializer(other, FLIGHT, conf=conf)
        if fits:
            assert mine(value, context()) == their(value, TheirContext("flights", "value"))
            continue
        with pytest.raises(SerializationError):
            mine(value, context())
        with pytest.raises(ValueError):  # noqa: PT011 - fastavro's words
            their(value, TheirContext("flights", "value"))


def test_bytes_are_written_as_they_are(both):
    ours, other = both
    written = AvroSerializer(ours, '"bytes"')(b"plain", context())
    assert written == b"\0\0\0\0\1plain"
    assert written == their_avro.AvroSerializer(other, '"bytes"')(b"plain", TheirContext("flights", "value"))
    assert AvroDeserializer(ours)(written, context()) == b"plain"


def test_json_with_the_schema_in_a_header(both):
    ours, other = both
    headers, again = [], []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    written = JSONSerializer(OBJECT, ours, conf=conf)({"delay": 3}, context(headers))
    their_conf = {"schema.id.serializer": theirs.header_schema_id_serializer}
    their_json.JSONSerializer(OBJECT, other, conf=their_conf)({"delay": 3}, TheirContext("flights", "value", again))
    assert written == b'{"delay":3}'
    assert headers == again
    assert JSONDeserializer(None, schema_registry_client=ours)(written, context(again)) == {"delay": 3}
    their = their_json.JSONDeserializer(OBJECT, schema_registry_client=other)
    assert their(written, TheirContext("flights", "value", headers)) == {"delay": 3}


def test_headers_may_be_left_out_of_account(client):
    written = AvroSerializer(client, FLIGHT)(UA, context())
    wrong = [("__value_schema_id", b"\1" + bytes(16))]
    with pytest.raises(SchemaRegistryError, match="40403"):
        AvroDeserializer(client)(written, context(wrong))
    conf = {"schema.id.deserializer": prefix_schema_id_deserializer}
    assert AvroDeserializer(client, conf=conf)(written, context(wrong)) == UA


def test_functions_of_ones_own_for_ids(client):
    def at_the_end(payload, ctx, schema_id):
        return payload + schema_id.id_to_bytes()

    def from_the_end(payload, ctx, schema_id):
        schema_id.id = int.from_bytes(payload[-4:], "big")
        return payload[:-5]

    written = AvroSerializer(client, FLIGHT, conf={"schema.id.serializer": at_the_end})(UA, context())
    assert written[-5:] == b"\0\0\0\0\1"
    assert AvroDeserializer(client, conf={"schema.id.deserializer": from_the_end})(written, context()) == UA
    with pytest.raises(SerializationError, match="must set an id or a guid"):
        AvroDeserializer(client, conf={"schema.id.deserializer": lambda data, *_: data})(written, context())


def test_a_reader_takes_the_newest_version(client):
    written = AvroSerializer(client, FLIGHT)(UA, context())
    grown = json.dumps({**json.loads(FLIGHT), "fields": [*FIELDS, {"name": "gate", "type": "string", "default": "?"}]})
    client.register_schema("flights-value", Schema(grown))
    assert AvroDeserializer(client, conf={"use.latest.version": True})(written, context()) == {**UA, "gate": "?"}
    assert AvroDeserializer(client)(written, context()) == UA


def test_the_newest_version_is_looked_for_again_after_its_time(tmp_path):
    clock = FakeClock()
    with Lake(tmp_path / "lake") as lake:
        client = SchemaRegistryClient({"lake": lake, "cache.latest.ttl.sec": 10}, clock)
        client.register_schema("flights-value", Schema('"int"'))
        serializer = AvroSerializer(client, conf=NEWEST)
        assert serializer(1, context())[4] == 1
        with SchemaRegistryClient({"lake": lake}) as other:
            other.register_schema("flights-value", Schema('"long"'))
        clock.pass_s(9)
        assert serializer(1, context())[4] == 1
        clock.pass_s(2)
        assert serializer(1, context())[4] == 2


def rules(mode, **more):
    return RuleSet(domain_rules=[Rule("hide", type="ENCRYPT", mode=mode, **more)])


@pytest.mark.parametrize("kind", ["domain_rules", "encoding_rules"])
def test_a_schema_whose_values_rules_change_is_refused_by_the_rules_name(client, kind):
    hidden = RuleSet(**{kind: [Rule("hide", type="ENCRYPT", mode=RuleMode.WRITEREAD)]})
    client.register_schema("flights-value", Schema(FLIGHT, rule_set=hidden))
    with pytest.raises(SerializationError, match="The rule 'hide' of type ENCRYPT"):
        AvroSerializer(client, conf=NEWEST)(UA, context())
    with pytest.raises(SerializationError, match="would not be read as the schema asks"):
        AvroDeserializer(client)(b"\0\0\0\0\1\2A\0", context())


@pytest.mark.parametrize(("mode", "writes", "reads"), [(RuleMode.WRITE, False, True), (RuleMode.READ, True, False)])
def test_rules_of_the_other_way_do_not_matter(client, mode, writes, reads):
    client.register_schema("flights-value", Schema(FLIGHT, rule_set=rules(mode)))
    for does, call in (
        (writes, lambda: AvroSerializer(client, conf=NEWEST)(UA, context())),
        (reads, lambda: AvroDeserializer(client)(b"\0\0\0\0\1\2A\0", context())),
    ):
        if does:
            call()
        else:
            with pytest.raises(SerializationError, match="run no rules"):
                call()


def test_rules_that_are_disabled_do_not_matter(client):
    client.register_schema("flights-value", Schema(FLIGHT, rule_set=rules(RuleMode.WRITEREAD, disabled=True)))
    written = AvroSerializer(client, conf=NEWEST)(UA, context())
    assert AvroDeserializer(client)(written, context()) == UA


def test_rules_of_json_and_protobuf_are_refused_too(client):
    client.register_schema("flights-value", Schema(OBJECT, "JSON", rule_set=rules(RuleMode.WRITEREAD)))
    with pytest.raises(SerializationError, match="'hide'"):
        JSONSerializer(None, client, conf=NEWEST)({}, context())
    with pytest.raises(SerializationError, match="'hide'"):
        JSONDeserializer(None, schema_registry_client=client)(b"\0\0\0\0\1{}", context())
    text = 'syntax = "proto3"; message M {}'
    client.register_schema("m-value", Schema(text, "PROTOBUF", rule_set=rules(RuleMode.WRITEREAD)))
    message = SerializationContext("m", "value")
    with pytest.raises(SerializationError, match="'hide'"):
        ProtobufSerializer(Timestamp, client, NEWEST)(Timestamp(), message)
    with pytest.raises(SerializationError, match="'hide'"):
        ProtobufDeserializer(Timestamp, schema_registry_client=client)(b"\0\0\0\0\2\0", message)


def test_migration_rules_are_refused_where_they_would_run(client):
    migrates = RuleSet(migration_rules=[Rule("up", type="JSONATA", mode=RuleMode.UPGRADE)])
    written = AvroSerializer(client, FLIGHT)(UA, context())
    client.register_schema("flights-value", Schema(FLIGHT, rule_set=migrates))
    with pytest.raises(SerializationError, match="migration rules"):
        AvroDeserializer(client, conf={"use.latest.version": True})(written, context())
    assert AvroDeserializer(client)(written, context()) == UA


def test_executors_of_rules_are_refused(client):
    for serializer in (AvroSerializer, AvroDeserializer):
        with pytest.raises(ValueError, match="rule_conf and rule_registry"):
            serializer(client, FLIGHT, rule_conf={"k": "v"})
        with pytest.raises(ValueError, match="rule_conf and rule_registry"):
            serializer(client, FLIGHT, rule_registry=object())


def test_serializers_for_asyncio(tmp_path):
    """They write what the others write; a message whose schema is known needs no thread."""

    async def run(url):
        async with AsyncSchemaRegistryClient({"url": url}) as client:
            kinds = [
                (AsyncAvroSerializer(client, FLIGHT), AsyncAvroDeserializer(client), UA, "a"),
                (AsyncJSONSerializer(OBJECT, client), AsyncJSONDeserializer(OBJECT), {"delay": 3}, "j"),
                (
                    await AsyncProtobufSerializer(Timestamp, client),
                    await AsyncProtobufDeserializer(Timestamp, schema_registry_client=client),
                    Timestamp(seconds=3),
                    "p",
                ),
            ]
            for serializer, deserializer, value, topic in kinds:
                where = SerializationContext(topic, "value")
                written = await serializer(value, where)
                assert await deserializer(written, where) == value
                assert await serializer(value, where) == written
                assert await deserializer(written, where) == value
                assert await serializer(None, where) is None
                assert serializer._made.known(value, where)
            assert await client.get_subjects() == ["a-value", "j-value", "p-value"]
            with pytest.raises(SchemaRegistryError, match="40401"):
                await client.get_versions("none")
            with pytest.raises(TypeError, match="must be an AsyncSchemaRegistryClient"):
                AsyncAvroSerializer(client.blocking, FLIGHT)

    with running_registry(tmp_path / "lake") as running:
        asyncio.run(run(running.url))


def test_a_coroutine_function_gives_tokens(tmp_path):
    asked = []

    async def token(conf):
        await asyncio.sleep(0)
        asked.append(conf)
        return {"bearer.auth.token": "t"}

    async def run(url):
        conf = {
            "url": url,
            "bearer.auth.credentials.source": "CUSTOM",
            "bearer.auth.custom.provider.function": token,
            "bearer.auth.custom.provider.config": {"k": "v"},
        }
        async with AsyncSchemaRegistryClient(conf) as client:
            assert client.config() == conf
            assert await client.get_subjects() == []

    with running_registry(tmp_path / "lake") as running:
        asyncio.run(run(running.url))
    assert asked == [{"k": "v"}]
