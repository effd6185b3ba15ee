"""One storage call fails, or the process dies there: whatever was to be done is done once or not at all."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, quiet, read_offsets, values
from support.memory_disk import MemoryDisk

from tidelog.log.base.errors import (
    OutcomeUnknownError,
    StorageError,
    StorageFullError,
    StoragePermissionError,
    StorageUnavailableError,
    TopicExistsError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake
from tidelog.log.segments import staging
from tidelog.log.storage import LocalStorage, Storage


class Death(BaseException):
    """The process ends here: no code catches it."""


# An error of the store that says that nothing happened can only come before the call.
BEFORE = {"full": StorageFullError("ENOSPC"), "denied": StoragePermissionError("EACCES")}
ANYWHERE = {"no answer": StorageUnavailableError("timed out"), "death": Death()}


@dataclass
class World:
    """A lake with a topic of two partitions and a record in each, on a store that fails on command."""

    storage: FaultyStorage
    clock: FakeClock
    lake: Lake


@pytest.fixture(params=["memory", "local"])
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], World]:
    monkeypatch.setattr(staging, "ROW_GROUP_BYTES", 2_000)  # so that an append also streams a segment
    count = iter(range(1 << 30))

    def world() -> World:
        clock = FakeClock()
        inner: Storage = (
            MemoryDisk("m", clock) if request.param == "memory" else LocalStorage(tmp_path / str(next(count)))
        )
        storage = FaultyStorage(inner, quiet)
        lake = open_lake(storage, clock)
        lake.create_topic("t", partitions=2)
        lake.topic("t").append(values("a", "b", partition=[0, 1]))
        return World(storage, clock, lake)

    return world


Act = Callable[[Lake], object]


def points_of(make: Callable[[], World], act: Act) -> list[int]:
    """The points at which `act` can fail: before and after each call; of a file's many writes, the first and last."""
    world, seen = make(), []
    world.storage.hook = lambda *call: seen.append(call)
    act(world.lake)
    writes = [i for i, (method, _, _) in enumerate(seen) if method == "write"]
    return [i for i in range(len(seen)) if i not in writes[1:-1]]


def each_point(make: Callable[[], World], act: Act) -> Iterator[tuple[World, str, BaseException | None]]:
    """A world in which `act` met an error, for each of its calls and each error; and what `act` raised."""
    for nth in points_of(make, act):
        for name, error in {**BEFORE, **ANYWHERE}.items():
            world = make()
            met = _fail_at(world.storage, nth, error, only_before=name in BEFORE)
            raised: BaseException | None = None
            try:
                act(world.lake)
            except (StorageError, OutcomeUnknownError, Death) as e:
                raised = e
            world.storage.hook = quiet
            if met:
                yield world, name, raised


def _fail_at(storage: FaultyStorage, nth: int, error: BaseException, *, only_before: bool) -> list[str]:
    met: list[str] = []
    count = [0]

    def hook(method: str, path: str, phase: str) -> None:
        count[0] += 1
        if count[0] == nth + 1 and (phase == "before" or not only_before):
            met.append(f"{method} {path}")
            raise error

    storage.hook = hook
    return met


def whole(lake: Lake) -> dict[int, list[str]]:
    """Every record, after checking that offsets are dense."""
    found = {}
    for p in lake.offsets("t"):
        rows = read_offsets(lake, "t", p)
        assert [o for o, _ in rows] == list(range(len(rows)))
        found[p] = [v for _, v in rows]
    return found


LARGE = "large" * 1000


def append(lake: Lake) -> object:
    return lake.topic("t").append(values(LARGE, "small", partition=[0, 1]))


def test_an_append_lands_once_or_not_at_all(make: Callable[[], World]) -> None:
    """Whatever fails: the same process goes on if it lives, another one sees the same, and offsets stay dense."""
    met = 0
    for world, name, raised in each_point(make, append):
        met += 1
        if name in BEFORE:
            assert type(raised) is type(BEFORE[name])  # the caller learns what the store said
            live = {f"t/{s.path}" for s in world.lake.topic("t").state().all_segments()}
            assert {o.path for p in (0, 1) for o in world.storage.inner.list_after(f"t/partition={p}")} == live
        others = open_lake(world.storage.inner, world.clock)
        seen = whole(others)
        without, with_it = {0: ["a"], 1: ["b"]}, {0: ["a", LARGE], 1: ["b", "small"]}
        if raised is None:
            assert seen == with_it
        elif name in BEFORE or (name == "no answer" and not isinstance(raised, OutcomeUnknownError)):
            assert seen == without
        else:
            assert seen in (without, with_it)
        lake = others if isinstance(raised, Death) else world.lake
        assert lake.topic("t").append(values("after", partition=[0])) == {0: (len(seen[0]), len(seen[0]) + 1)}
        assert whole(others) == {0: [*seen[0], "after"], 1: seen[1]} == whole(lake)
    assert met > 25


def create(lake: Lake) -> object:
    return lake.create_topic("new", partitions=2)


@pytest.mark.parametrize("make", ["memory"], indirect=True)
def test_a_topic_is_created_once_or_not_at_all(make: Callable[[], World]) -> None:
    for world, name, raised in each_point(make, create):
        others = open_lake(world.storage.inner, world.clock)
        assert raised is not None or "new" in others.topics()
        if name in BEFORE and "new" in others.topics():
            assert others.describe_topic("new")  # it was there by then: only its description failed
        for lake in (others, world.lake):
            with suppress(TopicExistsError):
                lake.create_topic("new", partitions=2)
            assert len(lake.describe_topic("new").partitions) == 2
        assert others.topic("new").append(values("x", partition=[1])) == {1: (0, 1)}


def delete(lake: Lake) -> object:
    return lake.delete_topic("t")


@pytest.mark.parametrize("make", ["memory"], indirect=True)
def test_a_topic_is_deleted_once_or_not_at_all(make: Callable[[], World]) -> None:
    for world, _, raised in each_point(make, delete):
        others = open_lake(world.storage.inner, world.clock)
        if "t" in others.topics():
            assert raised is not None
            assert whole(others) == {0: ["a"], 1: ["b"]}
            others.delete_topic("t")
        with pytest.raises(UnknownTopicError):
            world.lake.delete_topic("t")
        others.create_topic("t")
        assert others.topic("t").append(values("x")) == {0: (0, 1)}


def alter(lake: Lake) -> object:
    return lake.alter_topic("t", partitions=3, config={"retention.ms": "5"})


@pytest.mark.parametrize("make", ["memory"], indirect=True)
def test_a_change_is_made_whole_or_not_at_all(make: Callable[[], World]) -> None:
    for world, _, raised in each_point(make, alter):
        others = open_lake(world.storage.inner, world.clock)
        found = others.describe_topic("t")
        assert (len(found.partitions), found.config) in ((2, {}), (3, {"retention.ms": "5"}))
        assert raised is not None or len(found.partitions) == 3
        alter(world.lake)
        assert len(others.describe_topic("t").partitions) == 3


def test_death_between_segment_and_entry_leaves_nothing_visible() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")

    def die(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before"):
            raise Death

    storage.hook = die
    with pytest.raises(Death):
        lake.topic("t").append(values("never"))
    storage.hook = quiet
    fresh = open_lake(storage, clock)
    assert len(list(storage.list_after("t/partition=0"))) == 1  # an orphan, for the purger
    assert fresh.topic("t").append(values("x")) == {0: (0, 1)}
    assert read_offsets(fresh, "t") == [(0, "x")]


@pytest.mark.parametrize("acks", ["all", 1])
def test_a_power_loss_at_any_call_of_an_append(acks: str | int) -> None:
    """What acks=all has acknowledged is there; entries are whole; the topic goes on."""

    def act(lake: Lake) -> object:
        return lake.topic("t").append(values("mine", partition=[0]), acks=acks)

    def make_in_memory() -> World:
        lake, storage, clock = memory_lake()
        lake.create_topic("t", partitions=2)
        lake.topic("t").append(values("a", "b", partition=[0, 1]))
        return World(storage, clock, lake)

    for nth in [*points_of(make_in_memory, act), 1 << 30]:
        world = make_in_memory()
        met = _fail_at(world.storage, nth, Death(), only_before=False)
        with suppress(Death):
            act(world.lake)
        world.storage.hook = quiet
        world.storage.inner.lose_power()  # type: ignore[attr-defined]
        fresh = open_lake(world.storage.inner, world.clock)
        end = fresh.offsets("t")[0][1]
        if not met and acks == "all":
            assert end == 2
        if acks == "all":
            assert read_offsets(fresh, "t") == [(0, "a"), (1, "mine")][:end]
        assert read_offsets(fresh, "t", end=1) == [(0, "a")]
        assert fresh.topic("t").append(values("x", partition=[0])) == {0: (end, end + 1)}
        assert read_offsets(fresh, "t", start=end) == [(end, "x")]
