"""Group commit when the store fails, is slow to answer, or answers nothing."""

from collections.abc import Callable

import pytest
from support.group_commits import drive, engine, failing, lake_with, records, sent
from support.logs import Calls, quiet, read

from tidelog.log.base.errors import (
    DeliveryTimeoutError,
    StorageFullError,
    StorageUnavailableError,
)
from tidelog.log.group_commit.engine import REPEATED


@pytest.mark.parametrize("producer", [None, 7], ids=["plain", "idempotent"])
@pytest.mark.parametrize(
    ("method", "phase"), [("put", "before"), ("put_if_absent", "before"), ("put_if_absent", "after")]
)
@pytest.mark.parametrize("times", [1, 60])
def test_a_store_that_fails_and_recovers(times: int, method: str, phase: str, producer: int | None) -> None:
    """60 times is more than one commit's patience."""
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    first = group.submit(sent(7, 0, "a") if producer else records("a"))
    later = group.submit(sent(7, 1, "b") if producer else records("b"))
    storage.hook = failing(times, method, phase)
    drive(group, clock, first)
    drive(group, clock, later)
    assert read(lake, "t") == ["a", "b"]
    ranges = [f.result(0).ranges[0] for f in (first, later)]
    # An idempotent producer may learn that it landed without learning where.
    assert ranges == [(0, 1), (1, 2)] or (producer and ranges == [REPEATED, REPEATED])


def test_order_is_kept_through_failures() -> None:
    lake, storage, clock = lake_with(1)
    group = engine(lake, clock, entry_bytes=1)
    futures = [group.submit(sent(7, i, str(i))) for i in range(6)]
    storage.hook = failing(45, "put_if_absent", "before")
    for future in futures:
        drive(group, clock, future)
    assert read(lake, "t") == [str(i) for i in range(6)]


def test_what_takes_too_long_is_given_up() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    short, long = group.submit(records("a", timeout_s=5)), group.submit(records("b", timeout_s=60))
    storage.hook = failing(10**9, "put", "before")
    drive(group, clock, short)
    error = short.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.maybe_persisted
    assert 5 <= clock.elapsed_s() - 1000 <= 6
    storage.hook = quiet
    drive(group, clock, long)
    assert read(lake, "t") == ["b"]


def test_what_may_be_there_is_said_to_be() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    short, long = group.submit(sent(7, 0, "a", timeout_s=5)), group.submit(sent(8, 0, "b", timeout_s=500))
    storage.hook = failing(10**9, "put_if_absent", "after")
    drive(group, clock, short)
    error = short.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert error.maybe_persisted
    storage.hook = quiet
    drive(group, clock, long)
    assert read(lake, "t") == ["a", "b"]
    again = group.submit(sent(7, 0, "a"))
    drive(group, clock, again)
    assert again.result(0).ranges == {0: REPEATED}


def test_records_without_sequences_that_may_be_there_are_not_put_under_another_id() -> None:
    """The first put is on its way for long, and lands at last: only its request's id tells that it was ours."""
    lake, storage, clock = lake_with(1)
    group = engine(lake, clock)
    future = group.submit(records("a", timeout_s=10_000))
    on_their_way: list[tuple[str, bytes]] = []

    def unanswered(path: str, data: bytes, before: Callable[[], None] | None) -> bool:
        if before:
            before()
        on_their_way.append((path, data))
        raise StorageUnavailableError("no answer")

    with pytest.MonkeyPatch.context() as slow:
        slow.setattr(storage, "put_if_absent", unanswered)
        for _ in range(4):  # each round is a whole commit's patience
            clock.pass_s(group.due_s() or 0)
            group.run_once()
    assert not future.done()
    assert storage.put_if_absent(*on_their_way[0])
    drive(group, clock, future)
    assert future.result(0).ranges == {0: (0, 1)}
    assert read(lake, "t") == ["a"]


def test_a_full_disk_is_told_at_once() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    future = group.submit(records("a"))
    storage.hook = failing(1, "put", "before", StorageFullError)
    group.run_once()
    assert isinstance(future.exception(0), StorageFullError)
    assert group.due_s() is None


def test_retries_are_counted() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock, retries=2)
    future = group.submit(records("a"))
    calls = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            calls[0] += 1
            raise StorageUnavailableError("no")

    storage.hook = hook
    drive(group, clock, future)
    assert isinstance(future.exception(0), StorageUnavailableError)
    assert calls == [3]


def test_the_pause_between_attempts_grows() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock, backoff_s=1.0, most_backoff_s=4.0)
    group.submit(records("a"))
    storage.hook = failing(10**9, "put", "before")
    pauses = []
    for _ in range(5):
        group.run_once()
        pauses.append(group.due_s())
        clock.pass_s(pauses[-1] or 0)
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_before_its_time_nothing_is_tried() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    group.submit(records("a"))
    storage.hook = failing(1, "put", "before")
    group.run_once()
    calls = storage.hook = Calls()
    group.run_once()
    assert calls.take() == []


def test_a_fault_in_the_program_is_told_to_all_who_wait() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    futures = [group.submit(records("a")), group.submit(records("b"))]
    storage.hook = failing(1, "put", "before", ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        group.run_once()
    assert [type(f.exception(0)) for f in futures] == [ZeroDivisionError] * 2
    assert group.due_s() is None


def test_cancelling() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock, entry_bytes=1)
    on_its_way, queued = group.submit(records("a")), group.submit(records("b"))
    storage.hook = failing(1, "put", "before")
    group.run_once()
    group.cancel(TimeoutError("enough"))
    assert isinstance(queued.exception(0), TimeoutError)
    assert not on_its_way.done()
    group.cancel(TimeoutError("enough"), in_flight=True)
    assert isinstance(on_its_way.exception(0), TimeoutError)
    clock.pass_s(5)
    group.run_once()
    assert (group.due_s(), read(lake, "t")) == (None, [])


def test_an_answer_is_not_waited_for_longer_than_the_records_have_time() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    future = group.submit(records("a", timeout_s=3))
    storage.hook = failing(10**9, "put_if_absent", "before")
    began = clock.elapsed_s()
    drive(group, clock, future)
    assert isinstance(future.exception(0), DeliveryTimeoutError)
    assert clock.elapsed_s() - began < 6  # a commit's own patience is 30 s


def test_what_is_cancelled_while_it_is_staged_is_not_committed() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    future = group.submit(records("a"))

    def cancel(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "after"):
            group.cancel(TimeoutError("enough"), in_flight=True)

    storage.hook = cancel
    group.run_once()
    assert isinstance(future.exception(0), TimeoutError)
    assert (read(lake, "t"), list(storage.list_after("t/partition=0"))) == ([], [])
