"""Batch writes as Spark drives them, without Spark: what the sink refuses, and that nothing is written then."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.queries_without_spark import rows, write
from support.spark_queries import data_files

from pyspark_tidelog import DefaultSource
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.sources.columns import RECORDS


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path / "lake")) as lake:
        lake.create_topic("t", config={"max.message.bytes": "100"})
        yield lake


LONG_AFTER = datetime(2921, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        ({"value": "v"}, {}, "topic option required when no 'topic' attribute is present"),
        ({"key": "k"}, {"topic": "t"}, "Required attribute 'value' not found"),
        (
            {"value": 5},
            {"topic": "t"},
            "value attribute unsupported type bigint. value must be a(n) string or binary",
        ),
        ({"value": "v"}, {"topic": "t", "acks": "2"}, "Invalid value 2 for configuration acks"),
        (
            {"value": "v"},
            {"topic": "t", "partitioner": "nope"},
            "Unknown partitioner 'nope'. Set the option 'partitioner'",
        ),
        ({"value": "v"}, {"topic": "a/b"}, "Topic name is invalid: 'a/b'"),
        ({"value": "v", "topic": pa.scalar(None, pa.string())}, {}, "contains a null topic"),
        (
            {"value": "v" * 101},
            {"topic": "t"},
            "Record 0 for topic 't' has 101 bytes of key, value and headers",
        ),
        ({"value": "v" * 101}, {"topic": "t"}, "max.message.bytes=100"),
        (
            {"value": "v", "partition": pa.scalar(1, pa.int32())},
            {"topic": "t"},
            "Partition 1 in row 0 does not exist",
        ),
        ({"value": "v"}, {"topic": "t", "partitioner": "no.module:here"}, "Partitioner 'no.module:here' can't be"),
        (
            {"value": "v", "timestamp": pa.scalar(LONG_AFTER, pa.timestamp("us", "UTC"))},
            {"topic": "t", "includeTimestamp": "true"},
            "message.timestamp.after.max.ms",
        ),
    ],
)
def test_bad_writes_leave_nothing(topic: Lake, row: dict[str, Any], options: dict[str, str], words: str) -> None:
    with pytest.raises(TidelogError) as refused:
        write(topic, pa.table({name: pa.array([value]) for name, value in row.items()}), **options)
    assert words in str(refused.value)
    assert (topic.topics(), topic.offsets("t"), data_files(topic, "t")) == (["t"], {0: (0, 0)}, [])


def test_a_write_is_read(topic: Lake) -> None:
    """So what is refused above is refused for the reason that it names."""
    write(topic, pa.table({"value": ["v"], "topic": ["t"]}))
    assert [row["value"] for row in rows(topic, subscribe="t")] == [b"v"]


def test_a_batch_write_needs_mode_append() -> None:
    """Spark says `overwrite` for that mode, and refuses others than append itself."""
    with pytest.raises(TidelogError, match="tidelog: save mode Overwrite is not allowed"):
        DefaultSource({"lake": "/unused", "topic": "t"}).writer(RECORDS, True)
