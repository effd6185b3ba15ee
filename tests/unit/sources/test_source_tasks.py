"""The source's tasks: what they read is what was planned, in bounded memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from support.arrow_memory import arrow_peak
from support.logs import values

from tidelog.log.delta.schema import RECORDS as ARROW
from tidelog.log.delta.schema import RECORDS_WITH_HEADERS as ARROW_WITH_HEADERS
from tidelog.log.lake import Lake
from tidelog.sources.columns import RECORDS, RECORDS_WITH_HEADERS
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.options import parse_batch
from tidelog.sources.planning import Range
from tidelog.sources.tasks import plan_tasks, read_task

MB = 1024 * 1024


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def tasks(lake: Lake, *ranges: Range, **options: str) -> list[InputPartition]:
    segments = {TopicPartition(r.topic, r.partition): lake.topic(r.topic).state().live(r.partition) for r in ranges}
    return plan_tasks(lake.uri, ranges, segments, parse_batch({"lake": lake.uri, "subscribe": "t", **options}, None))


@pytest.mark.parametrize(("columns", "arrow"), [(RECORDS, ARROW), (RECORDS_WITH_HEADERS, ARROW_WITH_HEADERS)])
def test_columns_are_those_that_spark_will_check_for(columns: object, arrow: pa.Schema) -> None:
    assert to_arrow_schema(columns, timezone="UTC").equals(arrow)  # type: ignore[arg-type]


def test_tasks_read_what_was_planned(lake: Lake) -> None:
    for topic in ("t", "u"):
        for n in range(3):
            lake.topic(topic).append(values(f"{topic}{n}a", f"{topic}{n}b"))
    planned = tasks(lake, Range("t", 0, 1, 5), Range("u", 0, 0, 2), includeHeaders="true")
    batches = [batch for task in planned for batch in read_task(task)]

    assert all(batch.schema.equals(ARROW_WITH_HEADERS) for batch in batches)
    rows = [(r["topic"], r["offset"], r["value"].decode()) for b in batches for r in b.to_pylist()]
    t, u = [("t", 1, "t0b"), ("t", 2, "t1a"), ("t", 3, "t1b"), ("t", 4, "t2a")], [("u", 0, "u0a"), ("u", 1, "u0b")]
    assert rows == t + u


def test_a_record_without_headers_has_null(lake: Lake) -> None:
    """As in Kafka's source, however the producer gave none."""
    header = {"key": "h", "value": b"x"}
    lake.topic("t").append(values("a", "b", "c", "d", headers=[[header], [], None, [header, header]]))
    lake.topic("t").append(values("e", headers=pa.array([[]], ARROW_WITH_HEADERS.field("headers").type)))
    lake.topic("t").append(values("f"))

    batches = [b for task in tasks(lake, Range("t", 0, 0, 6), includeHeaders="true") for b in read_task(task)]

    assert all(batch.schema.equals(ARROW_WITH_HEADERS) for batch in batches)
    headers = [found for batch in batches for found in batch.column("headers").to_pylist()]
    assert headers == [[header], None, None, [header, header], None, None]


def test_options_cut_tasks(lake: Lake) -> None:
    lake.topic("t").append(values(*"abcdef"))
    cut = tasks(lake, Range("t", 0, 0, 6), minPartitions="3")
    assert [sum(batch.num_rows for batch in read_task(task)) for task in cut] == [2, 2, 2]


def test_sparks_stand_in_for_nothing_to_read_is_nothing(lake: Lake) -> None:
    assert list(read_task(InputPartition(None))) == []
    assert tasks(lake) == []


@pytest.mark.parametrize("count", [60, 240])
def test_memory_stays_flat_however_large_records_are(lake: Lake, count: int) -> None:
    """Half a megabyte each, that no codec makes smaller, in one segment."""
    noise = np.random.default_rng(1).bytes(500_000 + count)
    records = pa.table({"value": [noise[n : n + 500_000] for n in range(count)]})
    lake.topic("t").append(records, compression="none")

    with arrow_peak() as peak:
        for task in tasks(lake, Range("t", 0, 0, count)):
            assert all(batch.nbytes < 20 * MB for batch in read_task(task))
        assert peak() < 80 * MB
