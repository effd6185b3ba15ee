"""Serializers and deserializers of registries, beside confluent-kafka's: records a second of one thread."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import schema_registry as theirs
from confluent_kafka.schema_registry import avro as their_avro
from confluent_kafka.schema_registry import json_schema as their_json
from confluent_kafka.schema_registry import protobuf as their_protobuf
from confluent_kafka.serialization import MessageField as TheirField
from confluent_kafka.serialization import SerializationContext as TheirContext
from figures import Row, interleaved, percentile, speed_ratio, summary
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from plan import Plan

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.lake import Lake
from tidelog.registry.api.serving import RegistryServer
from tidelog.schema_registry import SchemaRegistryClient
from tidelog.schema_registry.avro import AvroDeserializer, AvroSerializer
from tidelog.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from tidelog.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

_RECORDS = 20_000
_QUICK_RECORDS = 2_000
# As the flights of the demo: texts, whole numbers, and numbers with a point, some of them null.
_TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")
_FRACTIONS = ("dep_delay", "arr_delay", "air_time", "dep_time", "arr_time")
_WHOLE = ("year", "month", "day", "sched_dep_time", "sched_arr_time", "flight", "distance", "hour", "minute")

Call = Callable[[Any, Any], Any]


def run(plan: Plan) -> list[Row]:
    """Each round writes, or reads, the same records by both libraries' serializers of one registry."""
    count = _QUICK_RECORDS if plan.quick else _RECORDS
    rows = []
    with _clients(plan) as (ours, other):
        for kind, (values, mine, their) in _kinds(ours, other, count).items():
            contexts = SerializationContext(kind, MessageField.VALUE), TheirContext(kind, TheirField.VALUE)
            written = [mine[0](value, contexts[0]) for value in values]
            if written[:10] != [their[0](value, contexts[1]) for value in values[:10]] and kind != "JSON":
                raise RuntimeError(f"{kind}: the serializers write different bytes")
            for way, given in enumerate((values, written)):
                rows.append(_row(plan, kind, way, given, (mine[way], their[way]), contexts))
    return rows


def _row(plan: Plan, kind: str, way: int, given: list[Any], calls: tuple[Call, Call], contexts: tuple[Any, Any]) -> Row:
    arms = {
        name: lambda call=call, context=context: _took(call, context, given)
        for name, call, context in zip(("tidelog", "confluent-kafka"), calls, contexts, strict=True)
    }
    times = interleaved(arms, plan.rounds)
    ratio = speed_ratio(times, "tidelog", "confluent-kafka")
    rates = {name: len(given) / percentile(taken, 50) for name, taken in times.items()}
    what = f"{kind} {'Deserializer' if way else 'Serializer'}, records of 19 fields, against confluent-kafka's"
    shown = f"{rates['tidelog']:,.0f} rec/s, {ratio:.1f}x"
    figures = {"seconds": {name: summary(taken) for name, taken in times.items()}, "ratio": round(ratio, 2)}
    return Row(what, "≥ 1x", shown, ratio >= 1, figures)


def _took(call: Call, context: Any, given: list[Any]) -> float:
    began = time.perf_counter()
    for value in given:
        call(value, context)
    return time.perf_counter() - began


def _kinds(ours: Any, other: Any, count: int) -> dict[str, tuple[list[Any], tuple[Call, Call], tuple[Call, Call]]]:
    """{type of schemas: values, and serializer and deserializer of both}."""
    records = [_flight(number) for number in range(count)]
    avro, text, flight = json.dumps(_avro()), json.dumps(_json_schema()), _message_type()
    # Their client keeps a schema's text as of its registration, which their own deserializer of Protobuf can't read.
    reading = theirs.SchemaRegistryClient(other.config())
    messages = [flight(**{key: value for key, value in one.items() if value is not None}) for one in records]
    return {
        "Avro": (
            records,
            (AvroSerializer(ours, avro), AvroDeserializer(ours)),
            (their_avro.AvroSerializer(other, avro), their_avro.AvroDeserializer(other)),
        ),
        "JSON": (
            records,
            (JSONSerializer(text, ours), JSONDeserializer(text, schema_registry_client=ours)),
            (
                their_json.JSONSerializer(text, other),
                their_json.JSONDeserializer(text, schema_registry_client=other),
            ),
        ),
        "Protobuf": (
            messages,
            (ProtobufSerializer(flight, ours), ProtobufDeserializer(flight, schema_registry_client=ours)),
            (
                their_protobuf.ProtobufSerializer(flight, other),
                their_protobuf.ProtobufDeserializer(flight, schema_registry_client=reading),
            ),
        ),
    }


def _flight(number: int) -> dict[str, Any]:
    found: dict[str, Any] = {name: f"{name[:3].upper()}{number % 997}" for name in _TEXTS}
    found |= {name: None if (number + i) % 11 == 0 else number % 500 - 20.5 for i, name in enumerate(_FRACTIONS)}
    return found | {name: (number * 31 + i) % 3000 for i, name in enumerate(_WHOLE)}


def _avro() -> dict[str, Any]:
    fields: list[dict[str, Any]] = [{"name": name, "type": "string"} for name in _TEXTS]
    fields += [{"name": name, "type": ["null", "double"], "default": None} for name in _FRACTIONS]
    fields += [{"name": name, "type": "int"} for name in _WHOLE]
    return {"type": "record", "name": "Flight", "fields": fields}


def _json_schema() -> dict[str, Any]:
    properties: dict[str, Any] = {name: {"type": "string"} for name in _TEXTS}
    properties |= {name: {"type": ["number", "null"]} for name in _FRACTIONS}
    properties |= {name: {"type": "integer"} for name in _WHOLE}
    return {"title": "Flight", "type": "object", "properties": properties, "required": [*_TEXTS, *_WHOLE]}


def _message_type() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="bench_flight.proto", package="bench", syntax="proto3")
    message = file.message_type.add(name="Flight")
    kinds = {"string": _TEXTS, "double": _FRACTIONS, "int32": _WHOLE}
    numbers = {"string": 9, "double": 1, "int32": 5}  # of FieldDescriptorProto.Type
    named = [(name, numbers[kind]) for kind, names in kinds.items() for name in names]
    for number, (name, kind) in enumerate(named, 1):
        message.field.add(name=name, number=number, type=kind, label=1, json_name=name)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Flight"))


@contextmanager
def _clients(plan: Plan) -> Iterator[tuple[Any, Any]]:
    """Both clients of a registry in a thread of this process."""
    with Lake(str(plan.work / "registry")) as lake:
        server = RegistryServer(lake, ("127.0.0.1", 0))
        server.start()
        url = f"http://127.0.0.1:{server.address[1]}"
        try:
            with SchemaRegistryClient({"url": url}) as ours, theirs.SchemaRegistryClient({"url": url}) as other:
                yield ours, other
        finally:
            server.stop()
