"""The fetch loop with helpers: they decode ahead, and no caller notices."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.logs import values

from tidelog.log.base.errors import CorruptSegmentError
from tidelog.log.follow import cursor
from tidelog.log.follow.fetches import Fetched, FetchEvent, FetchFailed, FetchLimits
from tidelog.log.follow.loop import FetchLoop, FetchSession
from tidelog.log.lake import Lake

PARTITIONS = 3


class Helpers(ThreadPoolExecutor):
    """Two threads, and what they were given."""

    def __init__(self) -> None:
        super().__init__(2)
        self.begun: list[Future[Any]] = []

    def submit(self, *work: Any, **more: Any) -> Future[Any]:
        self.begun.append(super().submit(*work, **more))
        return self.begun[-1]


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Helpers]:
    monkeypatch.setattr(cursor, "_WORTH_HELP_BYTES", 1)
    with Helpers() as made:
        yield made


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A topic `t` of three partitions, with three segments of four records each."""
    with Lake(str(tmp_path)) as opened:
        opened.create_topic("t", partitions=PARTITIONS)
        for first in range(0, 12, 4):
            for partition in range(PARTITIONS):
                texts = [f"{partition}.{n}" for n in range(first, first + 4)]
                opened.topic("t").append(values(*texts, partition=[partition] * 4), acks=1)
        yield opened


def session_of(loop: FetchLoop) -> FetchSession:
    session = loop.session()
    for partition in range(PARTITIONS):
        session.put("t", partition, 0)
    return session


def fetch(loop: FetchLoop, session: FetchSession, **limits: Any) -> list[FetchEvent]:
    session.ask(FetchLimits(**{"max_wait_s": 0.1, **limits}))
    return [event for answered in loop.next(5.0) for event in answered.read()]


def texts(events: list[FetchEvent], partition: int) -> list[str]:
    found = [e for e in events if isinstance(e, Fetched) and e.cursor.partition == partition]
    return [v.decode() for e in found for v in e.records.column("value").to_pylist()]


@pytest.mark.parametrize("most_bytes", [1, 200, 1_000_000])
def test_the_same_records_in_the_same_turns(lake: Lake, helpers: Helpers, most_bytes: int) -> None:
    seen = []
    for who in (None, helpers):
        with FetchLoop(lake, helpers=who) as loop:
            session = session_of(loop)
            events: list[Fetched] = []
            while sum(e.records.num_rows for e in events) < 12 * PARTITIONS:
                found = fetch(loop, session, partition_max_bytes=most_bytes)
                events += [e for e in found if isinstance(e, Fetched)]
            seen.append([(e.cursor.partition, e.records.to_pydict(), e.next_offset) for e in events])
    assert seen[0] == seen[1]
    assert len(helpers.begun) >= PARTITIONS


def test_little_is_decoded_without_them(lake: Lake, helpers: Helpers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "_WORTH_HELP_BYTES", 1_000_000)
    with FetchLoop(lake, helpers=helpers) as loop:
        session = session_of(loop)
        assert len(fetch(loop, session)) == PARTITIONS
    assert not helpers.begun


def test_what_they_meet_is_told_in_its_place(lake: Lake, helpers: Helpers, tmp_path: Path) -> None:
    (tmp_path / "t" / lake.topic("t").state().live(1)[1].path).unlink()
    with FetchLoop(lake, helpers=helpers) as loop:
        session = session_of(loop)
        events = [e for _ in range(4) for e in fetch(loop, session)]
    assert texts(events, 1) == ["1.0", "1.1", "1.2", "1.3"]
    (failed,) = [e for e in events if isinstance(e, FetchFailed)]
    assert (failed.cursor.partition, failed.offset, type(failed.error)) == (1, 4, CorruptSegmentError)
    assert texts(events, 0) == [f"0.{n}" for n in range(12)]


def test_a_partition_that_was_put_elsewhere_goes_on_from_there(lake: Lake, helpers: Helpers) -> None:
    with FetchLoop(lake, helpers=helpers) as loop:
        session = session_of(loop)
        fetch(loop, session, max_bytes=1)  # and the others are decoded from their beginning
        session.put("t", 1, 9)
        session.remove("t", 2)
        events = [e for _ in range(5) for e in fetch(loop, session)]
        assert texts(events, 1) == ["1.9", "1.10", "1.11"]
        assert texts(events, 2) == []


def test_helpers_that_are_gone_are_not_needed(lake: Lake, helpers: Helpers) -> None:
    helpers.shutdown()
    with FetchLoop(lake, helpers=helpers) as loop:
        session = session_of(loop)
        events = [e for _ in range(3) for e in fetch(loop, session)]
        assert texts(events, 0) == [f"0.{n}" for n in range(12)]


def test_so_few_are_decoded_ahead_of_their_turns(lake: Lake, helpers: Helpers) -> None:
    lake.create_topic("wide", partitions=12)
    for partition in range(12):
        lake.topic("wide").append(values("x", "y", partition=[partition] * 2), acks=1)
    with FetchLoop(lake, helpers=helpers) as loop:
        session = loop.session()
        for partition in range(12):
            session.put("wide", partition, 0)
        (event,) = fetch(loop, session, max_bytes=1)
        assert event.cursor.partition == 0
        assert 1 <= len(helpers.begun) <= 6


class LateHelpers(Helpers):
    """They begin when it is known that something is coming from them."""

    def submit(self, work: Any, *args: Any, **more: Any) -> Future[Any]:
        def begin() -> Any:
            time.sleep(0.005)
            return work(*args, **more)

        return super().submit(begin)


def test_a_helper_that_comes_to_the_end_of_its_plan_goes_on_with_what_was_appended_since(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for no other thread, least of all for itself."""
    monkeypatch.setattr(cursor, "_WORTH_HELP_BYTES", 1)
    read: dict[int, list[str]] = {partition: [] for partition in range(PARTITIONS)}

    def follow() -> None:
        with LateHelpers() as late, FetchLoop(lake, helpers=late) as loop:
            session = session_of(loop)
            for end in range(12, 40, 4):
                while min(map(len, read.values())) < end - 2:  # what comes now is not in the plan that is being read
                    events = fetch(loop, session, max_bytes=1, partition_max_bytes=1)
                    for partition, found in read.items():
                        found += texts(events, partition)
                for partition in read:
                    more = [f"{partition}.{n}" for n in range(end, end + 4)]
                    lake.topic("t").append(values(*more, partition=[partition] * 4), acks=1)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert {partition: found[:34] for partition, found in read.items()} == {
        partition: [f"{partition}.{n}" for n in range(34)] for partition in read
    }
