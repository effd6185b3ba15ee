"""The ceiling on entries per second, with writers that keep it."""

import heapq
from functools import partialmethod

import pytest
from support.logs import FakeClock, memory_lake, values

from tidelog.log.door.rate_limit import BURST_ENTRIES, ENTRIES_PER_SECOND, LEVELLING, Throttle
from tidelog.transactions.transaction_log import TransactionLog

COMMIT_S = 0.001  # 1,000 entries a second each, left alone


def entries_by_writer(writers: int, seconds: float, apart_s: float, last_s: float) -> list[int]:
    """How many entries each of `writers`, of which one joins every `apart_s`, writes in the last of the `seconds`."""
    version, entries = 0, [0] * writers
    turns = [(i * apart_s, i, Throttle()) for i in range(writers)]
    heapq.heapify(turns)
    while turns[0][0] < seconds:
        now, i, one = heapq.heappop(turns)
        wait = one.wait_s(version, now)
        version += 1
        entries[i] += now + wait >= seconds - last_s
        heapq.heappush(turns, (now + wait + COMMIT_S, i, one))
    return entries


def entries_after(writers: int, seconds: float) -> int:
    """How many entries `writers` write to one log in `seconds`."""
    return sum(entries_by_writer(writers, seconds, COMMIT_S / writers, seconds))


@pytest.mark.parametrize("writers", [1, 2, 8])
@pytest.mark.parametrize("seconds", [30, 120])
def test_the_log_grows_by_the_ceiling_in_the_long_run(writers: int, seconds: int) -> None:
    ceiling = BURST_ENTRIES + ENTRIES_PER_SECOND * seconds
    entries = entries_after(writers, seconds)
    assert entries <= ceiling * (1.05 + LEVELLING)
    assert entries >= ENTRIES_PER_SECOND * seconds * 0.8


@pytest.mark.parametrize("apart_s", [2.0, 20.0])
@pytest.mark.parametrize("writers", [2, 8])
def test_writers_share_the_ceiling_whenever_they_came(writers: int, apart_s: float) -> None:
    entries = entries_by_writer(writers, 200, apart_s, last_s=20)
    assert min(entries) > 0.8 * max(entries)


def test_a_burst_goes_through_at_once() -> None:
    assert entries_after(1, 2.5) >= 2_400


def test_a_writer_below_the_ceiling_never_waits() -> None:
    throttle = Throttle()
    assert [throttle.wait_s(v, v / 90) for v in range(10_000)] == [0.0] * 10_000


def test_others_entries_count() -> None:
    """One that writes once a second backs off when another writer fills the log."""
    throttle = Throttle()
    waits = [throttle.wait_s(second * 2_000, float(second)) for second in range(10)]
    assert waits[0] == 0.0
    assert waits[-1] == 1.0


def test_nobody_waits_longer_than_a_second() -> None:
    throttle = Throttle()
    throttle.wait_s(0, 0.0)
    assert throttle.wait_s(1_000_000, 1.0) == 1.0


def test_a_rest_pays_the_debt_off() -> None:
    throttle = Throttle()
    throttle.wait_s(0, 0.0)
    throttle.wait_s(100_000, 1.0)
    assert throttle.wait_s(100_000, 5.0) == 0.0


# --- in use ------------------------------------------------------------------------------------------------


class Sleeps(FakeClock):
    """Remembers how long callers have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.slept_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        super().sleep(seconds)


@pytest.fixture
def no_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs whose writers may not save entries up."""
    monkeypatch.setattr(Throttle, "__init__", partialmethod(Throttle.__init__, burst=1.0))


ENTRIES = 200


@pytest.mark.usefixtures("no_burst")
def test_appends_keep_to_the_ceiling() -> None:
    clock = Sleeps()
    lake, _, _ = memory_lake(clock=clock)
    lake.create_topic("t", 1)
    for _ in range(ENTRIES):
        lake.topic("t").append(values("a"))
    assert clock.slept_s > 0.8 * ENTRIES / ENTRIES_PER_SECOND


@pytest.mark.usefixtures("no_burst")
def test_entries_of_a_table_of_rows_keep_to_the_ceiling() -> None:
    clock = Sleeps()
    lake, _, _ = memory_lake(clock=clock)
    log = TransactionLog(lake)
    for n in range(ENTRIES):
        log.init(f"x{n}", 60_000)
    assert clock.slept_s > 0.8 * ENTRIES / ENTRIES_PER_SECOND
