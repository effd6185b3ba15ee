"""Serializers of Java and Node at a registry beside a broker: they read what tidelog's write, and the other way."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from compat.suite import FAILED, PASSED, SKIPPED, Outcome
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from support.brokers import running_broker
from support.kafka_clients import KafkaClient, install, run_command
from support.registry_servers import running_registry

from tidelog import Consumer, Producer
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.lake import Lake
from tidelog.schema_registry import SchemaRegistryClient
from tidelog.schema_registry.avro import AvroDeserializer, AvroSerializer
from tidelog.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from tidelog.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

SUITE = "registries"
SOURCES = Path(__file__).with_name("registry")
_LIMIT_S = 300
_FLIGHT = {
    "type": "record",
    "name": "Flight",
    "namespace": "air",
    "fields": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": ["null", "int"], "default": None}],
}
_OBJECT = {
    "title": "Flight",
    "type": "object",
    "properties": {"carrier": {"type": "string"}, "delay": {"type": "integer"}},
}
_PROTO = 'syntax = "proto3";\npackage air;\n\nmessage Flight {\n  string carrier = 1;\n  int32 delay = 2;\n}\n'
_UA = {"carrier": "UA", "delay": 3}
# kafkajs-registry writes no place of a type before a message, which Confluent's form has: only it reads these.
_NOT_READABLE = {("kafkajs-registry", "PROTOBUF")}
# What CachedSchemaRegistryClient is to find, in AvroValues.java's words.
_CLIENT = [
    "versions [1, 2]",
    "latest 2",
    "narrow true",
    "broken false",
    "refused 409 40901",
    "level FULL FULL",
    "again true",
    "mode READONLY READONLY",
    "deleted [1] [1]",
]


def outcomes(work: Path, only: str = "") -> Iterator[Outcome]:
    """Run them, one after another. `only`: a part of a name."""
    for client, check in _CHECKS.items():
        if only not in str(client):
            continue
        if shutil.which(client.program) is None:
            yield Outcome(SUITE, str(client), SKIPPED, 0.0, f"'{client.program}' is not there")
            continue
        began, state, words = time.monotonic(), PASSED, ""
        try:
            install(client)
            check(client, work / client.name)
        except (AssertionError, RuntimeError) as error:
            state, words = FAILED, " ".join(str(error).split())[:600]
        yield Outcome(SUITE, str(client), state, time.monotonic() - began, words)


def _make_java(client: KafkaClient, folder: Path) -> None:
    import pyspark

    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    settings = ["-settings", SOURCES / "ivysettings.xml", "-ivy", SOURCES / "ivy.xml", "-cache", folder / "cache"]
    run_command(["java", "-jar", ivy, *settings, "-retrieve", "[artifact]-[revision].[ext]"], folder)
    shutil.rmtree(folder / "cache")


def _make_node(client: KafkaClient, folder: Path) -> None:
    package = f"{client.artifact}@{client.version}"
    run_command(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", package], folder)


def _java(folder: Path) -> list[str | Path]:
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*", SOURCES / "AvroValues.java"]


def _node(library: str) -> Callable[[Path], list[str | Path]]:
    return lambda folder: ["node", folder / "values.js", library]


def _ran(command: list[str], given: str = "") -> str:
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def _avro_in_java(client: KafkaClient, folder: Path) -> None:
    """Records of tidelog's producer and of Java's in one topic, each read by both."""
    context = SerializationContext("flights", MessageField.VALUE)
    with Lake(str(folder / "lake")) as lake, running_registry(folder / "lake") as registry:
        lake.create_topic("flights", 1)
        with running_broker(lake) as address, SchemaRegistryClient({"lake": lake}) as ours:
            producer = Producer({"lake": lake})
            producer.produce("flights", AvroSerializer(ours, json.dumps(_FLIGHT))(_UA, context), partition=0)
            producer.flush()
            words = [*map(str, client.command(client.folder)), address, registry.url, "flights"]
            lines = _ran(words).splitlines()
            assert [json.loads(one) for one in lines if one.startswith("{")] == [
                _UA,
                {"carrier": "java", "delay": 7, "gate": "B1"},
            ], lines
            found = [one.removeprefix("# ") for one in lines if one.startswith("# ")]
            assert found == _CLIENT, found
            consumer = Consumer({"lake": lake, "group.id": "g", "auto.offset.reset": "earliest"})
            consumer.subscribe(["flights"])
            read = AvroDeserializer(ours)
            values: list[Any] = []
            while len(values) < 2:
                values += [read(one.value(), context) for one in consumer.consume(2, 1.0)]
            consumer.close()
            assert values == [_UA, {"carrier": "java", "delay": 7, "gate": "B1"}], values


def _all_in_node(client: KafkaClient, folder: Path) -> None:
    """Values of each type of schemas by tidelog's serializers and by Node's, each read by the other."""
    shutil.copy(SOURCES / "values.js", client.folder)
    flight = _message_type()
    with running_registry(folder / "lake") as registry, SchemaRegistryClient({"url": registry.url}) as ours:
        write = {
            "AVRO": AvroSerializer(ours, json.dumps(_FLIGHT)),
            "JSON": JSONSerializer(json.dumps(_OBJECT), ours),
            "PROTOBUF": ProtobufSerializer(flight, ours),
        }
        read = {
            "AVRO": AvroDeserializer(ours),
            "JSON": JSONDeserializer(None, schema_registry_client=ours),
            "PROTOBUF": ProtobufDeserializer(flight),
        }
        texts = {"AVRO": json.dumps(_FLIGHT), "JSON": json.dumps(_OBJECT), "PROTOBUF": _PROTO}
        given: dict[str, Any] = {"protobuf": _base64(_file_set())}
        for kind, serializer in write.items():
            context = SerializationContext(f"{kind.lower()}s", MessageField.VALUE)
            written = serializer(flight(**_UA) if kind == "PROTOBUF" else _UA, context)
            given[kind] = {
                "schema": texts[kind],
                "value": {"carrier": "node", "delay": 7},
                "topic": context.topic,
                "bytes": _base64(written or b""),
            }
        found = json.loads(_ran([*map(str, client.command(client.folder)), registry.url], json.dumps(given)))
        for kind, deserializer in read.items():
            context = SerializationContext(f"{kind.lower()}s", MessageField.VALUE)
            # Node's schema is the one that tidelog's serializer registered.
            assert ours.get_versions(f"{context.topic}-value") == [1], kind
            seen = _plain(found[kind]["read"])
            assert seen == _UA, f"{kind}: Node read {seen}"
            if (client.name, kind) in _NOT_READABLE:
                continue
            value = deserializer(base64.b64decode(found[kind]["wrote"]), context)
            again = {"carrier": value.carrier, "delay": value.delay} if kind == "PROTOBUF" else value
            assert again == {"carrier": "node", "delay": 7}, f"{kind}: tidelog read {again}"


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without the branch's name that avsc gives of a union."""
    return {key: one["int"] if isinstance(one, dict) else one for key, one in value.items()}


def _file_set() -> bytes:
    file = descriptor_pb2.FileDescriptorProto(name="flight.proto", package="air", syntax="proto3")
    message = file.message_type.add(name="Flight")
    for number, (name, kind) in enumerate((("carrier", 9), ("delay", 5)), 1):  # string, int32
        message.field.add(name=name, number=number, type=kind, label=1, json_name=name)  # type: ignore[arg-type]
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def _message_type() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorSet.FromString(_file_set()).file[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("air.Flight"))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_CHECKS: dict[KafkaClient, Callable[[KafkaClient, Path], None]] = {
    KafkaClient("confluent-java", "7.9.5", "javac", _make_java, _java): _avro_in_java,
    KafkaClient(
        "kafkajs-registry",
        "3.9.0",
        "npm",
        _make_node,
        _node("kafkajs"),
        artifact="@kafkajs/confluent-schema-registry",
    ): _all_in_node,
    KafkaClient(
        "confluent-node", "1.10.1", "npm", _make_node, _node("confluent"), artifact="@confluentinc/schemaregistry"
    ): _all_in_node,
}
