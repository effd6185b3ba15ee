"""What the directors of simulated worlds share: waiting, programs of their own, and reading the log at the end."""

from collections.abc import Callable, Iterable
from typing import Any

from groups_sim_world import Program
from history import History, Partition, Place, Stretch

from tidelog.check.lake import Severity, check_lake
from tidelog.log.lake import Lake


class Director:
    """Starts the processes of a world, makes mishaps, and judges."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._rng = world.rng

    def _program(self, name: str) -> Program:
        """A process of the director's own."""
        program = Program(self._world, name, lambda _: None)
        program.run()
        return program

    def _wrong(self) -> list[str]:
        """What is wrong by now."""
        return [*self._scheduler.failures, *self._world.history.violations]

    def _wait(self, there: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
        """Wait for something that must come in time; else `what` is said."""
        until = self._scheduler.now + seconds
        while not there() and not self._wrong():
            if self._scheduler.now > until:
                self._world.history.violate(f"after {seconds:.0f} s {what()}")
                return
            self._scheduler.pause(0.25)

    def _checked(self, judge: Program) -> list[str]:
        """What `tidelog check` finds in all bytes of the lake."""
        report = check_lake(self._world.disk, deep=True, clock=judge.clock)
        return [] if report.green else [f"check: {f}" for f in report.findings if f.severity is Severity.ERROR]


def read_log(lake: Lake, topics: Iterable[str]) -> dict[Place, Partition]:
    """All records of topics, by partition."""
    found: dict[Place, Partition] = {}
    for name in topics:
        topic = lake.topic(name)
        for partition, (start, end) in topic.offsets().items():
            one = found[name, partition] = Partition(start, end)
            one.records += [(offset, None, value) for offset, value in _records(topic, partition, start, end)]
    return found


def read_on(program: Program, name: str, seen: History, stretches: dict[Place, Stretch]) -> None:
    """Read on in a topic to its end, as a native reader that sometimes begins again."""
    topic = program.lake.topic(name)
    for partition, (start, end) in topic.offsets().items():
        place = (name, partition)
        if place not in stretches or program.world.rng.random() < 0.05:
            stretches[place] = Stretch(program.process.name, "readers", place)
            seen.stretches.append(stretches[place])
        reads = stretches[place].reads
        reads += _records(topic, partition, max(start, reads[-1][0] + 1 if reads else start), end)


def _records(topic: Any, partition: int, start: int, end: int) -> Iterable[tuple[int, str]]:
    for batch in topic.read(partition, start, end):
        for offset, value in zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True):
            yield offset, value.decode()
