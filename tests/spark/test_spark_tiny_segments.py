"""Segments that tidelog encodes itself, tiny ones and others, as both of Spark's Parquet readers see them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from support.examples import one_in
from support.tiny_segments import CODECS, record, records_of

from tidelog.log.segments.tiny_parquet import write_tiny

# Records, how often they follow one another, and the codec.
SEGMENTS = st.lists(
    st.tuples(st.lists(record, min_size=1, max_size=100), st.sampled_from([1, 30]), st.sampled_from(CODECS)),
    min_size=8,
    max_size=8,
)


READERS = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")


@pytest.fixture(params=["true", "false"], scope="module")
def vectorized(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    for key in READERS:
        spark.conf.set(key, request.param)
    yield
    for key in READERS:
        spark.conf.unset(key)


@pytest.mark.usefixtures("vectorized")
@one_in(8)
@given(SEGMENTS)
def test_spark_reads_what_arrow_reads(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, segments: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("segments")
    expected = []
    for number, (rows, times, codec) in enumerate(segments):
        tiny = write_tiny(records_of(rows * times), codec).data
        (folder / f"{number}.parquet").write_bytes(tiny)
        read = pq.read_table(pa.BufferReader(tiny))
        micros = read.column("timestamp").cast(pa.int64())
        expected += [
            (number, *row.values())
            for row in read.set_column(read.schema.get_field_index("timestamp"), "timestamp", micros).to_pylist()
        ]
    found = spark.read.parquet(str(folder)).selectExpr(
        "int(regexp_extract(input_file_name(), '([0-9]+).parquet', 1)) number",
        "position", "key", "value", "headers", "unix_micros(timestamp) timestamp", "timestamp_type",
    )  # fmt: skip
    assert [plain(row) for row in found.orderBy("number", "position").collect()] == expected


def plain(row: Any) -> tuple[Any, ...]:
    """A row of Spark's as pyarrow gives it."""
    values = row.asDict(recursive=True)
    return tuple(bytes(value) if isinstance(value, bytearray) else _headers(value) for value in values.values())


def _headers(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [h and {k: bytes(v) if isinstance(v, bytearray) else v for k, v in h.items()} for h in value]
