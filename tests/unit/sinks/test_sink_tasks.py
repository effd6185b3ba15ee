"""The sink's tasks: which rows become which segments, and how much they hold in memory meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.arrow_memory import arrow_peak

from tidelog.log.base.errors import InvalidOptionError, InvalidTopicError, RecordTooLargeError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.sinks.options import parse_batch
from tidelog.sinks.tasks import Segments, open_target, stage

MB = 1024 * 1024


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def staged(lake: Lake, *batches: pa.RecordBatch, planned_ms: int = 0, **options: str) -> Segments:
    parsed = parse_batch({"lake": lake.uri, **options}, None)
    known = None if parsed.topic is None else open_target(lake, parsed.topic, parsed.compression)
    return stage(batches, batches[0].schema.names, parsed, lake, known, planned_ms)


def committed(lake: Lake, result: Segments) -> dict[str, list[str]]:
    """{topic: values}, committed and read."""
    found = {}
    for name, segments in result.items():
        topic = lake.topic(name)
        topic.commit(segments)
        batches = (batch for p in topic.offsets() for batch in topic.read(p))
        found[name] = [v.decode() for b in batches for v in b.column("value").to_pylist()]
    return found


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def test_rows_go_to_their_topics_in_their_order(lake: Lake) -> None:
    rows = [batch(topic=["b", "a", "b"], value=["1", "2", "3"]), batch(topic=["a", "c", "b"], value=["4", "5", "6"])]
    assert committed(lake, staged(lake, *rows)) == {"a": ["2", "4"], "b": ["1", "3", "6"], "c": ["5"]}


def test_columns_that_do_not_count_and_repeated_names_have_no_effect(lake: Lake) -> None:
    arrays = [pa.array(["1"]), pa.array(["2"]), pa.array([{"any": 1}]), pa.array([5])]
    rows = pa.RecordBatch.from_arrays(arrays, names=["value", "value", "offset", "timestamp"])
    assert committed(lake, staged(lake, rows, topic="t")) == {"t": ["1"]}


@pytest.mark.parametrize(
    ("rows", "options", "error", "words"),
    [
        (batch(topic=["t", None], value=["1", "2"]), {}, InvalidOptionError, "contains a null topic"),
        (batch(topic=["t", ""], value=["1", "2"]), {}, InvalidTopicError, "the empty string is not allowed"),
        (batch(value=["1" * 2_000_000]), {"topic": "t"}, RecordTooLargeError, "max.message.bytes=1048588"),
        (batch(value=["1"]), {"topic": "t", "partitioner": "nowhere:f"}, InvalidOptionError, "can't be loaded"),
        (batch(value=["1"]), {"topic": "t", "partitioner": "sys:path"}, InvalidOptionError, "list, not a function"),
    ],
)
def test_a_row_that_can_not_be_taken_leaves_no_file(
    lake: Lake, rows: pa.RecordBatch, options: dict[str, str], error: type[Exception], words: str
) -> None:
    good = batch(**{name: ["t" if name == "topic" else "0"] * 140_000 for name in rows.schema.names})
    with pytest.raises(error, match=words):
        staged(lake, good, rows, **options)
    assert [p for p in Path(lake.uri.removeprefix("file://")).glob("*/partition=*/*") if p.is_file()] == []


def test_a_topic_that_may_not_be_created_is_refused(lake: Lake) -> None:
    lake.alter_config({"auto.create.topics.enable": "false"})
    with pytest.raises(UnknownTopicError, match=r"auto\.create\.topics\.enable is false"):
        staged(lake, batch(topic=["t"], value=["1"]))


def test_log_append_time_is_that_of_the_plan(lake: Lake) -> None:
    """Tasks of one batch run side by side: a time of their own would go back and forth within a partition."""
    for topic, kind in (("log", "LogAppendTime"), ("create", "CreateTime")):
        lake.create_topic(topic, config={"message.timestamp.type": kind})
    found = staged(lake, batch(topic=["log", "create"], value=["1", "2"]), planned_ms=1234)
    assert (found["log"][0].min_timestamp_ms, found["log"][0].max_timestamp_ms) == (1234, 1234)
    assert found["create"][0].min_timestamp_ms > 1_600_000_000_000


# --- memory ------------------------------------------------------------------------------------------------


def peak_bytes(lake: Lake, batches: Iterator[pa.RecordBatch], names: list[str], **options: str) -> int:
    """How much Arrow memory a task holds at most."""
    with arrow_peak() as peak:
        stage(batches, names, parse_batch({"lake": lake.uri, "acks": "1", **options}, None), lake, None, 0)
        return peak()


def skewed(count: int) -> Iterator[pa.RecordBatch]:
    """Batches of 4 MB; a thousandth of their records has another key than the rest."""
    for _ in range(count):
        yield batch(key=["rare", *["hot"] * 999], value=["x" * 4096] * 1000)


def test_memory_stays_flat_when_one_key_has_nearly_all_records(lake: Lake) -> None:
    lake.create_topic("t", partitions=2)
    assert peak_bytes(lake, skewed(64), ["key", "value"], topic="t", compression="lz4") < 96 * MB


def test_memory_stays_flat_over_many_topics(lake: Lake) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        for _ in range(80):
            yield batch(topic=[f"t{n % 40:02d}" for n in range(1000)], value=["x" * 4096] * 1000)

    assert peak_bytes(lake, rows(), ["topic", "value"], compression="lz4") < 192 * MB
