"""A topic's pool: which entry is staged while the one before is committed, and in which order they are answered."""

import asyncio
import random
from collections.abc import Callable
from itertools import islice
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from support.logs import FakeClock
from support.produce_requests import batch

from tidelog.broker.base.settings import Linger
from tidelog.broker.produce import pool
from tidelog.broker.produce.entry import Settled
from tidelog.broker.produce.linger import FileBudget
from tidelog.broker.produce.pool import TopicPool
from tidelog.broker.produce.request import ProducedBatch, ProduceRequest
from tidelog.broker.records.batches import header_of
from tidelog.broker.wire.produce_answer import ProducedPartition
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.server.base.blocking import turn

FAILED = StorageUnavailableError("the store says no")
TURNS = 100


class Staged:
    """An entry that is staged, and only to be committed."""

    waits_for = None

    def __init__(self, units: list[ProducedBatch]) -> None:
        self.units = units

    def due_s(self) -> float:
        return 0.0

    def advance(self) -> Settled:
        return settled(self.units)


def settled(units: list[ProducedBatch]) -> Settled:
    return Settled((), [(unit, FAILED) for unit in units])


class Writer:
    """Stages and writes nothing."""

    def __init__(self, budget: FileBudget) -> None:
        self.budget = budget

    def read(self, units: list[ProducedBatch]) -> Any:
        raise NotImplementedError

    def write(self, chunks: Any, units: list[ProducedBatch]) -> Settled:
        return settled(units)


class Stages(Writer):
    """One that can stage ahead."""

    def stage(self, chunks: Any, units: list[ProducedBatch]) -> Staged:
        return Staged(units)


class World:
    """A pool whose calls for threads end when the test says so, and in which a commit is never too short to overlap."""

    def __init__(self, kind: type[Writer] = Stages, load: float = 0.1, linger: Linger | None = None) -> None:
        self.clock, self.load = FakeClock(), load
        self.coming: list[tuple[int, ...]] = []
        self.calls: list[tuple[str, list[int], Callable[[BaseException | None], None]]] = []
        self.outcomes: list[int] = []
        linger = linger or Linger(overlap_s=0.0)
        self.budget = FileBudget(linger, self.clock.elapsed_s(), lambda _: 0.0)
        counts = SimpleNamespace(produce_requests=0, failed_produce_requests=0)
        context: Any = SimpleNamespace(
            clock=self.clock,
            blocking=self._blocking,
            load=lambda _: self.load,
            cache=None,
            meter=SimpleNamespace(topic=lambda _: counts, tracing=None),
        )
        followed: Any = SimpleNamespace(name="t")
        self.pool = TopicPool(context, followed, str(UUID(int=1)), kind(self.budget), linger, lambda: None)

    async def _blocking(self, call: Any, *args: Any) -> Any:
        units = args[-1] if args else call.__self__.units
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end(error: BaseException | None = None) -> None:
            if error is None:
                over.set_result(None)
            else:
                over.set_exception(error)

        self.calls.append((call.__name__, [unit.partition for unit in units], end))
        if self.coming and call.__name__ != "stage":
            self.add(*self.coming.pop(0))
        await over
        return call(*args)

    def add(self, *numbers: int) -> None:
        """Units, each of the partition of its number."""
        for number in numbers:
            request = ProduceRequest(-1, None, None, lambda number=number: self.outcomes.append(number))
            data = batch(b"x")
            unit = ProducedBatch(request, "t", ProducedPartition(number), header_of(data), data, 1e9)
            self.pool.add(unit, self.clock.elapsed_s())

    def send(self, *numbers: tuple[int, ...]) -> None:
        """Units: the first ones now, the others each time an entry begins to be written, or to be committed."""
        self.coming += numbers[1:]
        self.add(*numbers[0])

    async def until(self, *calls: tuple[str, list[int]]) -> None:
        """The calls that have not ended are these."""
        for _ in range(TURNS):
            if len(self.calls) >= len(calls):
                break
            await turn()
        assert [(name, units) for name, units, _ in self.calls] == list(calls)

    def end(self, at: int = 0, error: BaseException | None = None) -> None:
        self.calls.pop(at)[2](error)

    async def nothing_more(self) -> None:
        """No call begins in the turns in which an entry would be staged ahead."""
        before = len(self.calls)
        for _ in range(TURNS):
            await turn()
        assert len(self.calls) == before


def play(act: Callable[[], Any]) -> None:
    asyncio.run(act())


def test_what_waits_is_staged_while_an_entry_is_committed_and_committed_after_it() -> None:
    async def act() -> None:
        world = World()
        world.send((1,), (2, 3), (4,))
        await world.until(("write", [1]), ("stage", [2, 3]))
        world.end(1)
        await turn()
        assert world.outcomes == []
        world.end()
        await world.until(("advance", [2, 3]), ("stage", [4]))
        assert world.outcomes == [1]
        world.end()
        await turn()
        world.end()
        await world.until(("advance", [4]))
        world.end()
        await world.nothing_more()
        assert world.outcomes == [1, 2, 3, 4]

    play(act)


def test_an_entry_has_its_outcome_while_the_next_one_is_still_staged() -> None:
    async def act() -> None:
        world = World()
        world.send((1,), (2,))
        await world.until(("write", [1]), ("stage", [2]))
        world.end()
        await world.nothing_more()
        assert world.outcomes == [1]
        world.end()
        await world.until(("advance", [2]))

    play(act)


def test_what_can_not_be_staged_ahead_is_written_in_its_turn() -> None:
    async def act() -> None:
        world = World()
        world.send((1,), (2,))
        await world.until(("write", [1]), ("stage", [2]))
        world.end(1, FAILED)
        world.end()
        await world.until(("write", [2]))

    play(act)


@pytest.mark.parametrize(
    ("why", "world"),
    [
        ("a writer that can't", lambda: World(Writer)),
        ("a process that has no time to spare", lambda: World(load=0.8)),
        ("commits that are short", lambda: World(linger=Linger())),
        ("a budget that is used up", lambda: World(linger=Linger(overlap_s=0.0, file_burst=0.5, spare_file_rate=0.5))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_is_staged_ahead_for(why: str, world: Callable[[], World]) -> None:
    async def act() -> None:
        one = world()
        one.send((1,), (2,))
        await one.until(("write", [1]))
        await one.nothing_more()

    play(act)


def test_a_few_units_behind_many_are_not_staged_ahead() -> None:
    """Their producers' others come when the many are answered."""

    async def act() -> None:
        world = World()
        world.send(tuple(range(1, 10)), (10, 11))
        await world.until(("write", list(range(1, 10))))
        await world.nothing_more()

    play(act)


class Reads(Writer):
    """One that reads ahead, and can stage ahead."""

    def read(self, units: list[ProducedBatch]) -> Any:
        return SimpleNamespace(units=units, refused=[])

    def write(self, chunks: Any, units: list[ProducedBatch]) -> Settled:
        return settled([unit for chunk in chunks for unit in chunk.units] + units)

    def stage(self, chunks: Any, units: list[ProducedBatch]) -> Staged:
        return Staged([unit for chunk in chunks for unit in chunk.units] + units)


@pytest.mark.parametrize("seed", range(50))
def test_each_unit_has_one_outcome_in_its_turn_whatever_is_read_and_staged_ahead(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units come, and calls for threads end, in any order; some can't be staged ahead."""
    monkeypatch.setattr(pool, "AHEAD_BYTES", 2 * len(batch(b"x")))
    chance = random.Random(seed)

    async def act() -> None:
        world = World(Reads)
        numbers = iter(range(60))
        for _ in range(2_000):
            if chance.random() < 0.5:
                world.add(*islice(numbers, chance.randint(1, 6)))
            elif world.calls:
                at = chance.randrange(len(world.calls))
                fails = world.calls[at][0] == "stage" and chance.random() < 0.2
                world.end(at, FAILED if fails else None)
            elif len(world.outcomes) == 60:
                break
            for _ in range(chance.randint(0, 8)):
                await turn()
        assert world.outcomes == list(range(60))

    play(act)


class Soon(Staged):
    """One that goes on after less time than a clock can tell from none."""

    def due_s(self) -> float:
        return 1e-15


class Waits(Writer):
    def write(self, chunks: Any, units: list[ProducedBatch]) -> Any:
        return Soon(units)


def test_no_wait_is_shorter_than_the_loops_clock_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def paused(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(pool, "pause", paused)

    async def act() -> None:
        world = World(Waits)
        world.add(1)
        await world.until(("write", [1]))
        world.end()
        await world.until(("advance", [1]))
        world.end()
        for _ in range(5):
            await turn()
        assert (world.outcomes, pauses) == ([1], [pool.SOON_S])

    play(act)
