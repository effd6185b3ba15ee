"""Streams without state, by the test driver, and an application that is started again."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from support.spark_queries import FEW_RECORDS, append, fails_with, forget_commit, in_topic

from tidelog.log.base.errors import InvalidOptionError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.streams import (
    Streams,
    StreamsBuilder,
    StreamsStateError,
    TopologyChangedError,
    TopologyTestDriver,
    python,
    serdes,
)

Open = Any


@pytest.fixture
def driven(spark: SparkSession) -> Iterator[Open]:
    """Makes a driver of a builder, which is closed after the test."""
    made: list[TopologyTestDriver] = []

    def drive(builder: StreamsBuilder, **config: str) -> TopologyTestDriver:
        made.append(TopologyTestDriver(builder.build(), config, spark))
        return made[-1]

    yield drive
    for one in made:
        one.close()


def through(driven: Open, work: Any, *records: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    """What a stream makes of records of text."""
    builder = StreamsBuilder()
    work(builder.stream("in")).to("out", key=serdes.STRING, value=serdes.STRING)
    driver = driven(builder)
    driver.create_input_topic("in").pipe_key_values(records)
    return driver.create_output_topic("out").read_key_values_to_list()


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        pytest.param(lambda s: s.map_values("upper(value)"), [("a", "X Y"), ("b", "Z")], id="SQL"),
        pytest.param(lambda s: s.map_values(F.upper("value")), [("a", "X Y"), ("b", "Z")], id="column"),
        pytest.param(
            lambda s: s.map_values(lambda k, v: F.concat(k, v)).filter(lambda v: v != F.lit("bz")),
            [("a", "ax y")],
            id="functions of columns",
        ),
        pytest.param(
            lambda s: s.map_values(python(lambda k, v: f"{k}-{v}")).filter(python(lambda v: "z" in v, "boolean")),
            [("b", "b-z")],
            id="Python",
        ),
        pytest.param(lambda s: s.map("value", "key").select_key("upper(key)"), [("X Y", "a"), ("Z", "b")], id="keys"),
        pytest.param(
            lambda s: s.flat_map_values(lambda v: F.split(v, " ")).filter_not("value = 'y'"),
            [("a", "x"), ("b", "z")],
            id="flat_map_values",
        ),
        pytest.param(
            lambda s: s.flat_map(
                python(
                    lambda k, v: [{"key": one, "value": k} for one in v.split()],
                    "array<struct<key: string, value: string>>",
                )
            ),
            [("x", "a"), ("y", "a"), ("z", "b")],
            id="flat_map",
        ),
    ],
)
def test_records_are_mapped_and_filtered(driven: Open, work: Any, expected: list[tuple[Any, Any]]) -> None:
    assert through(driven, work, ("a", "x y"), ("b", "z")) == expected


def test_a_filter_takes_unknown_for_false(driven: Open) -> None:
    assert through(driven, lambda s: s.filter("value != 'x'"), ("a", None), ("b", "z")) == [("b", "z")]
    assert through(driven, lambda s: s.filter_not("value != 'x'"), ("a", None), ("b", "z")) == [("a", None)]


def test_branches_take_the_first_predicate_and_merge_again(driven: Open) -> None:
    builder = StreamsBuilder()
    numbers = builder.stream("in", value=serdes.LONG)
    low, even = numbers.branch("value < 3", "value % 2 = 0")
    low.to("low")
    named = numbers.split().branch("value < 3", "low").default_branch("rest")
    even.merge(named["low"]).map_values("cast(value as string)").to("merged")
    driver = driven(builder)
    driver.create_input_topic("in", value=serdes.LONG).pipe_key_values([(str(n), n) for n in range(6)])

    assert driver.create_output_topic("low", value=serdes.LONG).read_key_values_to_map() == {"0": 0, "1": 1, "2": 2}
    merged = driver.create_output_topic("merged").read_key_values_to_list()
    assert sorted(value for _, value in merged) == ["0", "1", "2", "4"]


def test_peek_shows_records_and_sends_them_on(driven: Open, tmp_path: Any) -> None:
    seen = tmp_path / "seen"

    def note(key: str, value: str) -> None:
        with seen.open("a") as file:
            file.write(f"{key}{value} ")

    assert through(driven, lambda s: s.peek(note), ("a", "x"), ("b", "z")) == [("a", "x"), ("b", "z")]
    assert seen.read_text() == "ax bz "


def test_records_go_through_topics_with_timestamps(driven: Open) -> None:
    builder = StreamsBuilder()
    builder.stream("in").through("between").repartition("again", 2).map_values("upper(value)").to("out")
    driver = driven(builder)
    driver.create_input_topic("in").pipe_input("a", "x", 1_000)
    ((key, value, timestamp),) = driver.create_output_topic("out").read_records_to_list()

    assert (key, value, timestamp.timestamp()) == ("a", "X", 1.0)
    assert driver.create_output_topic("between").read_key_values_to_list() == [("a", "x")]
    assert len(driver.lake.offsets("test-again-repartition")) == 2


@pytest.mark.parametrize(
    ("serde", "value", "sql", "expected"),
    [
        (
            serdes.json("page string, seconds bigint"),
            {"page": "p", "seconds": 2**60 + 1},
            "value.seconds + 1",
            2**60 + 2,
        ),
        (serdes.json("array<int>"), [1, 2], "value[1]", 2),
        (serdes.json("bigint"), 7, "value + 1", 8),
        (serdes.LONG, -5, "value - 1", -6),
        (serdes.INTEGER, -5, "value - 1", -6),
        (serdes.BYTES, b"\x01\x02", "length(value)", 2),
    ],
)
def test_serdes_read_and_write_kafkas_bytes(driven: Open, serde: Any, value: Any, sql: str, expected: int) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=serdes.LONG, value=serde)
    stream.to("same", value=serde)
    stream.map_values(sql).to("out", value=serdes.json())
    driver = driven(builder)
    driver.create_input_topic("in", serdes.LONG, serde).pipe_key_values([(-1, value), (3, None)])

    same = driver.create_output_topic("same", serdes.LONG, serde)
    assert same.read_key_values_to_list() == [(-1, value), (3, None)]
    out = driver.create_output_topic("out", serdes.LONG, serdes.json())
    assert out.read_key_values_to_list() == [(-1, expected), (3, None)]


def test_values_that_are_no_json_fail_the_application_or_are_null(driven: Open) -> None:
    for fail_fast in (True, False):
        builder = StreamsBuilder()
        builder.stream("in", value=serdes.json("n int", fail_fast=fail_fast)).map_values("value.n").to("out")
        driver = driven(builder)
        driver.create_input_topic("in").pipe_input("a", "no")
        out = driver.create_output_topic("out", value=serdes.INTEGER)
        if fail_fast:
            with fails_with("FAILFAST"):
                out.read_key_values_to_list()
        else:
            assert out.read_key_values_to_list() == [("a", None)]


def test_functions_that_give_no_column_are_refused(driven: Open) -> None:
    with pytest.raises(InvalidOptionError, match=r"gave str where a column is wanted.*streams\.python"):
        through(driven, lambda s: s.map_values(lambda v: "x"))
    with pytest.raises(InvalidOptionError, match="A function with 3 parameters was given"):
        through(driven, lambda s: s.map_values(lambda a, b, c: a))


# --- an application ------------------------------------------------------------------------------------------


def shouting(source: str = "in", function: str = "upper(value)") -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.stream(source).map_values(function).to("out")
    return builder


def run(spark: SparkSession, lake: Lake, builder: StreamsBuilder) -> Streams:
    """Process what is there, in an application of one id."""
    config = {"application.id": "app", "lake": lake.uri, **FEW_RECORDS}
    with Streams(builder.build(), config, spark) as streams:
        streams.process_all_available()
    return streams


def test_an_application_goes_on_where_it_was_with_other_functions(spark: SparkSession, lake: Lake) -> None:
    append(lake, "in", "a")
    first = run(spark, lake, shouting())
    append(lake, "in", "b")
    run(spark, lake, shouting(function="concat(value, '!')"))

    assert in_topic(lake, "out") == ["A", "b!"]
    assert first.state == "NOT_RUNNING"
    with pytest.raises(StreamsStateError, match="make another Streams"):
        first.start()


def test_a_batch_that_is_run_again_counts_once(spark: SparkSession, lake: Lake) -> None:
    append(lake, "in", "a")
    run(spark, lake, shouting())
    forget_commit(f"{lake.uri.removeprefix('file://')}/__streams/app/to-out")
    append(lake, "in", "b")
    run(spark, lake, shouting())

    assert in_topic(lake, "out") == ["A", "B"]


def test_another_source_needs_another_application_id(spark: SparkSession, lake: Lake) -> None:
    for topic in ("in", "other"):
        append(lake, topic, topic)
    run(spark, lake, shouting())

    with pytest.raises(TopologyChangedError, match=r"'to-out' had sources \['in'\], and now \['other'\].*application"):
        run(spark, lake, shouting("other"))
    assert in_topic(lake, "out") == ["IN"]


def test_a_topic_that_is_missing_is_refused(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(UnknownTopicError, match="There is no topic 'in', which the application reads"):
        run(spark, lake, shouting())


def test_an_application_whose_query_fails_says_so(spark: SparkSession, lake: Lake) -> None:
    append(lake, "in", "a")
    builder = StreamsBuilder()
    builder.stream("in").map_values("raise_error('broken')").to("out")
    streams = Streams(builder.build(), {"application.id": "app", "lake": lake.uri}, spark).start()

    with fails_with("broken"):
        streams.await_termination()
    assert streams.state == "ERROR"
    streams.stop()
