"""Lost segments are given up: their offsets become a hole, and nothing else changes, while producers go on."""

import pytest
from support.corruptible_lakes import CorruptibleLake
from support.logs import memory_lake, open_lake, read_offsets, values

from tidelog.check.lake import check_lake
from tidelog.log.base.errors import CorruptSegmentError, StorageUnavailableError
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import Segment
from tidelog.retention.lost_segments import LOOKS_AGAIN_AFTER_S, give_up


@pytest.fixture
def lake() -> Lake:
    """Partition 0 of topic t: three segments of two records."""
    lake, _, _ = memory_lake()
    lake.create_topic("t", partitions=1)
    for pair in (("a", "b"), ("c", "d"), ("e", "f")):
        lake.topic("t").append(values(*pair))
    return lake


def segments(lake: Lake) -> list[Segment]:
    return list(lake.topic("t").state().live(0))


ALL = [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e"), (5, "f")]


@pytest.mark.parametrize("number", range(3))
def test_what_is_missing_becomes_a_hole(lake: Lake, number: int) -> None:
    lost = segments(lake)[number]
    lake.storage.delete(f"t/{lost.path}")
    (given,) = give_up(lake, "t", [lost.path], execute=True)
    assert (given.path, given.base_offset, given.end, given.records, given.done) == (
        *(lost.path, lost.base_offset, lost.end),
        *(2, True),
    )
    assert "is missing" in given.why
    left = [pair for pair in ALL if pair[0] // 2 != number]
    assert read_offsets(lake, "t") == left
    assert lake.topic("t").offsets() == {0: (0, 6)}
    assert check_lake(lake, deep=True).green
    lake.topic("t").append(values("g"))
    assert read_offsets(open_lake(lake.storage, lake.clock), "t") == [*left, (6, "g")]  # type: ignore[arg-type]


def test_a_segment_that_can_be_read_is_not_given_up(lake: Lake) -> None:
    assert give_up(lake, "t", [s.path for s in segments(lake)], execute=True) == []
    assert read_offsets(lake, "t") == ALL


def test_in_a_shared_store_a_segment_is_lost_when_it_is_missing_twice(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that has just come back misses for some seconds what others have."""
    lost = segments(lake)[1]
    data = lake.storage.get(f"t/{lost.path}")
    lake.storage.delete(f"t/{lost.path}")
    monkeypatch.setattr(type(lake.storage), "is_shared", True)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        lake.storage.put(f"t/{lost.path}", data)

    lake.clock.sleep = sleep  # type: ignore[method-assign]
    assert give_up(lake, "t", [lost.path], execute=True) == []
    assert (slept, read_offsets(lake, "t")) == ([LOOKS_AGAIN_AFTER_S], ALL)


def test_nothing_is_written_unless_it_is_asked_for(lake: Lake) -> None:
    lost = segments(lake)[1]
    lake.storage.delete(f"t/{lost.path}")
    before = lake.topic("t").state().version
    assert [given.done for given in give_up(lake, "t", [lost.path], execute=False)] == [False]
    assert lake.topic("t").state().version == before
    with pytest.raises(CorruptSegmentError):
        read_offsets(lake, "t")


def test_a_store_that_does_not_answer_has_lost_nothing(lake: Lake) -> None:
    lost = segments(lake)[1]

    def silent(method: str, path: str, phase: str) -> None:
        if method in {"open", "get", "head"} and path.endswith(".parquet"):
            raise StorageUnavailableError("no answer")

    lake.storage.hook = silent  # type: ignore[attr-defined]
    with pytest.raises(StorageUnavailableError):
        give_up(lake, "t", [lost.path], execute=True)
    lake.storage.hook = lambda *call: None  # type: ignore[attr-defined]
    assert read_offsets(lake, "t") == ALL


def test_what_was_rewritten_meanwhile_is_left_alone(lake: Lake) -> None:
    lost = segments(lake)[1]
    lake.storage.delete(f"t/{lost.path}")
    other = open_lake(lake.storage, lake.clock)  # type: ignore[arg-type]

    def faster(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before") or (method, phase) == ("create", "before"):
            lake.storage.hook = lambda *call: None  # type: ignore[attr-defined]
            other.delete_records("t", {0: 4})

    lake.storage.hook = faster  # type: ignore[attr-defined]
    assert [given.done for given in give_up(lake, "t", [lost.path], execute=True)] == [False]
    assert read_offsets(lake, "t") == ALL[4:]


def test_killed_anywhere_it_is_finished_by_the_next() -> None:
    """Also by a loss of power: what takes a segment's place is durable before the entry that says so."""
    calls = 0
    while True:
        corruptible = CorruptibleLake()
        lost = corruptible.segment(0, 1).path
        corruptible.delete(lost)
        corruptible.storage.sync(
            [f"orders/{corruptible.segment().path}"]
        )  # its folder, so that no power loss brings it back
        left = [calls]

        def crash(method: str, path: str, phase: str) -> None:
            left[0] -= 1  # noqa: B023
            if left[0] < 0:  # noqa: B023
                raise KeyboardInterrupt

        corruptible.storage.hook = crash
        try:
            give_up(corruptible.reopened(), "orders", [lost], execute=True)
        except KeyboardInterrupt:
            crashed = True
        else:
            crashed = False
        corruptible.storage.hook = lambda *call: None
        corruptible.storage.inner.lose_power()  # type: ignore[attr-defined]
        give_up(corruptible.reopened(), "orders", [lost], execute=True)
        assert read_offsets(corruptible.reopened(), "orders") == [(0, "a"), (1, "b"), (4, "a"), (5, "b")]
        assert corruptible.check(deep=True).green
        if not crashed:
            return
        calls += 1


def test_append_times_never_fall_behind_the_newest_segment_that_was_lost() -> None:
    corruptible = CorruptibleLake(3, message_timestamp_type="LogAppendTime")
    newest = corruptible.segment(0, 2)
    corruptible.delete(newest.path)
    give_up(corruptible.reopened(), "orders", [newest.path], execute=True)
    assert corruptible.reopened().topic("orders").state().last_timestamp_ms(0) == newest.stats.max_timestamp_ms
