"""Appends now and then: each batch lands once, whatever answers are lost, and not every error is waited out."""

from collections.abc import Callable
from typing import Any

import pytest
from support.faults import FaultyStorage
from support.group_commits import failing
from support.logs import FakeClock, memory_lake, open_lake, quiet, read, values
from support.rewrites import age, merge

from tidelog.log.appends.appender import RETRIES, Appender
from tidelog.log.base.errors import (
    InvalidRecordError,
    OutcomeUnknownError,
    RequestForgottenError,
    StorageFullError,
    StorageUnavailableError,
    TopicChangedError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake

# More puts than one commit makes before it gives up, and than a call of an appender makes in all.
SOME, ALL = 60, 10**9


def made() -> tuple[Lake, FaultyStorage, FakeClock]:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1)
    return lake, storage, clock


@pytest.mark.parametrize(
    ("times", "method", "phase"),
    [(2, "put", "before"), (SOME, "put_if_absent", "before"), (SOME, "put_if_absent", "after")],
)
def test_a_batch_lands_once_past_a_store_without_answers(times: int, method: str, phase: str) -> None:
    lake, storage, _ = made()
    storage.hook = failing(times, method, phase)
    assert lake.appender("t").append(values("a", "b")) == {0: (0, 2)}
    assert read(lake, "t") == ["a", "b"]


def no_answer(storage: FaultyStorage, phase: str) -> None:
    storage.hook = failing(ALL, "put_if_absent", phase)


def no_answer_and_then_nothing_to_read(storage: FaultyStorage, phase: str) -> None:
    """The entry's put has no answer, and then the log can't be read."""
    put = failing(ALL, "put_if_absent", phase)
    lost: list[str] = []

    def hook(method: str, path: str, at: str) -> None:
        if method == "put_if_absent" and at == phase:
            lost.append(path)
        put(method, path, at)
        if lost and method == "get":
            raise StorageUnavailableError("nothing is read")

    storage.hook = hook


@pytest.mark.parametrize(("fail", "retries"), [(no_answer, 0), (no_answer_and_then_nothing_to_read, 2)])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_batch_that_is_given_up_in_doubt_goes_on_where_it_was(
    fail: Callable[[FaultyStorage, str], None], retries: int, phase: str
) -> None:
    lake, storage, clock = made()
    batch = lake.appender("t", retries=retries).begin(values("a"))
    fail(storage, phase)
    with pytest.raises(OutcomeUnknownError):
        batch.run()
    storage.hook = quiet
    open_lake(storage, clock).topic("t").append(values("later"))
    ranges = batch.run()
    assert sorted(read(lake, "t")) == ["a", "later"]
    assert read(lake, "t", start=ranges[0][0], end=ranges[0][1]) == ["a"]
    assert batch.run() == ranges
    assert len(read(lake, "t")) == 2


def test_what_a_merge_has_taken_out_of_the_topic_is_found_in_the_log() -> None:
    lake, storage, clock = made()
    batch = lake.appender("t", retries=0).begin(values("a"))
    no_answer(storage, "after")
    with pytest.raises(OutcomeUnknownError):
        batch.run()
    storage.hook = quiet
    other = open_lake(storage, clock)
    other.topic("t").append(values("later"))
    merge(other, "t")
    assert batch.run() == {0: (0, 1)}
    assert read(lake, "t") == ["a", "later"]


def test_a_batch_of_which_the_log_no_longer_tells_is_given_up() -> None:
    lake, storage, clock = made()
    batch = lake.appender("t").begin(values("a"))
    no_answer_and_then_nothing_to_read(storage, "after")
    with pytest.raises(OutcomeUnknownError):
        batch.run()
    storage.hook = quiet
    other = open_lake(storage, clock)
    other.topic("t").append(values("later"))
    merge(other, "t")
    age(other, clock)
    began_s = clock.elapsed_s()
    with pytest.raises(RequestForgottenError):
        batch.run()
    assert clock.elapsed_s() == began_s
    assert read(lake, "t") == ["a", "later"]


def test_a_call_tries_again_a_few_times_with_pauses() -> None:
    lake, storage, clock = made()
    puts = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            puts[0] += 1
            raise StorageUnavailableError("no")

    storage.hook = hook
    began_s = clock.elapsed_s()
    with pytest.raises(StorageUnavailableError):
        lake.appender("t").append(values("a"))
    assert puts[0] == RETRIES + 1
    assert 0.3 < clock.elapsed_s() - began_s < 3


@pytest.mark.parametrize(
    ("records", "error"), [(values("a"), StorageFullError), ([{"value": "a", "when": 1}], InvalidRecordError)]
)
def test_what_no_other_try_can_mend_is_raised_at_once(records: Any, error: type[Exception]) -> None:
    lake, storage, clock = made()
    storage.hook = failing(ALL, "put", "before", StorageFullError)
    began_s = clock.elapsed_s()
    with pytest.raises(error):
        lake.appender("t").append(records)
    assert clock.elapsed_s() == began_s
    storage.hook = quiet
    assert read(lake, "t") == []


def test_the_topic_is_made_by_the_first_batch_where_that_is_allowed() -> None:
    lake, _, _ = memory_lake()
    assert lake.appender("made").append(values("a")) == {0: (0, 1)}
    lake.alter_config({"auto.create.topics.enable": "false"})
    with pytest.raises(UnknownTopicError):
        lake.appender("other").append(values("a"))


@pytest.mark.parametrize("in_doubt", [False, True])
def test_a_topic_that_was_made_again_gets_the_batch(*, in_doubt: bool) -> None:
    lake, storage, clock = made()
    appender = lake.appender("t", retries=0)
    appender.append(values("before"))
    batch = appender.begin(values("a"))
    if in_doubt:
        no_answer(storage, "after")
        with pytest.raises(OutcomeUnknownError):
            batch.run()
        storage.hook = quiet
    other = open_lake(storage, clock)
    other.delete_topic("t")
    other.create_topic("t", 1)
    assert batch.run() == {0: (0, 1)}
    assert read(lake, "t") == ["a"]


def test_batches_in_doubt_go_on_whichever_of_them_finds_that_the_topic_was_made_again() -> None:
    lake, storage, clock = made()
    appender = lake.appender("t", retries=0)
    batches = [appender.begin(values(text)) for text in "ab"]
    no_answer(storage, "after")
    for batch in batches:
        with pytest.raises(OutcomeUnknownError):
            batch.run()
    storage.hook = quiet
    other = open_lake(storage, clock)
    other.delete_topic("t")
    other.create_topic("t", 1)
    assert [batch.run() for batch in batches] == [{0: (0, 1)}, {0: (1, 2)}]
    assert read(lake, "t") == ["a", "b"]


def test_an_appender_of_one_topic_id_refuses_the_next_one() -> None:
    lake, _, _ = made()
    topic = lake.topic("t")
    appender = Appender("t", lambda: topic, lake.clock, lake.ids)
    lake.delete_topic("t")
    lake.create_topic("t", 1)
    with pytest.raises(TopicChangedError):
        appender.append(values("a"))
    assert read(lake, "t") == []


def test_records_without_a_key_go_round_the_partitions() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic("t", 3)
    appender = lake.appender("t")
    for _ in range(3):
        appender.append(values("a"))
    assert [len(read(lake, "t", p)) for p in range(3)] == [1, 1, 1]
