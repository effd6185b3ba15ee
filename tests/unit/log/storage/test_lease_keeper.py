"""One keeper for all leases of a process: what hangs or fails holds up no other, and all of it ends."""

import logging
import os
import threading
from collections.abc import Iterator

import pytest
from support.logs import FakeClock
from support.waiting import PATIENCE_S, eventually

from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.storage.lease_keeper import KeptLease, LeaseKeeper, process_keeper

LOGGER = "tidelog.log.storage.lease_keeper"
SOON_S = 0.001


class Renewals:
    """Counts renewals; each waits while it is `held`, and raises `error`."""

    def __init__(self) -> None:
        self.count = 0
        self.error: Exception | None = None
        self._goes_on = threading.Event()
        self._goes_on.set()

    def __call__(self) -> None:
        self.count += 1
        self._goes_on.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error

    def hold(self) -> None:
        self._goes_on.clear()

    def go_on(self) -> None:
        self._goes_on.set()


@pytest.fixture
def keeper() -> Iterator[LeaseKeeper]:
    made = LeaseKeeper(SystemClock())
    yield made
    for kept in list(made._kept):
        kept.stop()


def test_a_store_that_hangs_holds_up_its_own_lease_alone(keeper, caplog):
    hanging, other = Renewals(), Renewals()
    hanging.hold()
    with caplog.at_level(logging.WARNING, LOGGER):
        kept = keeper.keep("the lease that hangs", hanging, SOON_S)
        keeper.keep("another lease", other, SOON_S)
        eventually(lambda: other.count >= 20, "the other one is renewed")
    assert hanging.count == 1
    said = {line.getMessage().partition(" has taken ")[0] for line in caplog.records}
    assert said == {"Renewing the lease that hangs"}
    hanging.go_on()
    eventually(lambda: hanging.count >= 3, "it is renewed again")
    kept.stop()


def test_what_fails_is_logged_and_tried_again(keeper, caplog):
    failing, other = Renewals(), Renewals()
    failing.error = StorageUnavailableError("the store is away")
    with caplog.at_level(logging.WARNING, LOGGER):
        keeper.keep("the lease", failing, SOON_S)
        keeper.keep("another lease", other, SOON_S)
        eventually(lambda: min(failing.count, other.count) >= 5, "both are tried again")
    assert caplog.records[0].getMessage() == "Renewing the lease failed, and goes on: the store is away"
    assert caplog.records[1].getMessage().startswith("Renewing the lease failed 2 times")


def test_what_is_stopped_has_no_renewal_under_way(keeper):
    renewals = Renewals()
    renewals.hold()
    kept = keeper.keep("a lease", renewals, SOON_S)
    eventually(lambda: renewals.count == 1, "a renewal has begun")
    stopping = threading.Thread(target=kept.stop, daemon=True)
    stopping.start()
    eventually(lambda: not keeper._kept, "it is not kept any more")
    assert stopping.is_alive()
    renewals.go_on()
    stopping.join()
    assert renewals.count == 1


def test_a_keeper_without_leases_has_no_thread_and_begins_again(keeper):
    for _ in range(2):
        renewals = Renewals()
        kept = keeper.keep("a lease", renewals, SOON_S)
        eventually(lambda counted=renewals: counted.count >= 2, "it is renewed")
        kept.stop()
        eventually(lambda: not keeper._waits, "the thread has ended")


def test_renewals_keep_their_distance_and_make_up_for_no_frozen_time():
    clock = FakeClock()
    kept = KeptLease(LeaseKeeper(clock), "a lease", Renewals(), 10.0)
    assert kept.due_s == clock.seconds + 10
    assert kept.begin(clock.seconds + 10)
    assert kept.due_s == clock.seconds + 20
    kept.is_under_way = False
    assert kept.begin(clock.seconds + 100)
    assert kept.due_s == clock.seconds + 110


def test_one_that_is_under_way_is_not_begun_again_and_the_log_says_so_now_and_then(caplog):
    clock = FakeClock()
    kept = KeptLease(LeaseKeeper(clock), "a lease", Renewals(), 10.0)
    with caplog.at_level(logging.WARNING, LOGGER):
        assert [kept.begin(clock.seconds + s) for s in (10, 20, 30, 40, 50)] == [True, False, False, False, False]
    said = [line.getMessage() for line in caplog.records]
    assert said == [f"Renewing a lease has taken {s} s so far: the store does not answer." for s in (10, 20, 40)]


def test_a_forked_process_has_a_keeper_of_its_own():
    keeper, renewals = process_keeper(), Renewals()
    assert process_keeper() is keeper
    kept = keeper.keep("a lease", renewals, 3600.0)
    child = os.fork()
    if not child:
        own = process_keeper()
        kept.stop()
        os._exit(0 if own is not keeper and not own._kept else 1)
    assert os.waitpid(child, 0)[1] == 0
    kept.stop()
