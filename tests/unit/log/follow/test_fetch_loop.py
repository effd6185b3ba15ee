"""The fetch loop on a local disk: turns, limits, waits, what goes wrong, and what a fetch costs."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.faults import FaultyStorage
from support.logs import read_offsets, values
from support.rewrites import TAKE_RECORDS_AWAY, fill_rounds
from support.waiting import PATIENCE_S

from tidelog.log.base.errors import (
    CorruptSegmentError,
    OffsetOutOfRangeError,
    StorageUnavailableError,
    TidelogError,
    TopicChangedError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.follow import loop as follow_loop
from tidelog.log.follow.cursor import Cursor
from tidelog.log.follow.fetches import EndReached, Fetched, FetchEvent, FetchFailed, FetchLimits
from tidelog.log.follow.loop import FetchLoop, FetchSession
from tidelog.log.lake import Lake
from tidelog.log.storage import LocalStorage


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def loop(lake: Lake) -> Iterator[FetchLoop]:
    with FetchLoop(lake) as made:
        yield made


def fill(lake: Lake, topic: str, *texts: str, partition: int = 0) -> None:
    lake.topic(topic).append(values(*texts, partition=[partition] * len(texts)), acks=1)


def fetch(
    loop: FetchLoop,
    session: FetchSession,
    timeout_s: float = 5.0,
    stop: Callable[[], bool] | None = None,
    **limits: Any,
) -> list[FetchEvent]:
    """One answered fetch, read; [] when its time was over."""
    until = time.monotonic() + timeout_s
    session.ask(FetchLimits(**{"max_wait_s": timeout_s, **limits}))
    while time.monotonic() < until:
        for answered in loop.next(timeout_s):
            assert answered is session
            return list(session.read())
    return []


def told(events: list[FetchEvent]) -> list[tuple[str, int, Any]]:
    """(topic, partition, values, end or error class)."""
    return [
        (
            e.cursor.topic,
            e.cursor.partition,
            [v.decode() for v in e.records.column("value").to_pylist()]
            if isinstance(e, Fetched)
            else e.offset
            if isinstance(e, EndReached)
            else type(e.error),
        )
        for e in events
    ]


def errors(events: list[FetchEvent]) -> list[TidelogError]:
    return [e.error for e in events if isinstance(e, FetchFailed)]


class TestReading:
    def test_records_of_many_topics_from_the_offsets_asked_for(self, lake: Lake, loop: FetchLoop) -> None:
        for topic in ("a", "b"):
            lake.create_topic(topic, partitions=2)
            fill(lake, topic, f"{topic}0", f"{topic}1", f"{topic}2", partition=1)
        session = loop.session()
        session.put("a", 1, 0)
        session.put("b", 1, 2)
        session.put("b", 0, 0)
        assert sorted(told(fetch(loop, session))) == [("a", 1, ["a0", "a1", "a2"]), ("b", 1, ["b2"])]

    def test_what_is_appended_later_ends_the_wait(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        session = loop.session()
        session.put("t", 0, 0)
        threading.Timer(0.1, fill, (lake, "t", "new")).start()
        assert told(fetch(loop, session)) == [("t", 0, ["new"])]
        threading.Timer(0.1, fill, (lake, "t", "newer")).start()
        assert told(fetch(loop, session)) == [("t", 0, ["newer"])]

    def test_partitions_take_turns(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=3)
        session = loop.session()
        for partition in range(3):
            fill(lake, "t", *(f"{partition}.{i}" for i in range(4)), partition=partition)
            session.put("t", partition, 0)
        seen = []
        while len(seen) < 12:
            events = fetch(loop, session, partition_max_bytes=1)
            assert all(isinstance(e, Fetched) and e.records.num_rows == 1 for e in events)
            seen += [e.cursor.partition for e in events]
        assert seen == [0, 1, 2] * 4

    def test_a_fetch_that_is_full_goes_on_with_the_next_partition(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=3)
        session = loop.session()
        for partition in range(3):
            fill(lake, "t", "x", "y", partition=partition)
            session.put("t", partition, 0)
        answers = [told(fetch(loop, session, max_bytes=1)) for _ in range(3)]
        assert answers == [[("t", p, ["x", "y"])] for p in range(3)]

    def test_more_partitions_than_may_be_open_are_all_served(
        self, lake: Lake, loop: FetchLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(follow_loop, "MOST_OPEN", 2)
        monkeypatch.setattr(follow_loop, "TURN_BYTES", 1)
        lake.create_topic("t", partitions=5)
        session = loop.session()
        for partition in range(5):
            fill(lake, "t", "x", "y", "z", partition=partition)
            session.put("t", partition, 0)
        seen: list[int] = []
        while len(seen) < 15:
            seen += [e.cursor.partition for e in fetch(loop, session, partition_max_bytes=1)]
            assert sum(c.is_open for c in session._turns) <= 2
        assert sorted(seen[:5]) == [0, 1, 2, 3, 4]

    def test_large_segments_are_cut_and_not_read_again(self, lake: Lake, loop: FetchLoop, tmp_path: Path) -> None:
        lake.create_topic("t", partitions=1)
        lake.topic("t").append(pa.table({"value": [bytes([i % 251]) * 1000 for i in range(20_000)]}))
        opened: list[str] = []

        def hook(method: str, path: str, phase: str) -> None:
            if path.endswith(".parquet") and phase == "before":
                opened.append(method)

        faulty = FaultyStorage(LocalStorage(tmp_path), hook)
        with Lake(str(tmp_path), storage=faulty) as view, FetchLoop(view) as other:
            session = other.session()
            session.put("t", 0, 0)
            offsets: list[int] = []
            while len(offsets) < 20_000:
                (event,) = fetch(other, session, partition_max_bytes=1_000_000)
                assert isinstance(event, Fetched)
                assert event.records.nbytes <= 1_000_000
                offsets += event.records.column("offset").to_pylist()
        assert offsets == list(range(20_000))
        assert len(opened) == 1

    def test_headers_are_handed_out_where_asked_for(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        lake.topic("t").append(pa.table({"value": [b"v"], "headers": [[{"key": "h", "value": b"1"}]]}))
        session = loop.session(headers=True)
        session.put("t", 0, 0)
        (event,) = fetch(loop, session)
        assert isinstance(event, Fetched)
        assert event.records.column("headers").to_pylist() == [[{"key": "h", "value": b"1"}]]


class TestPlaces:
    def test_a_partition_put_elsewhere_goes_on_there(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "a", "b", "c")
        session = loop.session()
        first = session.put("t", 0, 0)
        fetch(loop, session)
        second = session.put("t", 0, 1)
        assert [session.holds(first), session.holds(second)] == [False, True]
        assert told(fetch(loop, session)) == [("t", 0, ["b", "c"])]

    def test_a_removed_partition_is_silent(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=2)
        fill(lake, "t", "a", partition=0)
        fill(lake, "t", "b", partition=1)
        session = loop.session()
        cursor = session.put("t", 0, 0)
        session.put("t", 1, 0)
        session.remove("t", 0)
        assert not session.holds(cursor)
        assert told(fetch(loop, session)) == [("t", 1, ["b"])]
        session.close()
        fill(lake, "t", "c", partition=1)
        assert fetch(loop, session, 0.1) == []

    def test_ends_are_told_once_each(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        session = loop.session(ends=True)
        session.put("t", 0, 0)
        assert told(fetch(loop, session)) == [("t", 0, 0)]
        fill(lake, "t", "a")
        events: list[Any] = []
        while len(events) < 2:
            events += told(fetch(loop, session))
        assert events == [("t", 0, ["a"]), ("t", 0, 1)]
        assert fetch(loop, session, 0.1) == []


class TestWaits:
    def test_a_fetch_waits_for_min_bytes(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=2)
        fill(lake, "t", "a")
        session = loop.session()
        session.put("t", 0, 0)
        session.put("t", 1, 0)
        size = lake.topic("t").state().live(0)[0].size
        threading.Timer(0.15, fill, (lake, "t", "b"), {"partition": 1}).start()
        assert len(told(fetch(loop, session, PATIENCE_S, min_bytes=size + 1))) == 2

    def test_and_takes_what_is_there_when_its_time_is_over(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "a")
        session = loop.session()
        session.put("t", 0, 0)
        began = time.monotonic()
        assert told(fetch(loop, session, PATIENCE_S, min_bytes=10**9, max_wait_s=0.2)) == [("t", 0, ["a"])]
        assert time.monotonic() - began > 0.15

    def test_many_waiting_fetches_are_answered_by_one_thread(self, lake: Lake, loop: FetchLoop) -> None:
        topics = [f"t{i}" for i in range(20)]
        sessions: dict[FetchSession, str] = {}
        for topic in topics:
            lake.create_topic(topic, partitions=1)
            for _ in range(10):
                session = loop.session()
                session.put(topic, 0, 0)
                session.ask(FetchLimits(max_wait_s=10 * PATIENCE_S))
                sessions[session] = topic
        loop.next(0.2)
        fill(lake, "t7", "x")
        answered: list[Any] = []
        while len(answered) < 10 and (some := loop.next(PATIENCE_S)):
            answered += [told(list(one.read())) for one in some]
        assert answered == [[("t7", 0, ["x"])]] * 10
        assert loop.next(0.05) == []

    def test_another_thread_may_submit_and_wake(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "a")
        session = loop.session()

        def later() -> None:
            session.put("t", 0, 0)
            session.ask(FetchLimits())

        threading.Timer(0.1, later).start()
        (answered,) = loop.next(PATIENCE_S)
        assert told(list(answered.read())) == [("t", 0, ["a"])]
        threading.Timer(0.1, loop.wake).start()
        assert loop.next() == []


class TestThreads:
    def test_what_a_reader_shares_with_the_loop_is_changed_under_its_lock(
        self, lake: Lake, loop: FetchLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A partition that fails while another thread is in `next` would else be tried again late, or break it."""
        lake.create_topic("t", partitions=2)
        fill(lake, "t", "a")
        session = loop.session()
        guarded = 0

        def under_lock(method: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **more: Any) -> Any:
                nonlocal guarded
                guarded += 1
                assert session._lock.locked(), method
                return method(*args, **more)

            return call

        class Turns(deque[Cursor]):
            append = under_lock(deque.append)
            popleft = under_lock(deque.popleft)

        session._turns, session._waiting = Turns(), Turns()
        for name in ("failed", "log_changed", "wants_turn"):
            monkeypatch.setattr(Cursor, name, under_lock(getattr(Cursor, name)))
        session.put("t", 0, 0)
        session.put("t", 1, 5)
        assert told(fetch(loop, session)) == [("t", 0, ["a"]), ("t", 1, OffsetOutOfRangeError)]
        assert guarded > 8

    def test_readers_of_many_sessions_and_the_loop_work_side_by_side(self, lake: Lake, loop: FetchLoop) -> None:
        """As a server has them: partitions that come, go, and fail, while other threads read."""
        lake.create_topic("t", partitions=4)
        for partition in range(4):
            fill(lake, "t", *"abc", partition=partition)
        sessions = [loop.session() for _ in range(20)]
        for number, session in enumerate(sessions):
            for partition in range(6):  # two of them are not there
                session.put("t", partition, number % 3)
            session.ask(FetchLimits(retry_s=0.0001))
        read: dict[FetchSession, int] = dict.fromkeys(sessions, 0)

        def serve(session: FetchSession) -> None:
            events = list(session.read())
            read[session] += sum(e.records.num_rows for e in events if isinstance(e, Fetched))
            session.ask(FetchLimits(retry_s=0.0001))

        until = time.monotonic() + 20
        with ThreadPoolExecutor(4) as readers:
            while list(read.values()) != [4 * (3 - number % 3) for number in range(20)]:
                assert time.monotonic() < until, read
                for serving in [readers.submit(serve, session) for session in loop.next(1)]:
                    serving.result()


class TestWhatGoesWrong:
    def test_an_offset_out_of_range_is_told_once_and_the_others_go_on(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=3)
        for partition in range(3):
            fill(lake, "t", "a", "b", partition=partition)
        lake.delete_records("t", {1: 1})
        session = loop.session()
        for partition, offset in enumerate((0, 0, 3)):
            session.put("t", partition, offset)
        found = OffsetOutOfRangeError
        assert told(fetch(loop, session)) == [("t", 0, ["a", "b"]), ("t", 1, found), ("t", 2, found)]
        fill(lake, "t", "c", partition=1)
        assert fetch(loop, session, 0.1) == []
        session.put("t", 1, 1)
        assert told(fetch(loop, session)) == [("t", 1, ["b"])]

    def test_a_topic_that_is_not_there_may_come(self, lake: Lake, loop: FetchLoop) -> None:
        session = loop.session()
        session.put("t", 0, 0)
        assert told(fetch(loop, session, retry_s=3600)) == [("t", 0, UnknownTopicError)]
        assert fetch(loop, session, 0.1) == []
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "a")
        (event,) = fetch(loop, session)
        assert told([event]) == [("t", 0, ["a"])]
        assert not event.cursor.is_open  # no file is kept open at the end of a partition

    def test_a_partition_that_is_not_there_may_come(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        session = loop.session()
        session.put("t", 1, 0)
        assert told(fetch(loop, session)) == [("t", 1, UnknownPartitionError)]
        lake.alter_topic("t", partitions=2)
        fill(lake, "t", "a", partition=1)
        assert told(fetch(loop, session)) == [("t", 1, ["a"])]

    def test_a_topic_deleted_and_created_again_is_another(self, lake: Lake, loop: FetchLoop) -> None:
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "old")
        session = loop.session()
        session.put("t", 0, 0)
        fetch(loop, session)
        lake.delete_topic("t")
        assert told(fetch(loop, session)) == [("t", 0, UnknownTopicError)]
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "new", "newer")
        assert told(fetch(loop, session)) == [("t", 0, TopicChangedError)]
        session.put("t", 0, 0)
        assert told(fetch(loop, session)) == [("t", 0, ["new", "newer"])]

    def test_a_segment_that_is_lost_is_told_at_each_try(self, lake: Lake, loop: FetchLoop, tmp_path: Path) -> None:
        """No waiting ends it: silence would look like the end of the partition."""
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "a")
        (tmp_path / "t" / lake.topic("t").state().live(0)[0].path).unlink()
        session = loop.session()
        session.put("t", 0, 0)
        for _ in range(3):
            assert told(fetch(loop, session, retry_s=0.01)) == [("t", 0, CorruptSegmentError)]

    def test_a_segment_that_is_lost_is_named_and_tried_again(self, lake: Lake, loop: FetchLoop, tmp_path: Path) -> None:
        lake.create_topic("t", partitions=2)
        fill(lake, "t", "a")
        fill(lake, "t", "b", partition=1)
        path = tmp_path / "t" / lake.topic("t").state().live(0)[0].path
        os.rename(path, tmp_path / "kept")
        session = loop.session()
        session.put("t", 0, 0)
        session.put("t", 1, 0)
        events = fetch(loop, session, retry_s=0.05)
        assert told(events) == [("t", 0, CorruptSegmentError), ("t", 1, ["b"])]
        assert path.name in str(errors(events)[0])
        os.rename(tmp_path / "kept", path)
        assert told(fetch(loop, session)) == [("t", 0, ["a"])]

    def test_a_store_that_fails_for_a_while(self, tmp_path: Path, lake: Lake) -> None:
        lake.create_topic("t", partitions=1)
        fill(lake, "t", "a")
        down = True

        def hook(method: str, path: str, phase: str) -> None:
            if down and path.startswith("t/") and phase == "before":
                raise StorageUnavailableError("down")

        with (
            Lake(str(tmp_path), storage=FaultyStorage(LocalStorage(tmp_path), hook)) as view,
            FetchLoop(view) as other,
        ):
            session = other.session()
            session.put("t", 0, 0)
            assert told(fetch(other, session)) == [("t", 0, StorageUnavailableError)]
            assert fetch(other, session, 0.1) == []
            down = False
            assert told(fetch(other, session)) == [("t", 0, ["a"])]


def test_an_idle_loop_neither_lists_nor_looks_often(tmp_path: Path, lake: Lake) -> None:
    for topic in ("a", "b"):
        lake.create_topic(topic, partitions=4)
    calls: list[str] = []
    faulty = FaultyStorage(LocalStorage(tmp_path), lambda m, p, phase: calls.append(m) if phase == "before" else None)
    with Lake(str(tmp_path), storage=faulty) as view, FetchLoop(view) as loop:
        session = loop.session()
        for topic in ("a", "b"):
            for partition in range(4):
                session.put(topic, partition, 0)
        loop.next(0.2)
        calls.clear()
        assert fetch(loop, session, 1.0) == []
    assert set(calls) <= {"get"}
    assert len(calls) < 40


@pytest.mark.parametrize("kind", TAKE_RECORDS_AWAY)
def test_what_is_open_is_read_again_once_it_is_rewritten(lake: Lake, loop: FetchLoop, kind: str) -> None:
    fill_rounds(lake)
    session = loop.session()
    session.put("t", 0, 0)
    (first,) = fetch(loop, session, partition_max_bytes=1)
    assert isinstance(first, Fetched)
    assert (first.next_offset, first.cursor.is_open) == (1, True)
    loop.take_rewritten()
    TAKE_RECORDS_AWAY[kind](lake, "t")
    loop._look("t")
    assert loop.take_rewritten()
    assert not loop.take_rewritten()
    left = [one for one in read_offsets(lake, "t") if one[0] >= 1]
    if first.cursor.problem() is not None:  # the log start has passed it
        session.put("t", 0, lake.topic("t").state().start(0))
    found: list[tuple[int, str]] = []
    while len(found) < len(left):
        for event in fetch(loop, session, partition_max_bytes=1):
            assert isinstance(event, Fetched)
            assert event.version >= lake.topic("t").state().rewrites.version
            found += [(row["offset"], row["value"].decode()) for row in event.records.to_pylist()]
    assert found == left
