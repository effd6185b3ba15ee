"""The stream reader as Spark drives it: call by call, without Spark."""

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from support.logs import FakeClock, values

from tidelog.cuts.model import CutLostError, UnknownCutError
from tidelog.log.base.errors import DataLossError, InvalidOptionError, TopicChangedError
from tidelog.log.lake import Lake
from tidelog.operations.cuts import create_cut
from tidelog.sources.catalog import Catalog
from tidelog.sources.options import parse_stream
from tidelog.sources.stream import StreamReader

NOW = ReadAllAvailable()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "lake"))
    lake.create_topic("t", partitions=2)
    append(lake, 3)
    return lake


def append(lake: Lake, count: int, partition: int = 0) -> None:
    lake.topic("t").append(values(*["v"] * count, partition=[partition] * count))


BY_PATTERN = {"subscribePattern": "^[tu]$"}


def reader(lake: Lake, **options: Any) -> StreamReader:
    topics = {} if "subscribePattern" in options else {"subscribe": "t"}
    return StreamReader(parse_stream({"lake": lake.uri, **topics, **options}, None))


def at(first: int, second: int = 0) -> dict[str, Any]:
    return {"t": {"0": first, "1": second}}


def planned(stream: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    """[(partition, start, end)] of a batch's tasks, and what they read is as much."""
    tasks = stream.partitions(start, end)
    plans = [plan for task in tasks for _, plan in task.plans]  # type: ignore[attr-defined]
    bare = pickle.loads(pickle.dumps(stream))
    assert sum(batch.num_rows for task in tasks for batch in bare.read(task)) == sum(p.end - p.start for p in plans)
    return [(plan.partition, plan.start, plan.end) for plan in plans]


def test_a_new_query_from_the_latest_offset(lake: Lake) -> None:
    """Its first batch is empty, so that the checkpoint holds the start."""
    stream = reader(lake)
    assert stream.initialOffset() == at(3)
    append(lake, 1)
    assert stream.initialOffset() == at(3)
    assert stream.latestOffset(at(3), NOW) == at(3)
    assert stream.reportLatestOffset() == at(4)  # progress shows it, of the empty batch too
    assert stream.initialOffset() == at(3)
    assert planned(stream, at(3), at(3)) == []
    assert stream.latestOffset(at(3), NOW) == at(4)
    assert planned(stream, at(3), at(4)) == [(0, 3, 4)]
    assert stream.reportLatestOffset() == at(4)


def test_a_first_batch_repeated_after_a_restart(lake: Lake) -> None:
    append(lake, 2)
    stream = reader(lake)
    assert stream.initialOffset() == at(5)  # the first run's was 3, and that is its batch's logged end
    assert planned(stream, at(5), at(3)) == []
    assert stream.latestOffset(at(3), NOW) == at(5)
    assert planned(stream, at(3), at(5)) == [(0, 3, 5)]


NAMED = '{"t":{"0":%d,"1":%d}}'


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"startingOffsets": "earliest"}, 0),
        ({"startingOffsets": NAMED % (1, 0)}, 1),
        ({"startingTimestamp": "0"}, 0),
        ({"startingOffsetsByTimestamp": NAMED % (0, 0)}, 0),
    ],
    ids=["earliest", "offsets", "timestamp", "timestamps"],
)
def test_a_first_batch_that_failed_is_planned_as_it_was(lake: Lake, options: dict[str, str], first: int) -> None:
    """Its topic got a partition meanwhile, which comes with the next batch: nothing of it is deleted."""
    append(lake, 1, partition=1)
    query = reader(lake, **options)
    logged = query.latestOffset(query.initialOffset(), NOW)
    assert logged == at(3, 1)
    lake.alter_topic("t", partitions=3)
    append(lake, 2)

    again = reader(lake, **options)
    assert planned(again, again.initialOffset(), logged) == [(0, first, 3), (1, 0, 1)]
    append(lake, 2, partition=2)

    end = again.latestOffset(logged, NOW)
    assert end == {"t": {"0": 5, "1": 1, "2": 2}}
    assert planned(again, logged, end) == [(0, 3, 5), (2, 0, 2)]


def test_a_first_batch_of_no_partitions_is_planned_as_it_was(lake: Lake) -> None:
    """A pattern matched nothing when the query began."""
    query = reader(lake, **BY_PATTERN, startingOffsets="earliest")
    lake.delete_topic("t")
    assert query.latestOffset(query.initialOffset(), NOW) == {}
    lake.create_topic("u")

    again = reader(lake, **BY_PATTERN, startingOffsets="earliest")
    assert planned(again, again.initialOffset(), {}) == []
    assert again.latestOffset({}, NOW) == {"u": {"0": 0}}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffsets": '{"t":{"0":0}}'}, "you must specify all TopicPartitions"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "you must specify all TopicPartitions"),
        ({"startingTimestamp": "4000000000000"}, "No offset matched"),
    ],
)
def test_a_new_query_whose_start_does_not_fit_is_refused(lake: Lake, options: dict[str, str], says: str) -> None:
    query = reader(lake, **options)
    start = query.initialOffset()
    for _ in range(2):
        with pytest.raises(InvalidOptionError, match=says):
            query.latestOffset(start, NOW)


def test_a_pattern_whose_topics_are_all_gone_waits_where_it_is(lake: Lake) -> None:
    """Spark keeps the answer as the query's offset: `{}` would be a batch that can't be planned any more."""
    query = reader(lake, **BY_PATTERN, startingOffsets="earliest")
    end = query.latestOffset(query.initialOffset(), NOW)
    lake.delete_topic("t")
    assert query.latestOffset(end, NOW) == end == at(3)
    assert query.reportLatestOffset() is None

    lake.create_topic("u")
    lake.topic("u").append(values("a"))
    again = reader(lake, **BY_PATTERN, failOnDataLoss="false")
    after = again.latestOffset(end, NOW)
    assert after == {"u": {"0": 1}}
    assert planned(again, end, after) == [(0, 0, 1)]
    with pytest.raises(DataLossError, match=r"Partitions Set\(t-0, t-1\) have been deleted"):
        reader(lake, **BY_PATTERN).partitions(end, after)


def test_available_now_has_nothing_to_read_of_a_pattern_whose_topics_are_gone(lake: Lake) -> None:
    lake.delete_topic("t")
    query = reader(lake, **BY_PATTERN)
    query.prepareForTriggerAvailableNow()
    assert query.latestOffset(at(3), NOW) == at(3)


def test_named_topics_that_are_all_gone_are_a_loss(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.delete_topic("t")
    with pytest.raises(DataLossError, match=r"Partitions Set\(t-0, t-1\) have been deleted"):
        reader(lake).latestOffset(at(3), NOW)
    tolerant = reader(lake, failOnDataLoss="false")
    for _ in range(3):
        assert tolerant.latestOffset(at(3), NOW) == at(3)
    assert [record.message[:23] for record in caplog.records] == ["Set(t-0, t-1) are gone."]


class Published(dict[str, Any]):
    """What a reader publishes, by group."""

    def publish(self, group: str, offsets: Any) -> None:
        self[group] = offsets


BOTH = {"t": {"0": 1, "1": 0}, "u": {"0": 0}}
TOLERANT = {"failOnDataLoss": "false"}


@pytest.mark.parametrize(
    ("options", "begun", "says"),
    [
        ({"subscribe": "u"}, at(1), "this checkpoint is of topic t, the query reads topic u."),
        ({"subscribe": "u", **TOLERANT}, at(1), "this checkpoint is of topic t, the query reads topic u."),
        ({"assign": '{"u":[0]}'}, at(1), "this checkpoint is of topic t, the query reads topic u."),
        ({"subscribePattern": "^u"}, at(1), "of topic t, the query reads topics by the pattern '^u'."),
        ({"subscribe": "u"}, BOTH, "of topics t, u, the query reads topic u."),
        ({"subscribePattern": "^u"}, BOTH, "of topics t, u, the query reads topics by the pattern '^u'."),
    ],
)
def test_a_checkpoint_of_other_topics_is_refused_before_spark_writes_into_it(
    lake: Lake, options: dict[str, str], begun: dict[str, Any], says: str
) -> None:
    """Spark writes down what `latestOffset` returns, so that is the last moment; a batch may be repeated before."""
    lake.create_topic("u")
    published = Published()
    given = parse_stream({"lake": lake.uri, "kafka.group.id": "g", **options}, None)
    query = StreamReader(given, lambda _: published)
    with pytest.raises(InvalidOptionError, match="^tidelog: .*" + re.escape(says)) as refused:
        query.latestOffset(begun, NOW)
    assert ("failOnDataLoss to false" in str(refused.value)) == ("u" in begun)
    with pytest.raises(InvalidOptionError, match=re.escape(says)):
        StreamReader(given, lambda _: published).partitions(begun, begun)
    assert published == {}  # nothing of the other topic is shown as this query's progress


@pytest.mark.parametrize(
    ("options", "begun"),
    [
        ({"subscribe": "t,u"}, at(1)),
        ({"assign": '{"t":[0,1],"u":[0]}'}, at(1)),
        ({"subscribePattern": "^[tu]"}, at(1)),
        ({"subscribe": "u", **TOLERANT}, BOTH),
        ({"subscribePattern": "^u", **TOLERANT}, BOTH),
    ],
)
def test_a_query_may_read_more_topics_than_it_did_and_fewer_where_it_minds_no_loss(
    lake: Lake, options: dict[str, str], begun: dict[str, Any]
) -> None:
    lake.create_topic("u")
    lake.topic("u").append(values("a"))
    query = StreamReader(parse_stream({"lake": lake.uri, **options}, None))
    end = query.latestOffset(begun, NOW)
    assert end["u"] == {"0": 1}
    assert {plan.partition for task in query.partitions(begun, end) for _, plan in task.plans}  # type: ignore[attr-defined]


def test_a_later_batch_repeated_after_a_restart(lake: Lake) -> None:
    stream = reader(lake)
    assert planned(stream, at(1), at(2)) == [(0, 1, 2)]
    assert stream.reportLatestOffset() == at(3)  # progress shows it before Spark asks where the next batch ends
    assert stream.latestOffset(at(2), NOW) == at(3)


def test_a_resumed_query_is_not_held_back(lake: Lake) -> None:
    assert reader(lake).latestOffset(at(0), NOW) == at(3)


def test_earliest_is_not_held_back_either(lake: Lake) -> None:
    stream = reader(lake, startingOffsets="earliest")
    assert stream.latestOffset(stream.initialOffset(), NOW) == at(3)


def test_available_now_fixes_its_end(lake: Lake) -> None:
    stream = reader(lake, startingOffsets="earliest", maxOffsetsPerTrigger="2")
    stream.prepareForTriggerAvailableNow()
    append(lake, 5)
    start, ends, limit = stream.initialOffset(), [], stream.getDefaultReadLimit()
    while (end := stream.latestOffset(start, limit)) != start:
        assert planned(stream, start, end) == [(0, start["t"]["0"], end["t"]["0"])]
        ends.append(end)
        start = end
    # A start that is asked for later than the end must not be past it, so the end is taken again then.
    assert ends == [at(2), at(4), at(6), at(8)]


def test_available_now_from_the_latest_offset_while_records_come(lake: Lake) -> None:
    """Spark asks for the end before the start, and records come in between: that is no loss."""
    stream = reader(lake)
    stream.prepareForTriggerAvailableNow()
    append(lake, 2)
    lake.alter_topic("t", partitions=3)
    start = stream.initialOffset()
    assert start == {"t": {"0": 5, "1": 0, "2": 0}}
    append(lake, 1)
    assert stream.latestOffset(start, NOW) == start
    assert planned(stream, start, start) == []
    assert stream.latestOffset(start, NOW) == start


def test_available_now_from_a_checkpoint_keeps_its_end(lake: Lake) -> None:
    stream = reader(lake)
    stream.prepareForTriggerAvailableNow()
    append(lake, 2)
    assert stream.latestOffset(at(1), NOW) == at(3)


def test_available_now_refuses_a_target_that_moved_away(lake: Lake) -> None:
    stream = reader(lake)
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(at(0), NOW)
    lake.delete_topic("t")
    with pytest.raises(TopicChangedError, match="have been lost during running query with Trigger"):
        stream.partitions(at(0), end)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "7"}, ReadMaxRows(7)),
        ({"minOffsetsPerTrigger": "7"}, ReadMaxRows(2**63 - 1)),
        ({"minOffsetsPerTrigger": "2", "maxOffsetsPerTrigger": "7"}, ReadMaxRows(7)),
    ],
)
def test_the_default_limit_tells_spark_that_there_is_one(lake: Lake, options: dict[str, str], limit: Any) -> None:
    assert reader(lake, **options).getDefaultReadLimit() == limit


def test_limits_hold_unless_spark_asks_for_everything(lake: Lake) -> None:
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "2"}
    assert reader(lake, **options).latestOffset(at(0), ReadMaxRows(2)) == at(2)
    assert reader(lake, **options).latestOffset(at(0), NOW) == at(3)  # Trigger.Once


def test_a_minimum_lets_the_first_batch_through_and_then_waits(lake: Lake) -> None:
    stream = reader(lake, startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    limit = stream.getDefaultReadLimit()
    assert stream.latestOffset(at(0), limit) == at(3)
    append(lake, 9)
    assert stream.latestOffset(at(3), limit) == at(3)
    append(lake, 1)
    assert stream.latestOffset(at(3), limit) == at(13)


def test_new_partitions_are_read_from_their_beginning(lake: Lake) -> None:
    stream = reader(lake)
    lake.alter_topic("t", partitions=3)
    append(lake, 2, partition=2)
    end = stream.latestOffset(at(3), NOW)
    assert end == {"t": {"0": 3, "1": 0, "2": 2}}
    assert planned(stream, at(3), end) == [(2, 0, 2)]


def test_lost_records_fail_the_batch_or_are_passed_over(lake: Lake) -> None:
    lake.delete_records("t", {0: 2})
    with pytest.raises(DataLossError, match=r"Could not read records in offset \[0, 2\) for topic partition t-0"):
        reader(lake).partitions(at(0), at(3))
    assert planned(reader(lake, failOnDataLoss="false"), at(0), at(3)) == [(0, 2, 3)]


def test_an_idle_query_looks_the_less_often_the_more_a_look_costs(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark asks a hundred times a second, and an object store is paid for by the call."""
    stream, looks, clock = reader(lake, startingOffsets="earliest"), [], FakeClock()
    refresh = Catalog.refresh

    def slow(catalog: Catalog, **required: bool) -> None:
        looks.append(clock.elapsed_s())
        clock.pass_s(0.03)
        catalog.lake.clock = clock
        refresh(catalog, **required)

    monkeypatch.setattr(Catalog, "refresh", slow)
    for _ in range(100):
        assert stream.latestOffset(at(3), NOW) == at(3)
        clock.pass_s(0.01)
    assert 3 <= len(looks) <= 6

    append(lake, 1)
    clock.pass_s(1)
    assert stream.latestOffset(at(3), NOW) == at(4)
    append(lake, 1)
    assert stream.latestOffset(at(4), NOW) == at(5)  # where something came, more may have come


def test_what_goes_to_tasks_is_small(lake: Lake) -> None:
    stream = reader(lake)
    stream.initialOffset()
    assert set(pickle.loads(pickle.dumps(stream)).__dict__) == {"_options"}


# --- cuts --------------------------------------------------------------------------------------------------


def test_a_stream_from_one_cut_to_another(lake: Lake) -> None:
    create_cut(lake, "thursday")
    append(lake, 2)
    append(lake, 1, partition=1)
    create_cut(lake, "friday")
    append(lake, 4)
    stream = reader(lake, startingCut="thursday", endingCut="friday")
    assert stream.initialOffset() == at(3)
    assert stream.latestOffset(at(3), NOW) == at(5, 1)
    assert planned(stream, at(3), at(5, 1)) == [(0, 3, 5), (1, 0, 1)]
    append(lake, 1)
    assert stream.latestOffset(at(5, 1), NOW) == at(5, 1)
    assert stream.latestOffset(at(6, 1), NOW) == at(6, 1)  # a checkpoint that is past the cut stays there


def test_available_now_ends_at_the_cut(lake: Lake) -> None:
    create_cut(lake, "friday")
    append(lake, 4)
    stream = reader(lake, startingOffsets="earliest", endingCut="friday")
    stream.prepareForTriggerAvailableNow()
    assert stream.initialOffset() == at(0)
    assert stream.latestOffset(at(0), NOW) == at(3)
    assert planned(stream, at(0), at(3)) == [(0, 0, 3)]
    again = reader(lake, endingCut="friday")
    again.prepareForTriggerAvailableNow()
    assert again.latestOffset(at(5), NOW) == at(5)


def test_partitions_and_topics_that_came_after_the_cut(lake: Lake) -> None:
    create_cut(lake, "friday")
    lake.alter_topic("t", 3)
    lake.create_topic("u", 1)
    append(lake, 2, partition=2)
    lake.topic("u").append(values("v"))
    after = reader(lake, subscribePattern="^[tu]$", startingCut="friday")
    assert after.initialOffset() == {"t": {"0": 3, "1": 0, "2": 0}, "u": {"0": 0}}
    up_to = reader(lake, subscribePattern="^[tu]$", startingOffsets="earliest", endingCut="friday")
    assert up_to.latestOffset(up_to.initialOffset(), NOW) == {"t": {"0": 3, "1": 0, "2": 0}, "u": {"0": 0}}


def test_cuts_that_a_query_can_not_go_by(lake: Lake) -> None:
    with pytest.raises(UnknownCutError, match="no cut 'none'"):
        reader(lake, startingCut="none").initialOffset()
    create_cut(lake, "friday")
    lake.delete_topic("t")
    lake.create_topic("t", 2)
    with pytest.raises(CutLostError, match="created again"):
        reader(lake, startingCut="friday").initialOffset()
    with pytest.raises(InvalidOptionError, match="'startingCut' and 'startingoffsets' both say where the query starts"):
        reader(lake, startingCut="friday", startingOffsets="earliest")
    with pytest.raises(InvalidOptionError, match="not valid in streaming"):
        reader(lake, endingCut="friday", endingOffsets="latest")
