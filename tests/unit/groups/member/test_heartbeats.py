"""Leases, and the clocks that observers keep on them."""

import json
from dataclasses import replace

import pytest
from support.group_scripts import member

from tidelog.groups.member.heartbeats import HeartbeatTimers, Leases, RebalanceTimer, lease_path
from tidelog.log.storage.memory import MemoryStorage

ANNA = member("anna")  # a session of 10 s


def test_a_members_lease_says_whose_it_is() -> None:
    storage = MemoryStorage("m")
    leases = Leases(storage)
    leases.of_member("g", "anna").renew()
    assert leases.counter("g", "anna") == 1
    assert leases.counter("h", "anna") is None
    assert json.loads(storage.get(lease_path("g", "anna"))) == {"group": "g", "member": "anna", "counter": 1}


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "é\n", "x" * 249, "\ud800"])
def test_any_id_has_a_lease_of_its_own(name: str) -> None:
    leases = Leases(MemoryStorage("m"))
    for other, beats in ((name, 1), (f"{name}2", 2)):
        lease = leases.of_member(name, other)
        for _ in range(beats):
            lease.renew()
    assert (leases.counter(name, name), leases.counter(name, f"{name}2")) == (1, 2)


# Looks at a member of a session of 10 s: (at second, counter), and for how long it was silent in the end.
SILENCES = {
    "seen once": ([(0, 1)], 0),
    "the same counter counts": ([(0, 1), (3, 1), (6, 1)], 6),
    "another counter begins again": ([(0, 1), (3, 1), (6, 2), (7, 2)], 1),
    "a lower one too": ([(0, 5), (3, 5), (6, 4), (8, 4)], 2),
    "no lease at all is silence": ([(0, None), (5, None), (10, None)], 10),
    "half a session between looks still counts": ([(0, 1), (5, 1), (10, 1)], 10),
    "more than that does not": ([(0, 1), (5, 1), (10.1, 1)], 0),
    "and the clock goes on from there": ([(0, 1), (5, 1), (10.1, 1), (14.1, 1)], 4),
}


@pytest.mark.parametrize("name", SILENCES)
def test_only_time_spent_watching_counts(name: str) -> None:
    looks, silent_s = SILENCES[name]
    clocks = HeartbeatTimers()
    for at_s, counter in looks:
        clocks.look(ANNA, counter, at_s)
    due_s = clocks.due_s()
    assert due_s is not None
    assert due_s - looks[-1][0] == pytest.approx(10 - silent_s)
    assert clocks.silent() == ({"anna": 0} if silent_s >= 10 else {})


def test_who_joins_again_begins_again() -> None:
    clocks = HeartbeatTimers()
    for at_s in (0, 5):
        clocks.look(ANNA, 1, at_s)
    clocks.look(replace(ANNA, turn=7), 1, 9)
    clocks.look(replace(ANNA, turn=7), 1, 12)
    assert clocks.silent() == {}
    for at_s in (16, 19):
        clocks.look(replace(ANNA, turn=7), 1, at_s)
    assert clocks.silent() == {"anna": 7}


def test_who_is_not_watched_for_a_while_begins_again() -> None:
    clocks = HeartbeatTimers()
    for at_s in (0, 5, 9):
        clocks.look(ANNA, 1, at_s)
    clocks.keep([])
    assert clocks.due_s() is None
    clocks.look(ANNA, 1, 10)
    assert clocks.silent() == {}


def test_patience_is_for_one_thing_and_has_no_gaps() -> None:
    clock = RebalanceTimer(gap_s=2)
    waits = [
        clock.look(key, at_s) for key, at_s in [("x", 0), ("x", 2), ("x", 3), ("x", 6), ("x", 7), ("y", 8), ("y", 9)]
    ]
    assert waits == [0, 2, 3, 0, 1, 0, 1]
