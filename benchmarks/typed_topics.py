"""Typed topics: what their columns cost when records are staged, and how many bytes they take.

The records are the flights of the demo, 19 fields each: as Avro, JSON and Protobuf, keyed by carrier.
"""

import statistics
import time
from collections.abc import Mapping, Sequence

import orjson
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from figures import Row, interleaved, speed_ratio, summary
from plan import Plan

import tidelog
from tidelog.cli.demo.flights import as_records, load_flights
from tidelog.retention.maintenance import maintain
from tidelog.schemas.compile import compile_schema

_APPENDED = 50_000  # records of an append
# The log of Kafka: batches of producers with linger, of this many bytes before zstd.
_BATCH_BYTES = 128 * 1024
_MAGIC, _ZSTD, _NO_PRODUCER = 2, 4, (-1, -1, -1)
# What one reader sees of the values of a day or of an hour does not tell: the records stay.
_KEPT = {"retention.ms": "-1"}

_AVRO = {pa.int64(): "int", pa.string(): "string"}
_PROTOBUF = {pa.int64(): "int64", pa.string(): "string"}
_JSON = {pa.int64(): "integer", pa.string(): "string"}


def run(plan: Plan) -> list[Row]:
    """Stage the flights with columns and without, then merge what was staged."""
    flights = load_flights()
    table = pa.concat_tables([flights.year, flights.last_day])
    if plan.quick:
        table = table.slice(0, 100_000)
    schemas = _schemas(table)
    columns = pa.StructArray.from_arrays(
        [_whole(column) for column in table.columns], fields=[pa.field(f.name, f.type) for f in table.schema]
    )
    values = {kind: _values(kind, text, columns) for kind, text in schemas.items()}
    keys, times = _whole(table["carrier"]), _whole(table["time_hour"])
    staged = [_staging(plan, kind, schemas[kind], values[kind], keys, times) for kind in schemas]
    return [*staged, *_sizes(plan, schemas["avro"], values["avro"], table, keys, times)]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)


def _schemas(table: pa.Table) -> dict[str, str]:
    """The flights' schema of each kind; each field may be null."""
    avro, json, protobuf = [], {}, []
    for number, field in enumerate(table.schema, 1):
        is_time = pa.types.is_timestamp(field.type)
        instant = {"type": "long", "logicalType": "timestamp-millis"}
        avro.append({"name": field.name, "type": ["null", instant if is_time else _AVRO[field.type]]})
        json[field.name] = {"type": ["null", "string" if is_time else _JSON[field.type]]}
        kind = "google.protobuf.Timestamp" if is_time else f"optional {_PROTOBUF[field.type]}"
        protobuf.append(f"  {kind} {field.name} = {number};")
    message = "\n".join(["message Flight {", *protobuf, "}"])
    return {
        "avro": orjson.dumps({"type": "record", "name": "Flight", "fields": avro}).decode(),
        "json": orjson.dumps({"type": "object", "properties": json}).decode(),
        "protobuf": f'syntax = "proto3";\nimport "google/protobuf/timestamp.proto";\n{message}\n',
    }


def _values(kind: str, text: str, columns: pa.StructArray) -> pa.Array:
    codec = compile_schema(kind, text, bare=kind == "protobuf")
    if codec.columns is None:
        raise RuntimeError(f"the flights' {kind} schema has no columns")
    own = [columns.field(field.name).cast(field.type) for field in codec.columns]
    return codec.encode(pa.StructArray.from_arrays(own, fields=list(codec.columns)))


def _staging(plan: Plan, kind: str, text: str, values: pa.Array, keys: pa.Array, times: pa.Array) -> Row:
    """What columns cost, in processor time of appends."""
    typed = {**_KEPT, "value.columns": kind, "value.schema": text}
    arms = {
        "plain": lambda: _appended_s(plan, _KEPT, values, keys, times),
        "columns": lambda: _appended_s(plan, typed, values, keys, times),
    }
    if kind == "avro":
        arms["derived"] = lambda: _appended_s(plan, {**typed, "value.bytes": "derive"}, values, keys, times)
    took = interleaved(arms, plan.rounds)
    ratio = speed_ratio(took, "columns", "plain")
    rate = len(values) / statistics.median(took["columns"]) / 1e6
    more = f"; bytes derived {speed_ratio(took, 'derived', 'plain'):.2f}x" if kind == "avro" else ""
    return Row(
        f"staging {kind.capitalize() if kind != 'json' else 'JSON'} values of 19 fields as columns against without,"
        " processor time of appends",
        "≥ 0.4x" if kind == "avro" else "measured",
        f"{ratio:.2f}x ({rate:.2f} M rec/s{more})",
        kind != "avro" or ratio >= 0.4,
        {"ratio": round(ratio, 3), "cpu_s": {name: summary(samples) for name, samples in took.items()}},
    )


def _appended_s(plan: Plan, config: Mapping[str, str], values: pa.Array, keys: pa.Array, times: pa.Array) -> float:
    """Seconds of processor time of appends to a new topic."""
    with tidelog.Lake(str(plan.work / "typed-lake")) as lake:
        lake.create_topic("flights", partitions=1, config=dict(config))
        took = _append(lake.topic("flights"), values, keys, times)
        lake.delete_topic("flights")
    return took


def _append(topic: tidelog.Topic, values: pa.Array, keys: pa.Array, times: pa.Array) -> float:
    began = time.process_time()
    for at in range(0, len(values), _APPENDED):
        part = [column.slice(at, _APPENDED) for column in (keys, values, times)]
        topic.append(pa.table(part, names=["key", "value", "timestamp"]))
    return time.process_time() - began


def _sizes(plan: Plan, text: str, avro: pa.Array, table: pa.Table, keys: pa.Array, times: pa.Array) -> Sequence[Row]:
    """The merged segments of derived Avro against Kafka's log of the same values, and of the same as JSON."""
    config = {**_KEPT, "value.columns": "avro", "value.schema": text, "value.bytes": "derive"}
    with tidelog.Lake(str(plan.work / "sizes-lake")) as lake:
        lake.create_topic("flights", partitions=1, config=config)
        topic = lake.topic("flights")
        _append(topic, avro, keys, times)
        maintain(lake, only=["merge"], topics=["flights"])
        own = sum(segment.size for segment in topic.state().live(0))
    json = [value if isinstance(value, bytes) else value.encode() for value in as_records(table)["value"].to_pylist()]
    as_avro, as_json = (_kafka_bytes(one, keys, times) for one in (avro.to_pylist(), json))
    return [
        Row(
            f"bytes of {len(avro):,} flights as typed Avro, derived and merged, against Kafka's zstd for the same"
            f" {what}, batches of 128 KiB",
            f"≤ {most}x",
            f"{own / theirs:.2f}x ({own / 1e6:.1f} MB against {theirs / 1e6:.1f})",
            own / theirs <= most,
            {"bytes": own, "kafka_bytes": theirs},
        )
        for what, theirs, most in (("Avro", as_avro, 0.8), ("as JSON", as_json, 0.6))
    ]


def _kafka_bytes(values: Sequence[bytes], keys: pa.Array, times: pa.Array) -> int:
    """Bytes of Kafka's record batches, with zstd at its default level."""
    stamps = times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    records = list(zip(stamps, [key.encode() for key in keys.to_pylist()], values, strict=True))
    total = at = 0
    while at < len(records):
        batch = DefaultRecordBatchBuilder(_MAGIC, _ZSTD, False, *_NO_PRODUCER, _BATCH_BYTES)
        taken = 0
        while at < len(records) and batch.append(taken, *records[at], []) is not None:
            at, taken = at + 1, taken + 1
        total += len(batch.build())
    return total
