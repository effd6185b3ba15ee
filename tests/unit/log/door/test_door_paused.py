"""A machine that is paused by its hypervisor: no clock runs inside it, while others go on and trim the log.

A writer on it can't know that it was away. Cleanup may have passed the place of what it puts then, and no reader sees
it.
"""

from dataclasses import dataclass

import pytest
from support.faults import FaultyStorage
from support.logs import Calls, FakeClock, memory_lake, open_lake, put_checkpoint, quiet, read_offsets, stage, values

from tidelog.log.base.errors import OutcomeUnknownError, StorageUnavailableError
from tidelog.log.door.commit_loop import FLOORS_EVERY_S
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.log.upkeep.trim import trim

MIN_AGE_MS = 10_000
OTHERS = 22


@dataclass
class GuestClock:
    """The clocks of a machine that lost time; `true` is all others'."""

    true: FakeClock
    lost_s: float = 0.0
    wall_lost_ms: int = 0

    def now_ms(self) -> int:
        return self.true.now_ms() - self.wall_lost_ms

    def elapsed_s(self) -> float:
        return self.true.elapsed_s() - self.lost_s

    def sleep(self, seconds: float) -> None:
        self.true.sleep(seconds)


class Guest:
    """A lake on a machine of its own, whose next call of a method may be where it is paused."""

    def __init__(self, *, shared: bool = True) -> None:
        self.true = FakeClock()
        self.inner = MemoryStorage("paused", self.true)
        self.storage = FaultyStorage(self.inner, quiet, shared=shared)
        self.clock = GuestClock(self.true)
        self.lake = Lake("memory://paused", storage=self.storage, clock=self.clock)
        self.lake.create_topic("t", 1, {"log.min.age.ms": str(MIN_AGE_MS)})
        self.lake.topic("t").append(values("a", "b"))
        self.paused = 0

    def pause_at(self, method: str, phase: str, on: str = "", *, wall_is_set: bool = False) -> None:
        """At that call others go on for minutes, of which this machine's clocks know nothing."""

        def hook(called: str, path: str, at: str) -> None:
            if (called, at) == (method, phase) and on in path and not self.paused:
                self.paused += 1
                before_s, before_ms = self.true.elapsed_s(), self.true.now_ms()
                others_go_on(self.inner, self.true)
                self.clock.lost_s += self.true.elapsed_s() - before_s
                if not wall_is_set:
                    self.clock.wall_lost_ms += self.true.now_ms() - before_ms

        self.storage.hook = hook

    def append(self, value: str = "mine") -> dict[int, tuple[int, int]] | None:
        """An append's answer, None for an unknown outcome."""
        try:
            return self.lake.topic("t").append(values(value))
        except OutcomeUnknownError:
            return None

    def judge(self, answer: dict[int, tuple[int, int]] | None, value: str = "mine") -> None:
        """What was acknowledged is there, once; the others' records are whole; soon this machine sees what all see."""
        self.storage.hook = quiet
        seen = read_offsets(open_lake(self.inner, self.true), "t")
        found = [(offset, v) for offset, v in seen if v == value]
        assert [offset for offset, _ in seen] == list(range(len(seen)))
        assert len(seen) == 2 + OTHERS * self.paused + len(found)
        assert len(found) <= 1
        if answer is not None:
            assert found == [(answer[0][0], value)]
        if self.storage.shared:
            self.true.pass_s(FLOORS_EVERY_S + 1)
            assert read_offsets(self.lake, "t") == seen


def others_go_on(storage: MemoryStorage, clock: FakeClock) -> None:
    """Another process appends, writes a checkpoint and trims the log past all that was there before."""
    with open_lake(storage, clock) as lake:
        for i in range(12):
            lake.topic("t").append(values(f"o{i}"))
            clock.pass_s(1)
        head = lake.topic("t").state().version
        for i in range(OTHERS - 12):
            clock.pass_s(6)
            lake.topic("t").append(values(f"late{i}"))
        put_checkpoint(storage, "t", head)
        assert trim(storage, "t", MIN_AGE_MS).floor == head - 1


PLACES = [
    (method, phase)
    for method in ("get", "put", "sync", "put_if_absent", "head", "list_after")
    for phase in ("before", "after")
]


@pytest.mark.parametrize("idle_s", [0, 4, 60, 3_600])
@pytest.mark.parametrize(("method", "phase"), PLACES)
def test_a_machine_paused_anywhere_in_an_append_acknowledges_nothing_that_is_lost(
    method: str, phase: str, idle_s: float
) -> None:
    guest = Guest()
    guest.true.pass_s(idle_s)
    guest.pause_at(method, phase)
    guest.judge(guest.append())


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("method", ["put", "sync", "put_if_absent"])
@pytest.mark.parametrize("shared", [True, False])
def test_late_when_the_wall_clock_says_so(method: str, phase: str, shared: bool) -> None:
    """It is set right when the machine wakes up, and the elapsed clock is not: that is enough, on any store."""
    guest = Guest(shared=shared)
    guest.pause_at(method, phase, wall_is_set=True)
    guest.judge(guest.append())


def test_after_a_pause_all_is_well_again() -> None:
    guest = Guest()
    guest.pause_at("put_if_absent", "before", ".json")
    assert guest.append() is None
    calls = guest.storage.hook = Calls()
    for i in range(5):
        answer = guest.append(f"again{i}")
        assert answer == {0: (2 + OTHERS + i, 3 + OTHERS + i)}
    assert calls.take().count("list_after") <= 2  # the floors, until the store's time is known again
    guest.append("more")
    assert "list_after" not in calls.take()


def test_what_another_topic_has_learnt_hides_no_pause() -> None:
    """A process learns the store's time again by one topic; the other's head was seen before the pause all the same."""
    guest = Guest()
    guest.lake.create_topic("u", 1)
    guest.lake.topic("u").append(values("warm"))
    guest.lake.topic("t").append(values("warm"))
    others_go_on(guest.inner, guest.true)
    guest.paused = 1
    guest.clock.lost_s, guest.clock.wall_lost_ms = 72.0, 72_000
    guest.lake.topic("u").append(values("learns"))
    answer = guest.append()
    seen = [v for _, v in read_offsets(open_lake(guest.inner, guest.true), "t")]
    assert seen.count("mine") == (answer is not None)


def test_an_entry_that_came_in_time_and_was_trimmed_with_its_records_is_not_made_again() -> None:
    """Paused after its put: others read the records, and deleted them."""
    guest = Guest()

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("head", "before") and path.endswith(".json"):
            guest.storage.hook = quiet
            began_s, began_ms = guest.true.elapsed_s(), guest.true.now_ms()
            open_lake(guest.inner, guest.true).delete_records("t", {0: -1})
            others_go_on(guest.inner, guest.true)
            guest.clock.lost_s = guest.true.elapsed_s() - began_s
            guest.clock.wall_lost_ms = guest.true.now_ms() - began_ms

    guest.storage.hook = hook
    assert guest.append() is None
    assert "mine" not in [v for _, v in read_offsets(open_lake(guest.inner, guest.true), "t")]


def test_ones_own_stray_is_no_proof_that_a_request_was_committed() -> None:
    """A put has no answer; the machine is paused; then the put arrives at its place, which is free again."""
    guest = Guest()
    topic, puts = guest.lake.topic("t"), []

    def lost(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and phase == "before":
            puts.append(path)
            raise StorageUnavailableError("timed out")

    staged = stage(topic, "mine")
    guest.storage.hook = lost
    with pytest.raises(OutcomeUnknownError):
        topic.commit(staged, request_id="mine")
    guest.storage.hook = quiet
    topic.state()  # the head is seen just before the pause
    stray = topic._door._unanswered.get("mine")
    assert stray is not None
    lost_s, lost_ms = guest.true.elapsed_s(), guest.true.now_ms()
    others_go_on(guest.inner, guest.true)
    guest.paused = 1
    assert guest.inner.put_if_absent(puts[0], stray.data)
    guest.clock.lost_s, guest.clock.wall_lost_ms = guest.true.elapsed_s() - lost_s, guest.true.now_ms() - lost_ms
    with pytest.raises(OutcomeUnknownError, match="trimmed past"):
        topic.commit(staged, request_id="mine")
    guest.judge(None)


@pytest.mark.parametrize("idle_s", [0, 4])
def test_a_pause_before_anything_was_learnt_of_the_store_can_not_be_ruled_out(idle_s: float) -> None:
    guest = Guest()
    guest.lake = Lake("memory://paused", storage=guest.storage, clock=guest.clock)
    topic = guest.lake.topic("t")
    guest.true.pass_s(idle_s)
    others_go_on(guest.inner, guest.true)
    guest.paused = 1
    guest.clock.lost_s, guest.clock.wall_lost_ms = 72.0, 72_000
    try:
        guest.judge(topic.append(values("mine")))
    except OutcomeUnknownError:
        guest.judge(None)


def test_a_reader_learns_of_a_pause_within_a_minute_of_its_own() -> None:
    guest = Guest()
    others_go_on(guest.inner, guest.true)
    guest.clock.lost_s, guest.clock.wall_lost_ms = 72.0, 72_000
    behind = 0
    while guest.lake.topic("t").offsets() != {0: (0, 2 + OTHERS)}:
        guest.true.pass_s(4)
        behind += 4
    assert behind <= FLOORS_EVERY_S + 4


@pytest.mark.parametrize("off_s", [-3_600, 3_600], ids=["back", "ahead"])
def test_a_store_whose_clock_is_set_costs_looks_and_loses_nothing(off_s: float) -> None:
    guest = Guest()
    guest.true.ms += int(off_s * 1000)
    guest.clock.wall_lost_ms = int(off_s * 1000)
    for i in range(3):
        assert guest.append(f"v{i}") == {0: (2 + i, 3 + i)}


@pytest.mark.parametrize("minutes", [-50, 50])
def test_a_wrong_wall_clock_makes_nobody_late(minutes: int) -> None:
    """The entry's `modificationTime` is that clock's, and is not asked."""
    guest = Guest()
    guest.clock.wall_lost_ms = -minutes * 60_000
    guest.append("set")
    calls = guest.storage.hook = Calls()
    guest.true.pass_s(0.1)
    guest.append("x")
    guest.append("y")
    assert calls.take().count("list_after") <= 1


def test_without_an_answer_about_the_entry_the_floors_are_looked_at() -> None:
    guest = Guest()
    seen = []

    def hook(method: str, path: str, phase: str) -> None:
        seen.append(method)
        if method == "head" and path.endswith(".json"):
            raise StorageUnavailableError("no answer")

    guest.storage.hook = hook
    guest.judge(guest.append())
    assert seen.index("list_after") > seen.index("head")


def test_on_this_machines_own_disk_nothing_is_asked() -> None:
    """All its writers are paused together."""
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 1)
    calls = storage.hook = Calls()
    lake.topic("t").append(values("a"))
    assert "head" not in calls.take()
