"""The sink's tasks and typed topics: their columns, schemas that come in mid-task, values that are refused."""

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pytest
from support.logs import memory_lake
from support.value_subjects import Subjects
from support.value_typings import FLIGHT, LATER, avro_payload, flight, prefixed

from tidelog.log.base.errors import InvalidValueError
from tidelog.log.lake import Lake
from tidelog.sinks import tasks
from tidelog.sinks.options import parse_batch
from tidelog.sinks.tasks import open_target, stage

TYPED = {"value.columns": "avro", "value.schema.subject": "s", "value.bytes": "derive"}


def typed_lake(**more: str) -> tuple[Lake, int, int]:
    """A lake with a typed topic, and the ids of its subject's schemas, of which it knows the first."""
    lake, _, _ = memory_lake()
    subjects = Subjects(lake).no_rules()
    first = subjects.register("s", orjson.dumps(FLIGHT).decode())
    lake.create_topic("t", 1, TYPED | {name.replace("_", "."): value for name, value in more.items()})
    return lake, first, subjects.register("s", orjson.dumps(LATER).decode())


def staged(lake: Lake, batches: Sequence[Sequence[bytes]]) -> Any:
    options = parse_batch({"lake": lake.uri, "topic": "t"}, None)
    known = open_target(lake, "t", None)
    rows = [pa.record_batch({"value": pa.array(one, pa.binary())}) for one in batches]
    return stage(rows, ["value"], options, lake, known, 0)


def test_a_schema_that_comes_in_mid_task_makes_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "GATHERED_RECORDS", 2)
    lake, first, second = typed_lake()
    old = [prefixed(first, avro_payload(FLIGHT, flight(number))) for number in range(2)]
    new = [prefixed(second, avro_payload(LATER, flight(n, plane=None, cancelled=True))) for n in range(2)]
    topic = lake.topic("t")
    topic.commit(staged(lake, [old, new, old])["t"])
    (partition,) = topic.offsets().values()
    assert partition == (0, 6)
    found = pa.Table.from_batches(list(topic.read(0, include_columns=True)))
    assert found.column("value").to_pylist() == [*old, *new, *old]
    cancelled = [one["cancelled"] for one in found.column("columns").to_pylist()]
    assert cancelled == [False, False, True, True, False, False]  # the default where a schema lacks it


def test_rows_that_do_not_fit_are_named_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, first, _ = typed_lake(topic_validate="true")
    good = prefixed(first, avro_payload(FLIGHT, flight(1)))
    with pytest.raises(InvalidValueError, match="row 1 is refused: it names no schema") as refused:
        staged(lake, [[good, b"bad"], [good, good[:-1]]])
    assert list(refused.value.rows) == [1, 3]
    assert not list(lake.storage.list_after("t/partition=0"))
