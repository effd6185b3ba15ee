"""A lease is an object with a counter that its owner overwrites; what has a counter that stands still is silent."""

import json

import pytest

from tidelog.log.storage.leases import Lease, SilenceTimers
from tidelog.log.storage.memory import MemoryStorage

PATH = "_tidelog/leases/x"


def lease(**more: object) -> Lease:
    return Lease(MemoryStorage("m"), PATH, {"owner": "anna"}, **more)  # type: ignore[arg-type]


def test_a_lease_is_overwritten_seen_and_released() -> None:
    mine = lease()
    assert mine.seen() is None
    mine.renew()
    mine.renew()
    assert Lease(mine.storage, PATH).seen() == 2
    assert json.loads(mine.storage.get(PATH)) == {"owner": "anna", "counter": 2}
    mine.release()
    assert mine.seen() is None
    mine.release()  # and nothing is wrong when it is gone


def test_one_that_is_there_is_not_taken() -> None:
    mine = lease(counted_as="count")
    assert mine.take()
    assert json.loads(mine.storage.get(PATH)) == {"owner": "anna", "count": 0}
    assert not Lease(mine.storage, PATH, {"owner": "bert"}).take()
    assert (mine.seen(), json.loads(mine.storage.get(PATH))["owner"]) == (0, "anna")


def test_one_without_a_counter_says_the_same_each_time() -> None:
    mine = lease(counted_as=None)
    mine.renew()
    mine.renew()
    assert json.loads(mine.storage.get(PATH)) == {"owner": "anna"}
    assert mine.seen() is None


@pytest.mark.parametrize("torn", [b"", b'{"owner": "an', b"[]", b"7", b"{}", b'{"counter": null}', b"\xff\x00"])
def test_one_that_a_power_loss_has_torn_is_none(torn: bytes) -> None:
    mine = lease()
    mine.storage.put(PATH, torn)
    assert mine.seen() is None
    mine.renew()
    assert mine.seen() == 1


def test_silence_is_what_an_observer_itself_saw_pass() -> None:
    timers: SilenceTimers[int | None] = SilenceTimers()
    assert [timers.look("x", 5, 10.0, now_s) for now_s in (0.0, 4.0, 8.0)] == [False] * 3
    assert timers.due_s() == 10.0
    assert timers.look("x", 5, 10.0, 10.0)
    assert timers.silent() == {"x": 5}
    assert not timers.look("x", 6, 10.0, 11.0)  # it lives
    assert not timers.look("x", 6, 10.0, 30.0)  # the observer was frozen
    assert timers.silent() == {}
