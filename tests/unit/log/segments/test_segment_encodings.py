"""How a segment's columns are encoded and compressed (docs/format.md, "Segments")."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.delta import schema
from tidelog.log.segments.writer import write_small_segment


def records(keys: list[bytes | None]) -> pa.Table:
    count = len(keys)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array([b"v" * 100] * count, pa.binary()),
        "headers": pa.nulls(count, schema.HEADERS),
        "timestamp": pa.array(range(count), pa.int64()).cast(schema.TIMESTAMP),
        "timestamp_type": pa.array([0] * count, pa.int32()),
    }
    return pa.table(columns)


def chunks(keys: list[bytes | None], codec: Codec) -> dict[str, Any]:
    """{column: its chunk in the only row group}."""
    data = write_small_segment(records(keys), codec).data
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {column.path_in_schema: column for column in columns}


FEW: list[bytes | None] = [b"%d" % (i % 100) for i in range(1_000)]
ALL_DIFFERENT: list[bytes | None] = [b"%d" % i for i in range(1_000)]


@pytest.mark.parametrize(
    ("keys", "dictionary"),
    [(FEW, True), (ALL_DIFFERENT, False), ([None] * 1_000, False), ([b"a"] * 100, False), ([b"a"] * 101, True)],
    ids=["few", "all different", "none", "a small segment", "one"],
)
def test_keys_have_a_dictionary_where_they_repeat(keys: list[bytes | None], dictionary: bool) -> None:
    assert ("RLE_DICTIONARY" in chunks(keys, Codec("zstd", None))["key"].encodings) == dictionary


@pytest.mark.parametrize(("codec", "told"), [("zstd", "ZSTD"), ("gzip", "GZIP"), ("none", "UNCOMPRESSED")])
def test_what_the_encoding_leaves_is_compressed(codec: str, told: str) -> None:
    found = {name: chunk.compression for name, chunk in chunks(ALL_DIFFERENT, Codec(codec, None)).items()}
    assert found == {
        "position": "UNCOMPRESSED",
        "key": told,
        "value": told,
        "headers.list.element.key": told,
        "headers.list.element.value": told,
        "timestamp": told,
        "timestamp_type": "UNCOMPRESSED",
    }


def test_a_level_reaches_the_codec() -> None:
    def size(level: int) -> int:
        return int(chunks([b"%d" % (i * i) for i in range(20_000)], Codec("zstd", level))["key"].total_compressed_size)

    assert size(15) < size(1)


def test_what_is_not_compressed_is_almost_nothing() -> None:
    found = chunks(ALL_DIFFERENT, Codec("zstd", None))
    assert max(found[name].total_compressed_size for name in ("position", "timestamp_type")) < 300
