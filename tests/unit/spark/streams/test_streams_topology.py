"""A topology as nodes and queries: names, which queries run it, what can't be, what an application goes on with."""

from datetime import timedelta

import pytest

from tidelog.log.base.errors import InvalidOptionError
from tidelog.spark.streams.graph import QueryPlan, differences, internal_topic
from tidelog.streams import JoinWindows, KTable, SessionWindows, StreamsBuilder, TimeWindows, python


def test_a_topology_describes_itself_in_kafkas_form() -> None:
    builder = StreamsBuilder()
    builder.stream("lines").map_values("upper(value)").to("shouted")

    assert str(builder.build()).splitlines() == [
        "Topologies:",
        "   Sub-topology: 0 to-shouted",
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [lines])",
        "      --> KSTREAM-MAPVALUES-0000000001",
        "    Processor: KSTREAM-MAPVALUES-0000000001 (stores: [])",
        "      --> KSTREAM-SINK-0000000002",
        "      <-- KSTREAM-SOURCE-0000000000",
        "    Sink: KSTREAM-SINK-0000000002 (topic: shouted)",
        "      <-- KSTREAM-MAPVALUES-0000000001",
    ]


def test_each_topic_that_is_written_is_a_query_named_after_it() -> None:
    builder = StreamsBuilder()
    lines = builder.stream(["a", "b"])
    lines.to("c")
    lines.filter("value > 'm'").to("d")
    lines.filter_not("value > 'm'").to("d")

    plans = builder.build().plans()

    assert [(plan.name, plan.topic, [one.topic for one in plan.sources]) for plan in plans] == [
        ("to-c", "c", ["a,b"]),
        ("to-d", "d", ["a,b"]),
        ("to-d-2", "d", ["a,b"]),
    ]


def test_what_goes_through_a_topic_is_a_query_before_its_readers() -> None:
    builder = StreamsBuilder()
    parted = builder.stream("a").select_key("value").repartition("by-value", 4)
    parted.to("c")
    parted.to("d")

    topology = builder.build()

    assert [(plan.name, plan.topic, plan.internal) for plan in topology.plans()] == [
        ("by-value", "by-value-repartition", True),
        ("to-c", "c", False),
        ("to-d", "d", False),
    ]
    assert [one.store for one in topology.plans()[1].sources] == ["by-value"]
    assert internal_topic("app", topology.plans()[0].topic) == "app-by-value-repartition"
    assert "Source: KSTREAM-REPARTITION-0000000002 (topics: [by-value-repartition])" in str(topology)


def test_a_topology_that_writes_nothing_is_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("a").map_values("upper(value)")

    with pytest.raises(InvalidOptionError, match="The topology writes nothing"):
        builder.build()


def test_two_tables_of_one_name_are_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("a").repartition("one")

    with pytest.raises(InvalidOptionError, match="Two tables are named 'one'"):
        builder.stream("b").repartition("one")


def test_two_branches_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="Two branches are named 'x'"):
        StreamsBuilder().stream("a").split().branch("true", "x").branch("false", "x")


def test_a_topology_goes_on_with_other_functions_and_more_outputs() -> None:
    def topology(function: str, *more: str) -> StreamsBuilder:
        builder = StreamsBuilder()
        stream = builder.stream("a").map_values(function)
        for topic in ("c", *more):
            stream.to(topic)
        return builder

    before = [{"name": one.name, "signature": one.signature} for one in topology("value").build().plans()]

    assert differences(before, topology("upper(value)", "d").build().plans()) == []


def test_another_source_and_an_output_that_is_gone_are_told() -> None:
    def builder(source: str, target: str) -> StreamsBuilder:
        made = StreamsBuilder()
        made.stream(source).to(target)
        return made

    before = [{"name": one.name, "signature": one.signature} for one in builder("a", "c").build().plans()]

    assert differences(before, builder("b", "c").build().plans()) == ["'to-c' had sources ['a'], and now ['b']"]
    assert differences(before, builder("a", "d").build().plans()) == ["'to-c' is gone"]


def test_a_step_with_state_whose_rows_another_one_reads_goes_through_a_topic() -> None:
    builder = StreamsBuilder()
    views, users = builder.stream("views"), builder.table("users")
    counts = views.join(users, "right_value").group_by("value").count()
    counts.group_by("value").count("counts-of-counts").to_stream().to("out")

    plans = builder.build().plans()

    assert [(plan.name, plan.topic, plan.state.kind if plan.state else "") for plan in plans] == [
        ("kstream-join-0000000002", "kstream-join-0000000002-repartition", "JOIN"),
        ("kstream-count-0000000004", "kstream-count-0000000004-changelog", "COUNT"),
        ("ktable-groupby-0000000005", "ktable-groupby-0000000005-repartition", "GROUPBY"),
        ("counts-of-counts", "counts-of-counts-changelog", "COUNT"),
        ("to-out", "out", ""),
    ]


def test_a_table_that_only_one_topic_takes_has_no_topic_of_its_own() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().count()
    counts.filter("value > 1").to_stream().to("out")
    assert [plan.name for plan in builder.build().plans()] == ["to-out"]

    counts.to_stream().to("all")
    assert [plan.name for plan in builder.build().plans()] == ["kstream-count-0000000001", "to-out", "to-all"]


def test_what_a_table_sends_is_replaced_and_what_a_closed_window_sends_is_not() -> None:
    grouped = StreamsBuilder().stream("in").group_by_key()
    windows = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
    sessions = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(minutes=1))

    def is_final(table: KTable) -> bool:
        return table.to_stream()._node.appends

    assert not is_final(grouped.count())
    assert not is_final(grouped.windowed(windows).count())
    assert is_final(grouped.windowed(windows.emit_on_close()).count())
    assert is_final(grouped.windowed(sessions).count())
    assert is_final(grouped.count("by-a-topic"))


def test_another_window_is_told() -> None:
    def plans(minutes: int) -> list[QueryPlan]:
        builder = StreamsBuilder()
        windows = TimeWindows.of_size_with_no_grace(timedelta(minutes=minutes))
        builder.stream("in").group_by_key().windowed(windows).count().to_stream().to("out")
        return builder.build().plans()

    before = [{"name": one.name, "signature": one.signature} for one in plans(1)]

    assert differences(before, plans(1)) == []
    (why,) = differences(before, plans(2))
    assert why.startswith("'to-out' had state COUNT windows of 0:01:00 every 0:01:00")
    assert "0:02:00" in why


def test_a_join_of_streams_needs_a_window_and_one_with_a_table_takes_none() -> None:
    builder = StreamsBuilder()
    stream, table = builder.stream("a"), builder.table("b")
    windows = JoinWindows.of_time_difference_with_no_grace(timedelta(minutes=1))

    with pytest.raises(InvalidOptionError, match="A join of two streams needs a window"):
        stream.join(builder.stream("c"), "left_value")
    with pytest.raises(InvalidOptionError, match="A join with a table has no window"):
        stream.left_join(table, "left_value", windows)


def test_python_functions_of_groups_take_what_they_are_called_with() -> None:
    grouped = StreamsBuilder().stream("in").group_by_key()

    with pytest.raises(InvalidOptionError, match=r"takes 1 arguments: give one of \(aggregate, value\)"):
        grouped.reduce(python(lambda value: value))
    with pytest.raises(InvalidOptionError, match=r"takes 2 arguments: give one of \(key, value, aggregate\)"):
        grouped.aggregate(python(lambda value, aggregate: value))
