"""Group commit when the store fails, is slow to answer, or answers nothing."""

from collections.abc import Callable

import pytest
from support.group_commits import answers, drive, engine, failing, lake_with, records, sent
from support.logs import Calls, CountingIds, quiet, read

from tidelog.log.base.errors import DeliveryTimeoutError, StorageFullError, StorageUnavailableError
from tidelog.log.group_commit.producer_sequences import Numbering


@pytest.mark.parametrize("producer", [None, 7], ids=["plain", "idempotent"])
@pytest.mark.parametrize(
    ("method", "phase"), [("put", "before"), ("put_if_absent", "before"), ("put_if_absent", "after")]
)
@pytest.mark.parametrize("times", [1, 60])
def test_a_store_that_fails_and_recovers(times: int, method: str, phase: str, producer: int | None) -> None:
    """60 times is more than one commit's retries."""
    lake, storage, clock = lake_with()
    requests = (sent(7, 0, "a"), sent(7, 1, "b")) if producer else (records("a"), records("b"))
    entry = engine(lake, clock).begin(*requests)
    storage.hook = failing(times, method, phase)
    drive(entry, clock)
    assert read(lake, "t") == ["a", "b"]
    found = answers(entry, *requests)
    # An idempotent producer may learn that its records landed without learning where.
    assert found == [[0], [1]] or (producer and found == [[-1], [-1]])


def late(entry: object) -> DeliveryTimeoutError:
    """The time-out of the entry's first unit."""
    error = entry.outcomes.errors[0]  # type: ignore[attr-defined]
    assert isinstance(error, DeliveryTimeoutError)
    return error


def test_a_unit_that_takes_too_long_is_given_up_and_the_others_go_on() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock).begin(records("a", timeout_s=5), records("b", timeout_s=60))
    storage.hook = failing(10**9, "put", "before")
    drive(entry, clock, until_unit=0)
    assert not late(entry).maybe_persisted
    assert 5 <= clock.elapsed_s() - 1000 <= 6
    storage.hook = quiet
    drive(entry, clock)
    assert read(lake, "t") == ["b"]


def test_a_late_unit_that_may_be_there_is_said_to_be() -> None:
    lake, storage, clock = lake_with()
    group = engine(lake, clock)
    entry = group.begin(sent(7, 0, "a", timeout_s=5), sent(8, 0, "b", timeout_s=500))
    storage.hook = failing(10**9, "put_if_absent", "after")
    drive(entry, clock, until_unit=0)
    assert late(entry).maybe_persisted
    storage.hook = quiet
    drive(entry, clock)
    assert list(entry.outcomes.errors) == [0]
    assert read(lake, "t") == ["a", "b"]
    again = sent(7, 0, "a")
    entry = group.begin(again)
    drive(entry, clock)
    assert answers(entry, again) == [[-1]]


@pytest.mark.parametrize(("phase", "epoch"), [("before", 0), ("after", 1)])
def test_a_producer_begins_a_new_epoch_when_its_records_may_be_there(phase: str, epoch: int) -> None:
    lake, storage, clock = lake_with()
    numbering = Numbering(CountingIds())
    entry = engine(lake, clock).begin(records("a", timeout_s=5, numbering=numbering))
    storage.hook = failing(10**9, "put" if phase == "before" else "put_if_absent", phase)
    drive(entry, clock)
    assert late(entry).maybe_persisted == bool(epoch)
    assert numbering.snapshot()[1:] == (epoch, {})


def test_records_without_sequences_that_may_be_there_are_not_put_under_another_id() -> None:
    """The first put is on its way for long, and lands at last: only its request's id tells that it was ours."""
    lake, storage, clock = lake_with(1)
    one = records("a", timeout_s=10_000)
    entry = engine(lake, clock).begin(one)
    on_their_way: list[tuple[str, bytes]] = []

    def unanswered(path: str, data: bytes, before: Callable[[], None] | None) -> bool:
        if before:
            before()
        on_their_way.append((path, data))
        raise StorageUnavailableError("no answer")

    with pytest.MonkeyPatch.context() as slow:
        slow.setattr(storage, "put_if_absent", unanswered)
        for _ in range(4):  # each round is a whole commit's retries
            clock.pass_s(entry.due_s())
            entry.advance()
    assert not entry.is_done
    assert storage.put_if_absent(*on_their_way[0])
    drive(entry, clock)
    assert answers(entry, one) == [[0]]
    assert read(lake, "t") == ["a"]


def test_a_full_disk_is_an_outcome_at_once() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock).begin(records("a"))
    storage.hook = failing(1, "put", "before", StorageFullError)
    entry.advance()
    assert entry.is_done
    assert isinstance(entry.outcomes.errors[0], StorageFullError)


def test_retries_are_counted() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock, most=2).begin(records("a"))
    calls = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            calls[0] += 1
            raise StorageUnavailableError("no")

    storage.hook = hook
    drive(entry, clock)
    assert isinstance(entry.outcomes.errors[0], StorageUnavailableError)
    assert calls == [3]


def test_the_pause_between_attempts_grows() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock, backoff_s=1.0, most_backoff_s=4.0).begin(records("a"))
    storage.hook = failing(10**9, "put", "before")
    pauses = []
    for _ in range(5):
        entry.advance()
        pauses.append(entry.due_s())
        clock.pass_s(pauses[-1])
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_before_its_time_nothing_is_tried() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock).begin(records("a"))
    storage.hook = failing(1, "put", "before")
    entry.advance()
    calls = storage.hook = Calls()
    entry.advance()
    assert calls.take() == []


def test_a_fault_in_the_program_is_the_outcome_of_all() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock).begin(records("a"), records("b"))
    storage.hook = failing(1, "put", "before", ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        entry.advance()
    assert [type(e) for e in entry.outcomes.errors.values()] == [ZeroDivisionError] * 2
    assert entry.is_done


def test_cancelling() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock).begin(records("a"))
    storage.hook = failing(1, "put", "before")
    entry.advance()
    entry.cancel(TimeoutError("enough"))
    assert (entry.is_done, entry.due_s()) == (False, 0)
    entry.advance()
    assert isinstance(entry.outcomes.errors[0], TimeoutError)
    assert (entry.is_done, read(lake, "t")) == (True, [])


def test_an_answer_is_not_waited_for_longer_than_the_records_have_time() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock).begin(records("a", timeout_s=3))
    storage.hook = failing(10**9, "put_if_absent", "before")
    began = clock.elapsed_s()
    drive(entry, clock)
    late(entry)
    assert clock.elapsed_s() - began < 6  # a commit's own retries take 30 s


def test_records_cancelled_while_they_are_staged_are_not_committed() -> None:
    lake, storage, clock = lake_with()
    entry = engine(lake, clock).begin(records("a"))

    def cancel(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "after"):
            entry.cancel(TimeoutError("enough"))

    storage.hook = cancel
    entry.advance()
    assert isinstance(entry.outcomes.errors[0], TimeoutError)
    assert (read(lake, "t"), list(storage.list_after("t/partition=0"))) == ([], [])
