"""Staged segments that are committed again after success: their records are there once, wherever repeats come from."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, put_checkpoint, read, read_offsets, stage, values
from support.rewrites import merge

from tidelog.log.base.errors import DuplicateSegmentError, RequestForgottenError
from tidelog.log.delta.actions import Txn
from tidelog.log.delta.layout import PURGE_TXN, entry_path
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Marker
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import Staged
from tidelog.log.upkeep.trim import trim
from tidelog.sinks import commits
from tidelog.sinks.options import parse_batch

MIN_AGE_MS = 10_000
Process = Callable[[Lake, FaultyStorage, FakeClock], Lake]


def committed(**config: str) -> tuple[Lake, FaultyStorage, FakeClock, list[Staged]]:
    """A topic of two partitions, where request `mine` has put a, b and c behind one record, and others came since."""
    lake, storage, clock = memory_lake()
    names = {k.replace("_", "."): v for k, v in config.items()}
    lake.create_topic("t", 2, {"log.min.age.ms": str(MIN_AGE_MS), **names})
    topic = lake.topic("t")
    topic.append(values("before", partition=[0]))
    staged = stage(topic, "a", "b", "c", partition=[0, 0, 1])
    assert topic.commit(staged, request_id="mine") == ANSWER
    topic.append(values("after", partition=[0]))
    return lake, storage, clock, staged


ANSWER = {0: (1, 3), 1: (0, 1)}
ALL = ["before", "a", "b", "after"]


def the_same_handle(lake: Lake, storage: FaultyStorage, clock: FakeClock) -> Lake:
    return lake


def another_process(lake: Lake, storage: FaultyStorage, clock: FakeClock) -> Lake:
    return open_lake(storage.inner, clock)


def a_process_that_starts_from_a_checkpoint(lake: Lake, storage: FaultyStorage, clock: FakeClock) -> Lake:
    put_checkpoint(storage.inner, "t", lake.topic("t").state().version)
    return open_lake(storage.inner, clock)


PROCESSES = [the_same_handle, another_process, a_process_that_starts_from_a_checkpoint]


def age(lake: Lake, clock: FakeClock) -> None:
    """Entries that make all before them old, and a checkpoint that a trim can rest on."""
    put_checkpoint(lake.storage, "t", lake.topic("t").state().version)
    for _ in range(11):
        clock.pass_s(MIN_AGE_MS / 1000)
        lake.commit("t", lambda state: Outcome((Txn("ages", state.version),), None))
    trim(lake.storage, "t", MIN_AGE_MS)


# --- while the topic holds the segments --------------------------------------------------------------------


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("request_id", ["mine", "another", None])
def test_a_repeat_changes_nothing_and_gets_the_first_answer(process: Process, request_id: str | None) -> None:
    lake, storage, clock, staged = committed()
    again = process(lake, storage, clock)
    head = again.topic("t").state().version
    for _ in range(2):
        assert again.topic("t").commit(staged, request_id=request_id) == ANSWER
    assert again.topic("t").state().version == head
    assert (read(again, "t", 0), read(again, "t", 1)) == (ALL, ["c"])


@pytest.mark.parametrize("process", PROCESSES)
def test_what_was_acknowledged_stays_where_it_was_over_the_next_checkpoint(process: Process) -> None:
    lake, storage, clock, staged = committed()
    process(lake, storage, clock).topic("t").commit(staged, request_id="mine")
    put_checkpoint(storage.inner, "t", lake.topic("t").state().version)
    fresh = open_lake(storage.inner, clock)
    assert read_offsets(fresh, "t") == read_offsets(lake, "t") == list(enumerate(ALL))
    assert list(fresh.topic("t").known.all_segments()) == list(lake.topic("t").known.all_segments())


def test_a_part_of_it_is_where_it_was() -> None:
    lake, _, _, (first, second) = committed()
    assert lake.topic("t").commit([second]) == {1: (0, 1)}
    assert lake.topic("t").commit([first], request_id="mine") == {0: (1, 3)}


@pytest.mark.parametrize("process", PROCESSES)
def test_with_others_than_before_it_is_refused(process: Process) -> None:
    lake, storage, clock, staged = committed()
    topic = process(lake, storage, clock).topic("t")
    new = stage(topic, "new", partition=[1])
    with pytest.raises(DuplicateSegmentError, match=r"in partition 0 already, at offsets \[1, 3\)"):
        topic.commit([*new, *staged])
    with pytest.raises(DuplicateSegmentError, match="given twice"):
        topic.commit([*new, *new])
    assert topic.commit(new) == {1: (1, 2)}
    with pytest.raises(DuplicateSegmentError):  # not a commit of both: another's records are in between
        topic.commit([staged[1], *new, *stage(topic, "third", partition=[1])])


def test_commits_of_two_requests_are_no_answer_to_both_at_once() -> None:
    lake, _, _, _ = committed()
    topic = lake.topic("t")
    one, two = stage(topic, "one", partition=[1]), stage(topic, "two", partition=[1])
    topic.commit(one)
    topic.append(values("between", partition=[1]))
    topic.commit(two)
    with pytest.raises(DuplicateSegmentError):
        topic.commit([*one, *two])


def test_a_repeat_with_its_marker_gets_the_first_answer_too() -> None:
    lake, _, _, _ = committed()
    topic, marker = lake.topic("t"), Marker("q", 7, strict=True)
    staged = stage(topic, "m", partition=[1])
    assert topic.commit(staged, marker=marker) == topic.commit(staged, marker=marker) == {1: (1, 2)}
    assert topic.commit(stage(topic, "m", partition=[1]), marker=marker) == {}


def test_a_batch_of_spark_that_is_committed_again_keeps_its_files() -> None:
    lake, storage, clock, _ = committed()
    staged = {"t": stage(lake.topic("t"), "batch", partition=[1])}
    options = parse_batch({"lake": lake.uri, "topic": "t", "requestId": "batch"}, None)
    for process in (lake, lake, open_lake(storage.inner, clock)):
        commits.commit_batch(process, [staged], options)
        assert read(process, "t", 1) == ["c", "batch"]


# --- records that are written again on the way -------------------------------------------------------------


@pytest.mark.parametrize("process", PROCESSES)
def test_records_that_got_a_later_time_are_known_by_what_was_staged_first(process: Process) -> None:
    """Under LogAppendTime the commit writes them again, since a writer with a later clock came before."""
    lake, storage, clock, _ = committed(message_timestamp_type="LogAppendTime")
    topic = lake.topic("t")
    staged = stage(topic, "early", partition=[1])
    clock.pass_s(5)
    topic.append(values("late", partition=[1]))
    assert topic.commit(staged, request_id="early") == {1: (2, 3)}
    assert topic.state().live(1)[-1].path != staged[0].path
    assert process(lake, storage, clock).topic("t").commit(staged, request_id="early") == {1: (2, 3)}
    assert read(lake, "t", 1) == ["c", "late", "early"]


@pytest.mark.parametrize("process", PROCESSES)
def test_records_that_a_purge_might_have_taken_are_known_by_what_was_staged_first(process: Process) -> None:
    lake, storage, clock, _ = committed()
    staged = stage(lake.topic("t"), "slow", partition=[1])
    lake.commit("t", lambda state: Outcome((Txn(PURGE_TXN, state.version + 1),), None))
    assert lake.topic("t").commit(staged, request_id="slow") == {1: (1, 2)}
    assert process(lake, storage, clock).topic("t").commit(staged, request_id="slow") == {1: (1, 2)}
    assert read(lake, "t", 1) == ["c", "slow"]


def test_what_is_written_again_is_synced_although_what_was_staged_first_was() -> None:
    lake, storage, clock, _ = committed(message_timestamp_type="LogAppendTime")
    topic = lake.topic("t")
    staged = stage(topic, "early", partition=[1])
    storage.sync([f"t/{segment.path}" for segment in staged])
    clock.pass_s(5)
    topic.append(values("late", partition=[1]))
    assert topic.commit(staged, synced=True) == {1: (2, 3)}
    storage.inner.lose_power()  # type: ignore[attr-defined]
    assert read(open_lake(storage, clock), "t", 1) == ["c", "late", "early"]


# --- when the topic holds them no more ---------------------------------------------------------------------


@pytest.mark.parametrize("process", PROCESSES)
def test_after_a_merge_the_kept_log_tells(process: Process) -> None:
    lake, storage, clock, staged = committed()
    merge(lake, "t")
    again = process(lake, storage, clock).topic("t")
    head = again.state().version
    assert again.commit(staged, request_id="mine") == ANSWER
    assert again.commit(stage(again, "d"), request_id="mine") != ANSWER  # staged since: this is no repeat
    assert again.state().version == head + 1
    assert read(lake, "t", 0)[: len(ALL)] == ALL


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("purged", [False, True])
def test_when_the_log_has_forgotten_it_says_so_and_appends_nothing(process: Process, purged: bool) -> None:
    lake, storage, clock, staged = committed()
    merge(lake, "t", 0)
    merge(lake, "t", 1)
    age(lake, clock)
    if purged:
        lake.commit("t", lambda state: Outcome((Txn(PURGE_TXN, state.version),), None))
        for one in staged:
            storage.delete(f"t/{one.path}")
    again = process(lake, storage, clock)
    with pytest.raises(RequestForgottenError, match=r"request mine .* is unknown now.*stage them again"):
        again.topic("t").commit(staged, request_id="mine")
    assert (read(again, "t", 0), read(again, "t", 1)) == (ALL, ["c"])
    assert again.topic("t").commit(stage(again.topic("t"), "d", partition=[1]), request_id="anew") == {1: (1, 2)}


def test_without_a_name_a_part_that_is_still_there_tells() -> None:
    lake, _, _, staged = committed()
    merge(lake, "t", 0)
    with pytest.raises(DuplicateSegmentError):
        lake.topic("t").commit(staged)


# --- requests that are no repeats --------------------------------------------------------------------------


@pytest.mark.parametrize("process", PROCESSES)
def test_a_slow_request_is_committed_although_others_merge_meanwhile(process: Process) -> None:
    lake, storage, clock, _ = committed()
    staged = stage(lake.topic("t"), "slow", partition=[1])
    merge(lake, "t")
    again = process(lake, storage, clock).topic("t")
    assert again.commit(staged, request_id="slow") == {1: (1, 2)}
    assert again.commit(staged, request_id="slow") == {1: (1, 2)}
    assert read(lake, "t", 1) == ["c", "slow"]


def test_a_request_whose_files_are_younger_than_the_kept_log_is_no_repeat() -> None:
    """A long job: it opened its files long ago, and has just finished the last one."""
    lake, storage, clock, _ = committed()
    topic = lake.topic("t")
    opened = topic.state().version
    merge(lake, "t")
    age(lake, clock)
    clock.pass_s(1)
    staged = [replace(s, known_version=opened) for s in stage(topic, "long", partition=[1])]
    assert open_lake(storage.inner, clock).topic("t").commit(staged, request_id="long") == {1: (1, 2)}


def test_a_repeat_is_looked_for_once_and_only_where_segments_left() -> None:
    lake, storage, _, _ = committed()
    topic = lake.topic("t")
    reads: list[str] = []
    storage.hook = lambda method, path, phase: (method, phase) == ("get", "before") and reads.append(path)
    topic.commit(stage(topic, "x", partition=[1]), request_id="x")
    assert reads == []
    staged = stage(topic, "y", partition=[1])
    merge(lake, "t")
    merged = f"t/{entry_path(topic.known.version)}"
    reads.clear()
    topic.commit(staged, request_id="y")
    assert reads.count(merged) == 1
    assert set(reads) == {merged, f"t/{entry_path(topic.known.version)}"}  # and a look at the head
