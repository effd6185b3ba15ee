"""Records of any kind that a tiny segment may hold."""

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
from tidelog.log.delta import schema

RECORDS = pa.schema([schema.SEGMENT.field(name) for name in schema.SEGMENT.names[1:]])
CODECS = (
    Codec("none", None), Codec("zstd", None), Codec("zstd", 19), Codec("gzip", None), Codec("gzip", 1),
    Codec("snappy", None), Codec("lz4", None), Codec("lz4", 12), UnaskedCodec("zstd", None),
)  # fmt: skip

data = st.none() | st.binary(max_size=40) | st.binary(min_size=1, max_size=4).map(lambda b: b * 300)
headers = st.lists(st.none() | st.tuples(st.none() | st.text(max_size=5), data), max_size=4)
micros = st.integers(-(2**63), 2**63 - 1) | st.integers(1_700_000_000_000_000, 1_700_000_000_001_000)
record = st.tuples(data, data, st.none() | headers, micros, st.sampled_from([0, 1]))


def records_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    """The rows as a segment's records without positions."""
    columns = [pa.array(column, RECORDS.field(i).type) for i, column in enumerate(zip(*rows, strict=True)) if i != 3]
    columns.insert(3, pa.array([row[3] for row in rows], pa.int64()).cast(schema.TIMESTAMP))
    return pa.Table.from_arrays(columns, schema=RECORDS)
