"""Expiry by time and size, as tables over segment metadata; and executed through the door."""

from dataclasses import replace

import pytest
from support.logs import add, apply_all, created, end_txn, entry, memory_lake, read, values

from tidelog.log.base.errors import TopicChangedError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.segments.writer import stats_json
from tidelog.log.state.topic_state import TopicState
from tidelog.retention import Expiry, decide_expiry, plan_expiry
from tidelog.retention.expiry import kept_by_the_future

NOW_MS = 10_000


def state_of(*segments: tuple[int | None, int]) -> TopicState:
    """One partition of segments of ten records: (newest timestamp in ms or None for no statistics, bytes)."""
    adds = [
        add(
            0,
            10 * i,
            10 * i + 10,
            size=size,
            stats=None if newest is None else stats_json(10, 9, 0, newest),
            modification_ms=5_000,
        )
        for i, (newest, size) in enumerate(segments)
    ]
    end = [end_txn(0, 10 * len(segments))] if segments else []
    return apply_all(TopicState(), [created(partitions=2), entry(1, *adds, *end)])


@pytest.mark.parametrize(
    ("why", "segments", "config", "starts"),
    [
        ("nothing is old", [(9_000, 1), (9_500, 1)], {"retention.ms": "1000"}, {}),
        ("exactly as old as allowed stays", [(9_000, 1)], {"retention.ms": "1000"}, {}),
        ("older goes", [(8_999, 1), (9_500, 1)], {"retention.ms": "1000"}, {0: 10}),
        ("an expired newest segment goes too", [(1, 1), (2, 1)], {"retention.ms": "1000"}, {0: 20}),
        ("an old one behind a young one stays", [(9_500, 1), (1, 1)], {"retention.ms": "1000"}, {}),
        ("a timestamp in the future is young", [(99_000, 1), (1, 1)], {"retention.ms": "1000"}, {}),
        ("without statistics the file's time counts", [(None, 1)], {"retention.ms": "4999"}, {0: 10}),
        ("without statistics, young", [(None, 1)], {"retention.ms": "5000"}, {}),
        ("no limit", [(1, 1)], {"retention.ms": "-1"}, {}),
        ("as large as allowed stays", [(9_999, 5), (9_999, 5)], {"retention.bytes": "10"}, {}),
        ("only whole segments go", [(9_999, 5), (9_999, 5)], {"retention.bytes": "6"}, {}),
        ("what is spare goes", [(9_999, 5), (9_999, 5)], {"retention.bytes": "5"}, {0: 10}),
        ("nothing may stay", [(9_999, 5), (9_999, 5)], {"retention.bytes": "0"}, {0: 20}),
        ("the stricter limit wins", [(1, 5), (9_999, 5)], {"retention.ms": "9000", "retention.bytes": "5"}, {0: 10}),
        ("a compacted topic keeps all", [(1, 1)], {"retention.ms": "1", "cleanup.policy": "compact"}, {}),
        (
            "size first, then time",
            [(99_000, 5), (1, 5), (9_999, 5)],
            {"retention.ms": "1000", "retention.bytes": "10"},
            {0: 20},
        ),
        ("no policy keeps all", [(1, 1)], {"retention.ms": "1", "cleanup.policy": ""}, {}),
        ("no timestamp: the file's time counts", [(-1, 1)], {"retention.ms": "4999"}, {0: 10}),
        ("no size limit", [(9_999, 5)], {"retention.bytes": "-1"}, {}),
        ("a negative size limit is none", [(9_999, 5)], {"retention.bytes": "-7"}, {}),
        ("no time at all", [(9_999, 5), (10_000, 5)], {"retention.ms": "0"}, {0: 10}),
        ("both policies expire too", [(1, 1)], {"retention.ms": "1", "cleanup.policy": "compact,delete"}, {0: 10}),
        ("an empty partition has nothing to lose", [], {"retention.ms": "0", "retention.bytes": "0"}, {}),
    ],
)
def test_what_expires(
    why: str, segments: list[tuple[int | None, int]], config: dict[str, str], starts: dict[int, int]
) -> None:
    plan = plan_expiry(state_of(*segments), TopicConfig.parse(config), NOW_MS)
    assert plan == Expiry("id-1", starts), why


@pytest.mark.parametrize(("records", "starts"), [(0, {0: 10}), (10, {0: 20})])
def test_an_empty_newest_segment_stays_and_goes_by_its_file_before(records: int, starts: dict[int, int]) -> None:
    old = [add(0, 0, 10, stats=stats_json(0, 0, 0, 0)), add(0, 10, 20, stats=stats_json(records, 9, 1, 1))]
    old = [replace(a, modification_ms=5_000) for a in old]
    state = apply_all(TopicState(), [created(partitions=1), entry(1, *old, end_txn(0, 20))])
    assert plan_expiry(state, TopicConfig.parse({"retention.ms": "4999"}), NOW_MS).starts == starts
    assert plan_expiry(state, TopicConfig.parse({"retention.ms": "5000"}), NOW_MS).starts == {}


@pytest.mark.parametrize(
    ("segments", "config", "kept"),
    [
        ([(99_000, 1), (1, 1)], {}, {0: 99_000}),
        ([(1, 1), (99_000, 1)], {}, {}),
        ([(99_000, 1)], {"retention.ms": "-1"}, {}),
        ([(99_000, 1)], {"cleanup.policy": "compact"}, {}),
        ([], {}, {}),
    ],
)
def test_a_timestamp_in_the_future_that_keeps_all_is_told(
    segments: list[tuple[int | None, int]], config: dict[str, str], kept: dict[int, int]
) -> None:
    assert kept_by_the_future(state_of(*segments), TopicConfig.parse(config), NOW_MS) == kept


def test_a_plan_carried_out_moves_the_start_once() -> None:
    lake, _, clock = memory_lake()
    lake.create_topic("t", partitions=1, config={"retention.ms": "1000"})
    topic = lake.topic("t")
    topic.append(values("old"))
    clock.pass_s(2)
    topic.append(values("young"))

    def expire() -> bool:
        plan = plan_expiry(topic.state(), topic.config(), clock.now_ms())
        door = lake.log("t").door
        now_ms = clock.now_ms()
        return door.commit(lambda state: decide_expiry(state, "t", plan, now_ms=now_ms)).written

    assert expire()
    assert lake.offsets("t") == {0: (1, 2)}
    assert read(lake, "t") == ["young"]
    assert not expire()


def test_a_plan_for_an_earlier_life_is_refused() -> None:
    with pytest.raises(TopicChangedError):
        decide_expiry(state_of((1, 1)), "t", Expiry("id-0", {0: 10}), now_ms=NOW_MS)
