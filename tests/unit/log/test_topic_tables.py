"""Tables of other libraries: records appended from them, and a topic read as one of them."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from support.logs import memory_lake

from tidelog.log.base.errors import InvalidConfigError, InvalidRecordError, MissingPackageError
from tidelog.log.lake import Lake
from tidelog.log.records import frames
from tidelog.log.topic import Topic

AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def topic() -> Topic:
    lake: Lake = memory_lake()[0]
    lake.create_topic(
        "t", 2, {"message.timestamp.before.max.ms": str(2**62), "message.timestamp.after.max.ms": str(2**62)}
    )
    return lake.topic("t")


ROWS = {"key": ["ann", None], "value": ["tea", "milk"], "partition": [1, 1]}


def of_polars(rows: Any) -> Any:
    import polars as pl  # it begins a thread

    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    "made",
    [
        pa.table,
        pa.RecordBatch.from_pydict,
        pd.DataFrame,
        of_polars,
        lambda _: [{"key": "ann", "value": "tea", "partition": 1}, {"value": b"milk", "partition": 1}],
    ],
    ids=["table", "batch", "pandas", "polars", "rows"],
)
def test_records_come_as_tables_of_many_kinds(topic: Topic, made: Callable[[Any], Any]) -> None:
    assert topic.append(made(ROWS)) == {1: (0, 2)}
    found = topic.to_arrow(1)
    assert found.select(["key", "value", "topic", "partition", "offset"]).to_pylist() == [
        {"key": b"ann", "value": b"tea", "topic": "t", "partition": 1, "offset": 0},
        {"key": None, "value": b"milk", "topic": "t", "partition": 1, "offset": 1},
    ]


def test_what_only_some_rows_have(topic: Topic) -> None:
    topic.append(
        [
            {"value": {"item": "tea", "n": 2}, "partition": 0, "headers": {"h": "1"}},
            {"value": [1, 2], "partition": 0, "timestamp": AT, "headers": [("a", b"2"), ("b", None)]},
            {"value": None, "key": "k", "partition": 0, "headers": []},
        ]
    )
    found = topic.to_arrow(0, include_headers=True)
    assert found.column("value").to_pylist() == [b'{"item":"tea","n":2}', b"[1,2]", None]
    assert found.column("timestamp")[1].as_py() == AT
    assert found.column("headers").to_pylist() == [
        [{"key": "h", "value": b"1"}],
        [{"key": "a", "value": b"2"}, {"key": "b", "value": None}],
        None,
    ]
    assert topic.append([]) == {}


def test_pandas_makes_floats_of_partitions_with_gaps(topic: Topic) -> None:
    frame = pd.DataFrame({"value": ["a", "b"], "key": [None, "k"], "partition": [1, None], "timestamp": [AT, AT]})
    assert frame["partition"].dtype == float
    assert sum(end - start for start, end in topic.append(frame).values()) == 2
    assert "a" in read_all(topic)


def read_all(topic: Topic) -> list[str]:
    return [one.decode() for one in topic.to_arrow().column("value").to_pylist()]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("text", "a list of dicts, not str"),
        ([{"value": "a"}, 7], "not list"),
        (pd.DataFrame({"value": ["a", b"b", 7]}), "can't be taken as a table"),
        (pd.DataFrame({"value": ["a"], "partition": [0.5]}), "can't be taken as a table"),
        ([{"value": 7}], "can't be taken as a table"),
        ([{"value": "a", "item": "tea"}], "columns that a record does not: item"),
        ([{"key": "a"}], "no column 'value'"),
    ],
)
def test_what_is_no_table_is_refused(topic: Topic, given: Any, says: str) -> None:
    with pytest.raises(InvalidRecordError, match=says):
        topic.append(given)


def test_a_frame_that_is_not_collected_is_refused(topic: Topic) -> None:
    with pytest.raises(InvalidRecordError, match=r"not LazyFrame. Call collect\(\) first"):
        topic.append(of_polars(ROWS).lazy())


# --- out ---------------------------------------------------------------------------------------------------


def test_a_whole_topic_or_a_part_of_a_partition(topic: Topic) -> None:
    topic.append([{"value": f"{p}.{i}", "partition": p} for p in (1, 0) for i in range(3)])
    assert read_all(topic) == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    assert topic.to_arrow(1, 1, 2).column("value").to_pylist() == [b"1.1"]
    assert topic.to_pandas(1)["offset"].tolist() == [0, 1, 2]
    assert topic.to_polars(start=None).height == 6
    assert topic.to_arrow(0, 3).schema == topic.to_arrow().schema
    with pytest.raises(InvalidConfigError, match="give its number as partition"):
        topic.to_arrow(start=1)


def test_text_and_json_in_place_of_bytes(topic: Topic) -> None:
    topic.append([{"key": "ännn", "value": {"n": 1, "tags": ["a"]}, "partition": 0}, {"value": None, "partition": 0}])
    arrow = topic.to_arrow(key_as="text", value_as="json")
    assert arrow.schema.field("key").type == pa.string()
    assert arrow.select(["key", "value"]).to_pylist() == [
        {"key": "ännn", "value": {"n": 1, "tags": ["a"]}},
        {"key": None, "value": None},
    ]
    polars = topic.to_polars(key_as="text", value_as="json")
    assert polars["value"].struct.field("n").to_list() == [1, None]
    pandas = topic.to_pandas(key_as="text", value_as="json")
    assert pandas["value"].tolist() == [{"n": 1, "tags": ["a"]}, None]
    assert pandas["key"].tolist() == ["ännn", None]
    assert topic.to_polars(value_as="text")["value"].to_list() == ['{"n":1,"tags":["a"]}', None]


def test_json_of_any_kinds_is_objects_in_pandas(topic: Topic) -> None:
    topic.append([{"value": one, "partition": 0} for one in ("1", '"a"', '{"b": [true]}')])
    assert topic.to_pandas(value_as="json")["value"].tolist() == [1, "a", {"b": [True]}]
    with pytest.raises(InvalidRecordError, match="JSON of different kinds"):
        topic.to_arrow(value_as="json")


@pytest.mark.parametrize(("form", "what"), [("text", "no text in UTF-8"), ("json", "no JSON")])
def test_a_record_that_can_not_be_shown_is_named(topic: Topic, form: str, what: str) -> None:
    topic.append([{"value": '"a"', "partition": 1}, {"value": b"\xff", "partition": 1}])
    for read_as in (topic.to_arrow, topic.to_pandas, topic.to_polars):
        with pytest.raises(InvalidRecordError, match=f"offset 1 of topic 't', partition 1, is {what}"):
            read_as(value_as=form)
    with pytest.raises(InvalidConfigError, match="value_as: give one of bytes, text, json"):
        topic.to_arrow(value_as="avro")


def test_an_empty_topic_has_all_columns(topic: Topic) -> None:
    assert topic.to_pandas(value_as="json").columns.tolist() == topic.to_polars(key_as="text").columns
    assert topic.to_arrow(value_as="json").num_rows == 0


def test_a_library_that_is_missing_is_named(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(frames, "import_module", missing)
    for call, name in ((topic.to_pandas, "pandas"), (topic.to_polars, "polars")):
        with pytest.raises(MissingPackageError, match=f"pip install {name}"):
            call()


def test_neither_is_loaded_before_it_is_used() -> None:
    code = "import sys, tidelog; tidelog.Topic, tidelog.Lake; print({'pandas', 'polars'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
