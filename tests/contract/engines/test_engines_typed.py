"""deltalake, DuckDB and Polars read a typed topic's columns, also where they have grown since the first segments."""

from pathlib import Path

import duckdb
import orjson
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.lake import Lake
from tidelog.schema_registry import SchemaRegistryClient
from tidelog.schema_registry.avro import AvroSerializer

ID = {"name": "id", "type": "long"}
WHO = {"name": "who", "type": {"type": "record", "name": "Who", "fields": [{"name": "name", "type": "string"}]}}
MORE = {"name": "age", "type": "int", "default": 0}
OLDER = {"name": "who", "type": {**WHO["type"], "fields": [*WHO["type"]["fields"], MORE]}}
NOTE = {"name": "note", "type": "string", "default": "none"}
ROWS = [
    {"id": 1, "who": {"name": "ann", "age": None}, "note": None},
    {"id": 2, "who": {"name": "bob", "age": 7}, "note": "x"},
    None,
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A topic whose second segment has fields that the first one lacks, within a struct, too."""
    folder = tmp_path_factory.mktemp("typed") / "lake"
    with Lake(str(folder)) as lake, SchemaRegistryClient({"lake": lake}) as registry:
        lake.create_topic("orders", config={"value.columns": "avro", "value.schema.subject": "orders-value"})
        written = (([ID, WHO], {"id": 1, "who": {"name": "ann"}}), ([ID, OLDER, NOTE], ROWS[1]))
        for fields, row in written:
            text = orjson.dumps({"type": "record", "name": "Order", "fields": fields}).decode()
            value = AvroSerializer(registry, text)(row, SerializationContext("orders", MessageField.VALUE))
            lake.topic("orders").append(pa.table({"value": pa.array([value], pa.binary())}))
        lake.topic("orders").append(pa.table({"value": pa.array([b"no schema"])}))
    return str(Path(folder, "orders"))


def test_deltalake(table: str) -> None:
    read = DeltaTable(table).to_pyarrow_table(columns=["base_offset", "columns"]).sort_by("base_offset")
    assert read["columns"].to_pylist() == ROWS
    dataset = DeltaTable(table).to_pyarrow_dataset()
    assert dataset.to_table(columns={"id": pa.compute.field("columns", "id")}).num_rows == 3


def test_duckdb(table: str) -> None:
    topic = DeltaTable(table).to_pyarrow_dataset()
    assert topic is not None  # DuckDB finds it by its name
    found = duckdb.sql("SELECT columns.id, columns.who.age, columns.note FROM topic ORDER BY base_offset").fetchall()
    assert found == [(1, None, None), (2, 7, "x"), (None, None, None)]
    by_files = duckdb.read_parquet(DeltaTable(table).file_uris(), union_by_name=True)
    assert by_files.aggregate("sum(columns.id) AS ids").fetchall() == [(3,)]


def test_polars(table: str) -> None:
    import polars as pl  # it begins a thread

    rows = pl.scan_delta(table, use_pyarrow=True).sort("base_offset").select("columns").collect()
    assert rows["columns"].struct.field("id").to_list() == [1, 2, None]
    assert rows["columns"].struct.field("who").struct.field("age").to_list() == [None, 7, None]
    assert rows["columns"].struct.field("note").to_list() == [None, "x", None]
