"""Flights of 2013 as records of 19 fields: what the cases about values' columns move."""

import json
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from plan import Plan

from tidelog.cli.demo.flights import load_flights
from tidelog.log.lake import Lake
from tidelog.schema_registry import Schema, SchemaRegistryClient
from tidelog.schemas.base.framing import framed
from tidelog.schemas.compile import compile_schema

_TYPES: Final = {"int64": "long", "double": "double", "string": "string"}
_TIME: Final = {"type": "long", "logicalType": "timestamp-micros"}
SUBJECT: Final = "flights-value"


def flights(plan: Plan) -> pa.Table:
    """As many flights as the plan says, the year's again and again."""
    found = load_flights()
    whole = pa.concat_tables([found.year, found.last_day])
    whole = whole.set_column(
        whole.column_names.index("time_hour"), "time_hour", whole["time_hour"].cast(pa.timestamp("us", "UTC"))
    )
    copies = -(-plan.flights // whole.num_rows)
    return pa.concat_tables([whole] * copies).slice(0, plan.flights).combine_chunks()


def schema_of(table: pa.Table) -> str:
    """Avro's schema of the flights: what a column has nulls of may be null."""
    fields = []
    for name in table.column_names:
        kind = _TIME if pa.types.is_timestamp(table[name].type) else _TYPES[str(table[name].type)]
        fields.append({"name": name, "type": ["null", kind] if table[name].null_count else kind})
    return json.dumps({"type": "record", "name": "Flight", "fields": fields})


def values(table: pa.Table, schema: str, schema_id: int) -> pa.Array:
    """The flights as Avro behind a schema's id."""
    compiled = compile_schema("avro", schema)
    rows = pa.concat_arrays(table.to_struct_array().chunks).cast(compiled.columns)
    payloads = compiled.encode(rows)
    return framed(payloads, np.full(len(payloads), schema_id, np.int32))


def registered(plan: Plan) -> tuple[str, Path, str]:
    """A lake whose registry has the flights' schema, Parquet files of their values, and the schema."""
    uri, folder = str(plan.work / "flights-lake"), plan.work / "flights"
    table = flights(plan)
    schema = schema_of(table)
    with Lake(uri) as lake, SchemaRegistryClient({"lake": lake}) as client:
        number = client.register_schema(SUBJECT, Schema(schema))
        if not folder.exists():
            folder.mkdir()
            found = values(table, schema, number)
            half = len(found) // 2
            for part, rows in enumerate((found.slice(0, half), found.slice(half))):
                pq.write_table(pa.table({"value": rows}), folder / f"{part}.parquet")
    return uri, folder, schema
