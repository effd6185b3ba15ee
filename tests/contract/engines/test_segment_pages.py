"""Segments whose pages tidelog encodes itself, as DuckDB, Polars and DataFusion (by deltalake) read them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from tidelog.log.delta import schema
from tidelog.log.lake import Lake

RECORDS = 3_000
COLUMNS = ["position", "key", "value", "headers", "timestamp_type"]


@pytest.fixture(scope="module", params=["uncompressed", "zstd", "lz4"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A topic of one segment of some pages: lengths of values differ, and there are nulls in all of its columns."""
    random = np.random.default_rng(1)
    lengths = random.integers(0, 600, RECORDS).tolist()
    records = pa.table(
        {
            "key": pa.array([None if at % 5 == 1 else random.bytes(8) for at in range(RECORDS)], pa.binary()),
            "value": pa.array([None if at % 7 == 2 else random.bytes(size) for at, size in enumerate(lengths)]),
            "headers": pa.array([header(at % 4) for at in range(RECORDS)], schema.HEADERS),
        }
    )
    with Lake(str(tmp_path_factory.mktemp("pages") / "lake")) as lake:
        lake.create_topic("orders", 1, config={"compression.type": request.param})
        lake.topic("orders").append(records)
        yield Path(lake.uri.removeprefix("file://")) / "orders"


def header(kind: int) -> Any:
    return [None, [], [{"key": "a", "value": b"b"}, {"key": "c", "value": None}], [{"key": "d", "value": b""}]][kind]


def by_duckdb(file: Path) -> list[dict[str, Any]]:
    found = duckdb.sql(f"select {', '.join(COLUMNS)} from '{file}' order by position")
    return [dict(zip(COLUMNS, row, strict=True)) for row in found.fetchall()]


def by_polars(file: Path) -> list[dict[str, Any]]:
    import polars as pl  # it begins a thread

    return pl.read_parquet(file, columns=COLUMNS).sort("position").to_dicts()


def by_datafusion(file: Path) -> list[dict[str, Any]]:
    builder = QueryBuilder().register("t", DeltaTable(str(file.parents[1])))
    found = builder.execute(f"select {', '.join(COLUMNS)} from t order by position").read_all()
    return pa.table(found).to_pylist()


@pytest.mark.parametrize("read", [by_duckdb, by_polars, by_datafusion])
def test_it_reads_what_arrow_reads(table: Path, read: Callable[[Path], list[dict[str, Any]]]) -> None:
    (file,) = table.glob("partition=0/*.parquet")
    assert pq.ParquetFile(file).metadata.created_by == "tidelog version 2"
    assert read(file) == pq.read_table(file, columns=COLUMNS, partitioning=None).to_pylist()
