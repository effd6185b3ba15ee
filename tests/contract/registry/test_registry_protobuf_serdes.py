"""tidelog's Protobuf serializers: the bytes that confluent-kafka's read and write; imports, inner types."""

import pytest
from confluent_kafka import schema_registry as theirs
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirSerializer
from confluent_kafka.serialization import SerializationContext as TheirContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.api_pb2 import Api
from google.protobuf.timestamp_pb2 import Timestamp
from support.registry_servers import running_registry

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.lake import Lake
from tidelog.schema_registry import SchemaRegistryClient, SchemaRegistryError, header_schema_id_serializer
from tidelog.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

OURS = SerializationContext("flights", MessageField.VALUE)
THEIRS = TheirContext("flights", "value")


@pytest.fixture
def both(tmp_path):
    """Our client without a server and theirs, over one lake."""
    with running_registry(tmp_path / "lake") as running, Lake(tmp_path / "lake") as lake:
        yield SchemaRegistryClient({"lake": lake}), theirs.SchemaRegistryClient({"url": running.url})


def kinds():
    """Message types of two files: Flight, which imports Gate and has an inner type, made without a compiler."""
    pool = descriptor_pool.DescriptorPool()
    gate = descriptor_pb2.FileDescriptorProto(name="gate.proto", package="a", syntax="proto3")
    gate.message_type.add(name="Gate").field.add(name="n", number=1, type=5, label=1, json_name="n")
    flight = descriptor_pb2.FileDescriptorProto(
        name="flight.proto", package="a", syntax="proto3", dependency=["gate.proto"]
    )
    flight.message_type.add(name="First")
    message = flight.message_type.add(name="Flight")
    message.field.add(name="gate", number=1, type=11, type_name=".a.Gate", label=1, json_name="gate")
    message.nested_type.add(name="Other")
    message.nested_type.add(name="Leg").field.add(name="n", number=1, type=5, label=1, json_name="n")
    for file in (gate, flight):
        pool.Add(file)
    return [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in ("a.Gate", "a.Flight", "a.Flight.Leg")
    ]


def test_messages_are_written_and_read_as_confluent_kafka_does(both):
    ours, other = both
    message = Timestamp(seconds=3)
    written = ProtobufSerializer(Timestamp, ours)(message, OURS)
    assert written == TheirSerializer(Timestamp, other)(message, THEIRS)
    assert written[:6] == b"\0\0\0\0\1\0"
    assert TheirDeserializer(Timestamp)(written, THEIRS) == ProtobufDeserializer(Timestamp)(written, OURS) == message


def test_files_that_are_imported_are_registered_first(both):
    ours, other = both
    gate, flight, leg = kinds()
    message = flight(gate=gate(n=7))
    written = ProtobufSerializer(flight, ours)(message, OURS)
    assert ours.get_subjects() == ["flights-value", "gate.proto"]
    assert written == TheirSerializer(flight, other)(message, THEIRS)
    assert ProtobufDeserializer(flight)(written, OURS) == message
    inner = leg(n=3)
    written = ProtobufSerializer(leg, ours)(inner, OURS)
    assert written[:8] == b"\0\0\0\0\2\4\2\2"
    assert TheirDeserializer(leg)(written, THEIRS) == ProtobufDeserializer(leg)(written, OURS) == inner


def test_known_types_are_registered_where_they_are_asked_for(both):
    ours, _ = both
    written = ProtobufSerializer(Api, ours, {"skip.known.types": False})(Api(name="a"), OURS)
    assert ProtobufDeserializer(Api)(written, OURS).name == "a"
    assert "google/protobuf/type.proto" in ours.get_subjects()


def test_schemas_that_are_not_registered_are_refused(both):
    ours, _ = both
    _, flight, _ = kinds()
    with pytest.raises(SchemaRegistryError):
        ProtobufSerializer(flight, ours, {"auto.register.schemas": False})(flight(), OURS)
    assert ours.get_subjects() == []


def test_the_place_of_a_type_goes_with_the_guid_into_the_header(both):
    """As Confluent has it: the message itself is in the value, and nothing else."""
    ours, other = both
    leg = kinds()[2]
    message, headers, again = leg(n=3_000_000), [], []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    written = ProtobufSerializer(leg, ours, conf)(message, SerializationContext("t", "value", headers))
    assert written == message.SerializeToString()
    their_conf = {"schema.id.serializer": theirs.header_schema_id_serializer}
    assert TheirSerializer(leg, other, their_conf)(message, TheirContext("t", "value", again)) == written
    assert headers == again
    assert headers[0][1][17:] == b"\4\2\2"
    context = SerializationContext("t", "value", again)
    assert ProtobufDeserializer(leg)(written + b"", context) == message
    padded = leg(n=3_000_000)  # theirs refuses fewer than 6 bytes
    padded.MergeFromString(b"\x12\x04more")
    data = padded.SerializeToString()
    assert TheirDeserializer(leg)(data, TheirContext("t", "value", headers)).n == 3_000_000


def test_nothing_stays_nothing_and_others_are_refused(both):
    ours, _ = both
    serializer, deserializer = ProtobufSerializer(Timestamp, ours), ProtobufDeserializer(Timestamp)
    assert serializer(None, OURS) is deserializer(None, OURS) is None
    with pytest.raises(SerializationError, match="must be a message of type"):
        serializer("text", OURS)
    for data, message in (
        (b"text", "names no schema"),
        (b"\0\0\0\0\1", "names no type"),
        (b"\0\0\0\0\1\4\2", "names no type"),
        (b"\0\0\0\0\1\xff\xff\xff\xff\xff\xff", "names no type"),
        (b"\0\0\0\0\1\1a", "names no type"),
        (b"\0\0\0\0\1\0\xff", "does not fit its schema 1"),
    ):
        with pytest.raises(SerializationError, match=message):
            deserializer(data, OURS)
    with pytest.raises(ValueError, match=r"use\.deprecated\.format can't be True"):
        ProtobufSerializer(Timestamp, ours, {"use.deprecated.format": True})
