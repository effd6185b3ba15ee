"""A client whose wall clock is wrong: the store's time judges its records, as a broker's would."""

from dataclasses import dataclass

import pytest
from support.faults import FaultyStorage
from support.logs import START_MS, FakeClock, open_lake, quiet, stage, values

from tidelog.log.base.errors import InvalidTimestampError
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.log.storage.store_time import LEARN_EVERY_S
from tidelog.retention.maintenance import RETAIN, maintain

HOUR_MS = 3_600_000


@dataclass
class Off(FakeClock):
    """A wall clock that is off from all others; no time passes but theirs."""

    true: FakeClock
    by_ms: int

    def now_ms(self) -> int:
        return self.true.now_ms() + self.by_ms

    def elapsed_s(self) -> float:
        return self.true.elapsed_s()

    def sleep(self, seconds: float) -> None:
        self.true.sleep(seconds)


def client(by_ms: int, **config: str) -> tuple[Lake, Lake, FakeClock]:
    """A lake as a client with a wrong clock sees it, and as all others do."""
    true = FakeClock()
    storage = FaultyStorage(MemoryStorage(f"wrong-{by_ms}", true), quiet, shared=True)
    right = open_lake(storage, true)
    right.create_topic("t", 1, {k.replace("_", "."): v for k, v in config.items()})
    wrong = Lake(storage.uri, storage=storage, clock=Off(true, by_ms), ids=right.ids)
    return wrong, right, true


def times(lake: Lake) -> list[int]:
    found = [t for b in lake.topic("t").read(0) for t in b.column("timestamp").cast("int64").to_pylist()]
    return [t // 1000 for t in found]


@pytest.mark.parametrize("minutes", [-59, -2, 2, 59])
def test_log_append_time_is_the_stores(minutes: int) -> None:
    wrong, right, true = client(minutes * 60_000, message_timestamp_type="LogAppendTime")
    for lake in (right, wrong, right, wrong):
        true.pass_s(10)
        lake.topic("t").append(values("a"))
    found = times(right)
    assert found == sorted(found)
    assert all(abs(t - (START_MS + 10_000 * (i + 1))) <= 1_000 for i, t in enumerate(found))


@pytest.mark.parametrize("minutes", [-59, 59])
def test_timestamps_are_judged_by_the_stores_time(minutes: int) -> None:
    wrong, right, true = client(minutes * 60_000)
    latest = true.now_ms() + HOUR_MS
    with pytest.raises(InvalidTimestampError, match=r"message\.timestamp\.after\.max\.ms"):
        wrong.topic("t").append(values("a", timestamp=[latest + 2_000]))
    wrong.topic("t").append(values("a", timestamp=[latest - 2_000]))
    assert times(right) == [latest - 2_000]


@pytest.mark.parametrize("config", [{}, {"message_timestamp_type": "LogAppendTime"}])
@pytest.mark.parametrize(("by_ms", "way"), [(-HOUR_MS - 2_000, "behind"), (10 * 8_760 * HOUR_MS, "ahead of")])
def test_a_clock_that_is_an_hour_off_is_refused_with_that_reason(by_ms: int, way: str, config: dict[str, str]) -> None:
    wrong, right, _ = client(by_ms, **config)
    with pytest.raises(InvalidTimestampError, match=rf"clock is [0-9]+ s {way} the store's.*Set the clock"):
        wrong.topic("t").append(values("a"))
    assert times(right) == []


def test_a_clock_that_is_set_right_is_believed_at_once() -> None:
    wrong, right, _ = client(10 * HOUR_MS)
    with pytest.raises(InvalidTimestampError):
        wrong.topic("t").append(values("a"))
    wrong.clock.by_ms = 0
    wrong.topic("t").append(values("b"))
    assert times(right) == [START_MS]


def test_a_clock_that_goes_wrong_later_is_found_out() -> None:
    wrong, _, true = client(0)
    wrong.topic("t").append(values("a"))
    wrong.clock.by_ms = 2 * HOUR_MS
    with pytest.raises(InvalidTimestampError):
        wrong.topic("t").append(values("b"))
    wrong.clock.by_ms = 0
    true.pass_s(LEARN_EVERY_S + 1)
    wrong.topic("t").append(values("c"))


def test_modification_times_are_the_stores_too() -> None:
    """What a wrong clock wrote there, no clock would ever fall below again."""
    wrong, right, true = client(59 * 60_000)
    wrong.topic("t").commit(stage(wrong.topic("t"), "a"))
    (segment,) = right.topic("t").state().live(0)
    assert abs(segment.modification_ms - true.now_ms()) <= 1_000


def test_what_was_let_in_before_expires_by_its_files_time_in_the_store() -> None:
    """Ten years ahead: by its timestamp it would stay for ten years, and all that follows with it."""
    _, right, true = client(0, retention_ms="60000", message_timestamp_after_max_ms=str(2**62))
    future_ms = true.now_ms() + 10 * 8_760 * HOUR_MS
    right.topic("t").append(values("let in", timestamp=[future_ms]))
    right.alter_topic("t", config={"message.timestamp.after.max.ms": None})
    right.topic("t").append(values("next"))
    true.pass_s(30)
    maintain(right, only=[RETAIN])
    assert right.offsets("t") == {0: (0, 2)}
    true.pass_s(60)
    report = maintain(right, only=[RETAIN])
    assert not list(report.failures())
    assert right.offsets("t") == {0: (2, 2)}


def test_a_future_that_the_topic_allows_is_kept() -> None:
    _, right, true = client(0, retention_ms="60000")
    right.topic("t").append(values("soon", timestamp=[true.now_ms() + HOUR_MS]))
    true.pass_s(120)
    maintain(right, only=[RETAIN])
    assert right.offsets("t") == {0: (0, 1)}
