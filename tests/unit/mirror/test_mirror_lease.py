"""One mirror a follower: a lease that another one takes when its mirror is silent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest
from support.faults import FaultyStorage
from support.logs import FakeClock
from support.mirrored_lakes import Pair, empty_store

from tidelog.log.delta.layout import MIRROR_FOLDER
from tidelog.log.storage.port import Storage
from tidelog.mirror import lease as leases
from tidelog.mirror import round_journal
from tidelog.mirror.lease import LASTS_S, LEASES, FollowerLease, FollowerTakenError
from tidelog.mirror.promotion import promote
from tidelog.mirror.round_journal import JournalEntry


class Renewing(FakeClock):
    """A clock on which the holder of a lease renews it while another one sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed: FollowerLease | None = None
        self.until_s = float("inf")

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.renewed is not None and self.elapsed_s() < self.until_s:
            self.renewed._lease.renew()
        elif self.renewed is not None:
            self.renewed._release()


class Frozen(Renewing):
    """Such a clock, in whose first sleep both mirrors are frozen."""

    frozen_s = 2 * LASTS_S

    def sleep(self, seconds: float) -> None:
        if self.frozen_s:
            self.pass_s(self.frozen_s)
            self.frozen_s = 0.0
        else:
            super().sleep(seconds)


@contextmanager
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What happens here happens on another machine."""
    with monkeypatch.context() as patched:
        patched.setattr(leases, "_place", lambda: "another boot")
        yield


def held(storage: Storage) -> list[str]:
    return [info.path for info in storage.list_after(LEASES)]


def test_a_second_mirror_is_refused_while_the_first_one_renews() -> None:
    clock = Renewing()
    store = empty_store(clock)
    with FollowerLease(store, clock, "first") as first:
        clock.renewed = first
        with pytest.raises(FollowerTakenError, match=rf"process {os.getpid()} on .* To replace it, stop it first"):
            FollowerLease(store, clock, "second").__enter__()
        first.require()


def test_a_mirror_that_was_frozen_itself_watches_on() -> None:
    clock = Frozen()
    store = empty_store(clock)
    with FollowerLease(store, clock, "first") as first:
        clock.renewed = first
        with pytest.raises(FollowerTakenError, match="Another mirror writes to the follower"):
            FollowerLease(store, clock, "second").__enter__()
        first.require()


def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    clock = FakeClock()
    store = empty_store(clock)
    with FollowerLease(store, clock, "first"):
        pass
    before = clock.elapsed_s()
    with FollowerLease(store, clock, "second") as second:
        assert (second.number, clock.elapsed_s()) == (2, before)
        assert held(store) == [f"{LEASES}/0000000002"]


def test_a_silent_lease_is_taken_and_its_mirror_learns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    store = empty_store(clock)
    with elsewhere(monkeypatch):
        first = FollowerLease(store, clock, "first")
        first._take()
    before = clock.elapsed_s()
    with FollowerLease(store, clock, "second") as second:
        assert clock.elapsed_s() - before >= LASTS_S
        with pytest.raises(FollowerTakenError, match="Another mirror has taken the follower"):
            first.require()
        second.require()
        first.__exit__()  # gives back nothing that is not its own
        second.require()
        assert held(store) == [f"{LEASES}/0000000002"]


def test_a_mirror_that_was_frozen_before_it_took_a_lease_looks_again() -> None:
    """Meanwhile another one had the number that it takes, and a third one has the follower."""
    clock = FakeClock()
    inner = empty_store(clock)

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path.endswith("1"):
            inner.put(f"{LEASES}/0000000002", b'{"count": 1}')

    with FollowerLease(FaultyStorage(inner, hook), clock, "frozen") as lease:
        assert lease.number == 3
        assert held(inner) == [f"{LEASES}/0000000003"]


def test_a_lease_of_a_dead_process_of_this_machine_is_taken_at_once() -> None:
    clock = FakeClock()
    store = empty_store(clock)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    body = {"run": "dead", "host": "here", "process": child, "place": leases._place(), "count": 3, "released": False}
    store.put(f"{LEASES}/0000000007", orjson.dumps(body))
    before = clock.elapsed_s()
    with FollowerLease(store, clock, "next") as lease:
        assert (lease.number, clock.elapsed_s()) == (8, before)


def test_a_mirror_that_lost_its_lease_ships_no_decisions() -> None:
    pair = Pair()
    pair.lake().create_topic("orders", 1)
    with pair.mirror() as idle:
        lease = FollowerLease(pair.follower, pair.clock, idle.run_id)
        lease._take()
    with pair.mirror(lease=lease) as mirror:
        pair.follower.put(f"{LEASES}/0000000002", b"{}")
        with pytest.raises(FollowerTakenError):
            mirror.round()
    assert not [name for name in pair.follower.list_folders("") if name != MIRROR_FOLDER]


def test_journals_of_several_leases_are_finished_each() -> None:
    pair = Pair()
    store = pair.follower
    round_journal.begin(store, [JournalEntry("a", 0, b"1")], 1)
    round_journal.begin(store, [JournalEntry("b", 0, b"2")], 2)
    found = round_journal.finish(store, pair.copy(to_promote=True).ids)
    assert [entry.table for entry in found] == ["a", "b"]
    assert list(store.list_after(round_journal.JOURNALS)) == []


def test_a_promotion_waits_for_a_mirror_that_lives_and_for_no_dead_one() -> None:
    clock = Renewing()
    pair = Pair(empty_store(clock, "source"), clock)
    pair.lake().create_topic("orders", 1)
    pair.ship()
    with FollowerLease(pair.follower, clock, "alive") as alive:
        clock.renewed = alive
        clock.until_s = clock.elapsed_s() + 12 * LASTS_S
        done = promote(pair.copy(to_promote=True), None)
    assert done.took_ms >= 12 * LASTS_S * 1000
    assert pair.copy().follows() is None


def test_a_promotion_after_the_mirrors_death_on_this_machine_waits_for_nothing() -> None:
    pair = Pair()
    pair.lake().create_topic("orders", 1)
    pair.ship()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    body = {"run": "dead", "host": "here", "process": child, "place": leases._place(), "count": 3, "released": False}
    pair.follower.put(f"{LEASES}/0000000001", orjson.dumps(body))
    assert promote(pair.copy(to_promote=True), None).took_ms == 0
