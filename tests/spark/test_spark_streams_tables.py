"""Tables, windows and joins, by the test driver; and an application of them that is killed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tidelog.streams import (
    JoinWindows,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    python,
    serdes,
)

MINUTE = timedelta(minutes=1)
LONGS = {"value": serdes.LONG}
Drive = Any


@pytest.fixture
def driven(spark: SparkSession) -> Iterator[Drive]:
    """Makes a driver of a builder, which is closed after the test. States have one part: each costs a batch time."""
    made: list[TopologyTestDriver] = []
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")

    def drive(builder: StreamsBuilder) -> TopologyTestDriver:
        made.append(TopologyTestDriver(builder.build(), {}, session))
        return made[-1]

    yield drive
    for one in made:
        one.close()


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def window(key: str, start: int, end: int) -> dict[str, Any]:
    return {"key": key, "window": {"start": at(start), "end": at(end)}}


def in_windows(found: list[tuple[Any, Any]]) -> list[tuple[str, int, int, Any]]:
    """Keys, starts and ends (s) of windows with their values, sorted."""
    return sorted(
        (key["key"], int(key["window"]["start"].timestamp()), int(key["window"]["end"].timestamp()), value)
        for key, value in found
    )


def test_words_are_counted_and_counts_go_on(driven: Drive) -> None:
    builder = StreamsBuilder()
    lines = builder.stream("lines")
    counts = lines.flat_map_values("split(lower(value), ' ')").group_by("value").count()
    counts.to_stream().to("counts")
    driver = driven(builder)
    lines_in = driver.create_input_topic("lines")
    out = driver.create_output_topic("counts", value=serdes.LONG)

    lines_in.pipe_key_values([(None, "Hello hello"), (None, "all streams")])
    assert sorted(out.read_key_values_to_list()) == [("all", 1), ("hello", 2), ("streams", 1)]
    lines_in.pipe_input(None, "all hello")
    assert out.read_key_values_to_map() == {"all": 2, "hello": 3}
    assert out.is_empty()


def test_records_without_key_or_value_are_in_no_group(driven: Drive) -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().to("out")
    driver = driven(builder)
    driver.create_input_topic("in").pipe_key_values([("a", "x"), ("a", None), (None, "y")])

    assert driver.create_output_topic("out", value=serdes.LONG).read_key_values_to_list() == [("a", 1)]


@pytest.mark.parametrize(
    ("make", "first", "second"),
    [
        (lambda g: g.reduce("max(value)"), {"a": 3, "b": 5}, {"a": 9}),
        (lambda g: g.reduce(F.sum("value")), {"a": 4, "b": 5}, {"a": 13}),
        (lambda g: g.reduce(python(lambda old, new: old * 10 + new, "long")), {"a": 13, "b": 5}, {"a": 139}),
        (lambda g: g.aggregate("count(value) * 100"), {"a": 200, "b": 100}, {"a": 300}),
        (
            lambda g: g.aggregate(python(lambda k, v, seen: [*seen, v], "array<bigint>"), initializer=list).map_values(
                "aggregate(value, 0L, (a, b) -> a * 10 + b)"
            ),
            {"a": 13, "b": 5},
            {"a": 139},
        ),
    ],
)
def test_groups_are_reduced_and_aggregated(driven: Drive, make: Any, first: Any, second: Any) -> None:
    builder = StreamsBuilder()
    make(builder.stream("in", value=serdes.LONG).group_by_key()).to_stream().to("out")
    driver = driven(builder)
    numbers = driver.create_input_topic("in", value=serdes.LONG)
    out = driver.create_output_topic("out", value=serdes.LONG)
    numbers.pipe_key_values([("a", 1), ("b", 5), ("a", 3)])
    assert out.read_key_values_to_map() == first
    numbers.pipe_key_values([("a", 9)])
    assert out.read_key_values_to_map() == second


@pytest.mark.parametrize("by_python", [False, True])
def test_windows_count_until_the_watermark_closes_them(driven: Drive, by_python: bool) -> None:
    """A record that is later than the grace is left out; one that is less late counts."""
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed(TimeWindows.of_size_and_grace(MINUTE, MINUTE))
    fold = python(lambda k, v, n: n + 1, "long")
    counts = grouped.aggregate(fold, initializer=0) if by_python else grouped.count()
    counts.to_stream().to("out", key=serdes.time_windowed(serdes.STRING, MINUTE))
    driver = driven(builder)
    records = driver.create_input_topic("in")
    out = driver.create_output_topic("out", serdes.time_windowed(serdes.STRING, MINUTE), serdes.LONG)

    records.pipe_records([("a", "x", at(0)), ("a", "x", at(59)), ("a", "x", at(60))])
    assert in_windows(out.read_key_values_to_list()) == [("a", 0, 60, 2), ("a", 60, 120, 1)]
    records.pipe_input("a", "late but in time", at(10))
    assert in_windows(out.read_key_values_to_list()) == [("a", 0, 60, 3)]
    records.pipe_input("b", "closes the first window", at(120))
    assert in_windows(out.read_key_values_to_list()) == [("b", 120, 180, 1)]
    records.pipe_records([("a", "too late", at(10)), ("a", "in time", at(60))])
    assert in_windows(out.read_key_values_to_list()) == [("a", 60, 120, 2)]


def test_hopping_windows_overlap_and_may_send_only_their_last_result(driven: Drive) -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(2 * MINUTE).advance_by(MINUTE).emit_on_close()
    counts = builder.stream("in").group_by_key().windowed(windows).count()
    counts.to_stream().to("out", key=serdes.time_windowed(serdes.STRING, 2 * MINUTE))
    driver = driven(builder)
    records = driver.create_input_topic("in")
    out = driver.create_output_topic("out", serdes.time_windowed(serdes.STRING, 2 * MINUTE), serdes.LONG)

    records.pipe_records([("a", "x", at(130)), ("a", "x", at(190))])
    assert in_windows(out.read_key_values_to_list()) == [("a", 60, 180, 1)]
    records.pipe_input("a", "x", at(400))
    assert in_windows(out.read_key_values_to_list()) == [("a", 120, 240, 2), ("a", 180, 300, 1)]


@pytest.mark.parametrize("by_python", [False, True])
def test_sessions_end_with_their_last_record(driven: Drive, by_python: bool) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    sessions = grouped.windowed(SessionWindows.of_inactivity_gap_with_no_grace(MINUTE))
    joined = (
        sessions.reduce(python(lambda a, b: a + b))
        if by_python
        else sessions.aggregate("concat_ws('', array_sort(collect_list(value)))")
    )
    joined.to_stream().to("out", key=serdes.session_windowed(serdes.STRING), value=serdes.STRING)
    driver = driven(builder)
    records = driver.create_input_topic("in")
    out = driver.create_output_topic("out", serdes.session_windowed(serdes.STRING))

    records.pipe_records([("a", "x", at(0)), ("a", "y", at(50)), ("a", "z", at(200)), ("b", "w", at(1000))])
    assert in_windows(out.read_key_values_to_list()) == [("a", 0, 50, "xy"), ("a", 200, 200, "z")]


def test_a_stream_joins_the_values_that_a_table_has_by_then(driven: Drive) -> None:
    builder = StreamsBuilder()
    users = builder.table("users")
    views = builder.stream("views")
    views.join(users, "concat(left_value, '@', right_value)").to("inner")
    views.left_join(users, lambda left, right: F.coalesce(right, F.lit("?"))).to("left")
    driver = driven(builder)
    table, stream = driver.create_input_topic("users"), driver.create_input_topic("views")
    inner, left = driver.create_output_topic("inner"), driver.create_output_topic("left")

    table.pipe_records([("ann", "eu", 10), ("ann", "us", 30)])
    stream.pipe_records([("ann", "p1", 5), ("ann", "p2", 20), ("bob", "p3", 20), ("ann", "p4", 30)])
    assert sorted(inner.read_key_values_to_list()) == [("ann", "p2@eu"), ("ann", "p4@us")]
    assert sorted(left.read_key_values_to_list()) == [("ann", "?"), ("ann", "eu"), ("ann", "us"), ("bob", "?")]
    stream.pipe_input("ann", "p5", 31)
    assert inner.read_key_values_to_list() == [("ann", "p5@us")]
    table.pipe_input("ann", None, 32)
    stream.pipe_input("ann", "p6", 33)
    assert inner.read_key_values_to_list() == []
    assert ("ann", "?") in left.read_key_values_to_list()


def test_streams_join_within_a_window_and_send_on_what_has_no_partner(driven: Drive) -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left"), builder.stream("right")
    within = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=10))
    left.join(right, "concat(left_value, right_value)", within).to("inner")
    left.left_join(right, python(lambda one, other: f"{one}{other}"), within).to("outer")
    driver = driven(builder)
    lefts, rights = driver.create_input_topic("left"), driver.create_input_topic("right")
    inner, outer = driver.create_output_topic("inner"), driver.create_output_topic("outer")

    lefts.pipe_records([("k", "a", at(100)), ("k", "b", at(120)), ("other", "c", at(100))])
    rights.pipe_records([("k", "1", at(90)), ("k", "2", at(111))])
    found = inner.read_records_to_list()
    assert sorted((value, time) for _, value, time in found) == [("a1", at(100)), ("b2", at(120))]
    assert sorted(value for _, value in outer.read_key_values_to_list()) == ["a1", "b2"]
    lefts.pipe_input("x", "late", at(1000))
    rights.pipe_input("y", "late", at(1000))
    assert outer.read_key_values_to_list() == [("other", "cNone")]


def test_tables_filter_map_and_join_with_tombstones(driven: Drive) -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.filter("value > 'b'").map_values("upper(value)").to_stream().to("kept")
    left.join(right, lambda a, b: F.concat(a, b)).to_stream().to("inner")
    left.outer_join(right, "concat_ws('-', left_value, right_value)").to_stream().to("outer")
    driver = driven(builder)
    lefts, rights = driver.create_input_topic("left"), driver.create_input_topic("right")
    out = {name: driver.create_output_topic(name) for name in ("kept", "inner", "outer")}

    lefts.pipe_key_values([("1", "a"), ("2", "c"), ("4", "")])
    rights.pipe_key_values([("1", "x"), ("3", "z")])
    assert out["kept"].read_key_values_to_list() == [("1", None), ("2", "C"), ("4", None)]
    assert out["inner"].read_key_values_to_map() == {"1": "ax"}
    assert out["outer"].read_key_values_to_map() == {"1": "a-x", "2": "c", "3": "z", "4": ""}
    lefts.pipe_key_values([("1", None)])
    rights.pipe_key_values([("4", "y")])
    assert out["inner"].read_key_values_to_map() == {"1": None, "4": "y"}
    assert out["outer"].read_key_values_to_map() == {"1": "x", "4": "-y"}


def test_a_tables_rows_leave_their_old_group(driven: Drive) -> None:
    builder = StreamsBuilder()
    regions = builder.table("users")
    regions.group_by("value").count("by-region").to_stream().to("counts")
    summed = regions.group_by("value", "length(key)").aggregate(
        lambda k, v, n: n + v, lambda k, v, n: n - v, initializer=0, returns="long"
    )
    summed.to_stream().to("lengths")
    driver = driven(builder)
    users = driver.create_input_topic("users")
    counts = driver.create_output_topic("counts", value=serdes.LONG)
    lengths = driver.create_output_topic("lengths", value=serdes.LONG)

    users.pipe_key_values([("ann", "eu"), ("bo", "eu"), ("cy", "us")])
    assert counts.read_key_values_to_map() == {"eu": 2, "us": 1}
    assert lengths.read_key_values_to_map() == {"eu": 5, "us": 2}
    users.pipe_key_values([("bo", "us"), ("cy", None)])
    assert counts.read_key_values_to_map() == {"eu": 1, "us": 1}
    assert lengths.read_key_values_to_map() == {"eu": 3, "us": 2}


def test_what_comes_after_a_step_with_state_may_have_one_too(driven: Drive) -> None:
    """Counts of counts: a step's rows go through a topic of the application's."""
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().count()
    counts.group_by("value").count().to_stream().to("out")
    driver = driven(builder)
    driver.create_input_topic("in").pipe_key_values([("a", "x"), ("b", "x"), ("b", "y")])

    out = driver.create_output_topic("out", serdes.LONG, serdes.LONG)
    assert out.read_key_values_to_map() == {1: 1, 2: 1}


def test_keys_and_values_of_any_type_are_folded_as_they_are(driven: Drive) -> None:
    builder = StreamsBuilder()
    pairs = builder.stream("in", key=serdes.json("x bigint, y bigint"), value=serdes.json("n bigint, t array<int>"))
    table = pairs.group_by_key().reduce(python(lambda a, b: {"n": b["n"], "t": [*a["t"], *b["t"]]}))
    table.to_stream().to("out")
    driver = driven(builder)
    big = 2**60 + 1
    records = driver.create_input_topic("in", serdes.json(), serdes.json())
    records.pipe_key_values([({"x": 1, "y": None}, {"n": big, "t": [1]}), ({"x": 1, "y": None}, {"n": None, "t": [2]})])
    records.pipe_key_values([({"x": big, "y": 2}, {"n": big, "t": [3, None]})])

    out = driver.create_output_topic("out", serdes.json(), serdes.json()).read_key_values_to_list()
    assert sorted(out, key=str) == [
        ({"x": 1, "y": None}, {"n": None, "t": [1, 2]}),
        ({"x": big, "y": 2}, {"n": big, "t": [3, None]}),
    ]
