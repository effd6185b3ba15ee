"""confluent-kafka's own registry client and serializers, as they are, against a registry over a lake."""

import json
import threading

import httpx
import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from support.registry_servers import running_registry

from tidelog.log.lake import Lake
from tidelog.registry.api.serving import RegistryServer
from tidelog.server.serving import HttpAddressError

registry_client = pytest.importorskip("confluent_kafka.schema_registry")
avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
json_schema = pytest.importorskip("confluent_kafka.schema_registry.json_schema")
protobuf = pytest.importorskip("confluent_kafka.schema_registry.protobuf")
serialization = pytest.importorskip("confluent_kafka.serialization")

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": ["null", "int"], "default": None}],
}
GATE = {"name": "gate", "type": "string", "default": "?"}
VALUE = serialization.SerializationContext("flights", serialization.MessageField.VALUE)


@pytest.fixture
def registry(tmp_path):
    with running_registry(tmp_path / "lake") as running:
        yield running


@pytest.fixture
def client(registry):
    return registry_client.SchemaRegistryClient({"url": registry.url})


def test_avro_values_and_their_evolution(client):
    old = avro.AvroSerializer(client, json.dumps(FLIGHT))
    written = old({"carrier": "UA", "delay": 3}, VALUE)
    assert written[:5] == b"\0\0\0\0\1"
    grown = {**FLIGHT, "fields": [*FLIGHT["fields"], GATE]}
    new = avro.AvroSerializer(client, json.dumps(grown))
    again = new({"carrier": "AA", "delay": None, "gate": "B7"}, VALUE)
    assert again[:5] == b"\0\0\0\0\2"
    reader = avro.AvroDeserializer(client, json.dumps(grown))
    assert reader(written, VALUE) == {"carrier": "UA", "delay": 3, "gate": "?"}
    assert avro.AvroDeserializer(client)(again, VALUE) == {"carrier": "AA", "delay": None, "gate": "B7"}
    assert client.get_versions("flights-value") == [1, 2]
    assert client.get_latest_version("flights-value").schema_id == 2


def test_an_incompatible_schema_is_refused(client):
    avro.AvroSerializer(client, json.dumps(FLIGHT))({"carrier": "UA", "delay": 3}, VALUE)
    broken = {**FLIGHT, "fields": [*FLIGHT["fields"], {"name": "gate", "type": "string"}]}
    with pytest.raises(registry_client.SchemaRegistryError) as refused:
        avro.AvroSerializer(client, json.dumps(broken))({"carrier": "UA", "delay": 3, "gate": "B"}, VALUE)
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)
    schema = registry_client.Schema(json.dumps(broken), "AVRO")
    assert client.test_compatibility("flights-value", schema) is False
    client.set_compatibility("flights-value", "NONE")
    assert client.get_compatibility("flights-value") == "NONE"
    assert client.register_schema("flights-value", schema) == 2


def test_json_values(client):
    text = json.dumps({"title": "Flight", "type": "object", "properties": {"delay": {"type": "integer"}}})
    written = json_schema.JSONSerializer(text, client)({"delay": 3}, VALUE)
    assert json_schema.JSONDeserializer(text, schema_registry_client=client)(written, VALUE) == {"delay": 3}
    assert client.get_latest_version("flights-value").schema.schema_type == "JSON"


@pytest.mark.parametrize("message", [Timestamp(seconds=3), Struct()])
def test_protobuf_values_whose_schemas_are_sent_as_descriptors(client, message):
    kind = type(message)
    written = protobuf.ProtobufSerializer(kind, client)(message, VALUE)
    assert protobuf.ProtobufDeserializer(kind)(written, VALUE) == message
    found = client.get_latest_version("flights-value").schema
    assert found.schema_type == "PROTOBUF"
    assert f"message {kind.DESCRIPTOR.name} {{" in found.schema_str


def test_the_latest_version_without_registering(client):
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    schema = registry_client.Schema(json.dumps(FLIGHT), "AVRO")
    assert client.register_schema("flights-value", schema) == 1
    assert client.lookup_schema("flights-value", schema).version == 1
    written = avro.AvroSerializer(client, conf=settings)({"carrier": "UA", "delay": 3}, VALUE)
    assert written[:5] == b"\0\0\0\0\1"
    assert client.delete_subject("flights-value") == [1]
    assert client.delete_subject("flights-value", permanent=True) == [1]


def test_eight_clients_of_two_registries_agree(tmp_path):
    """Ids are unique, dense, and the same for the same schema, whichever registry gave them."""
    folder = tmp_path / "lake"
    with running_registry(folder) as one, running_registry(folder) as other:
        answers, failures = [{} for _ in range(8)], []

        def work(number):
            try:
                client = registry_client.SchemaRegistryClient({"url": (one, other)[number % 2].url})
                for i in range(10):
                    size = (i * 3 + number) % 10 + 1
                    schema = registry_client.Schema(f'{{"type":"fixed","name":"f{size}","size":{size}}}', "AVRO")
                    answers[number][size] = client.register_schema(f"s{number}-{size}", schema)
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert all(found == answers[0] for found in answers)
    assert sorted(answers[0].values()) == list(range(1, 11))
    with running_registry(folder) as again:
        found = httpx.get(f"{again.url}/schemas/ids/10/subjects", timeout=None).json()
        assert len(found) == 8


def test_odd_subjects_over_http(registry):
    body = {"schema": '"int"'}
    for subject in ("a%2Fb", "%25", "%C3%A4%20b"):
        answer = httpx.post(f"{registry.url}/subjects/{subject}/versions", json=body, timeout=None)
        assert answer.json()["id"] == 1
    assert httpx.get(f"{registry.url}/subjects", timeout=None).json() == ["%", "a/b", "ä b"]


def test_a_body_of_100_mb_is_refused(registry):
    def chunks():
        for _ in range(100):
            yield b"x" * 1_000_000

    try:
        answer = httpx.post(f"{registry.url}/subjects/a/versions", content=chunks(), timeout=None)
    except httpx.TransportError:  # the server closed the connection while the client was sending
        answer = None
    assert answer is None or answer.json()["error_code"] == 42209
    assert httpx.get(f"{registry.url}/subjects", timeout=None).json() == []


def test_an_address_that_is_taken_is_refused_by_a_sentence(tmp_path, registry):
    with Lake(tmp_path / "other") as lake, pytest.raises(HttpAddressError, match="can't listen at"):
        RegistryServer(lake, registry.server.address)
