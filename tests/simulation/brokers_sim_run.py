"""One run of brokers: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/brokers_sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/brokers_sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import brokers_sim_consumers as consumers
import brokers_sim_producers as producers
from brokers_sim_bugs import BUGS
from brokers_sim_journal import BrokersJournal
from brokers_sim_world import (
    IDEMPOTENT,
    PLAIN,
    TOPIC_CONFIG,
    BrokerProgram,
    BrokersPlan,
    BrokersWorld,
    LoopProgram,
    SeededUuids,
    on_stage,
)
from checkers import check, summary
from groups_sim_world import Program
from history import Partition, Rule
from sim_program import SimProgram
from sim_running import Planted, repeat, staged

from tidelog.broker.produce import joint_entries
from tidelog.check.lake import Severity, check_lake
from tidelog.log.door import commit_loop
from tidelog.log.rows import flat_combining
from tidelog.log.upkeep import background
from tidelog.transactions import staged_topics, timeouts

SETTLE_S = 120.0
# One seed in ten has its lake checked in all its bytes.
CHECKED = 10
THREADED = (flat_combining, commit_loop, background, staged_topics, timeouts, joint_entries)

Role = Callable[[LoopProgram], Awaitable[None]]


class ClientProgram(LoopProgram):
    """A client's process, which plays a role."""

    def __init__(self, world: BrokersWorld, name: str, role: Role) -> None:
        super().__init__(world, name)
        self.role = role

    def run(self) -> None:
        """Play it."""
        self.run_loop(lambda: self.role(self))


@dataclass
class BrokersReport:
    """The result of a run. `problems` is empty when all invariants held."""

    seed: int
    problems: list[str]
    digest: str
    history: BrokersJournal = field(repr=False)

    @property
    def counts(self) -> Counter[str]:
        """How often things happened."""
        return self.history.counts


def run_brokers(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> BrokersReport:
    """Run one seed."""
    world = BrokersWorld(seed, BrokersPlan.of(seed), trace)
    with on_stage(world), staged(world.scheduler, THREADED, planted):
        problems = _Director(world).direct()
    return BrokersReport(seed, problems, world.history.digest(), world.history)


class _Director:
    """Starts the processes, makes mishaps, and judges."""

    def __init__(self, world: BrokersWorld) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._rng = world.rng
        self._readers: list[ClientProgram] = []

    def direct(self) -> list[str]:
        """The whole run; returns what is wrong."""
        world, plan = self._world, self._world.plan
        setup = self._program("setup")
        for name in world.topics:
            setup.lake.create_topic(name, plan.partitions, TOPIC_CONFIG)
        world.history.seen.rules[PLAIN] = Rule(once=False)
        for number in range(1, plan.brokers + 1):
            world.start(BrokerProgram(world, number), self._rng.uniform(0, 1))
        self._scheduler.pause(2.0)
        world.trouble, world.network.weather = plan.trouble, plan.weather
        for name, role in self._casting():
            world.start(ClientProgram(world, name, role), self._rng.uniform(0, 2))
        while self._scheduler.now < plan.duration_s and not self._wrong():
            self._scheduler.pause(self._rng.uniform(0.3, 1.7) * plan.mishap_s)
            if not self._wrong():
                self._mishap()
        if not self._wrong():
            self._settle(setup)
        return self._wrong() or self._judge()

    def _wrong(self) -> list[str]:
        history = self._world.history
        return [*self._scheduler.failures, *history.faults, *history.violations]

    def _casting(self) -> list[tuple[str, Role]]:
        plan = self._world.plan
        cast: list[tuple[str, Role]] = [("producer", producers.produce)] * plan.producers
        cast += [("plain", producers.produce_plainly)] * plan.plain_producers
        for number in range(plan.consumers):
            static = f"i{number}" if number < plan.statics else None
            cast.append((f"c{number}", consumers.consumer(static)))
        return [*cast, ("reader", consumers.read_all), ("observer", consumers.observe)]

    def _program(self, name: str) -> Program:
        program = Program(self._world, name, lambda _: None)
        program.ids = SeededUuids(self._rng.getrandbits(64))
        program.run()
        return program

    # --- mishaps -------------------------------------------------------------------------------------------

    def _mishap(self) -> None:
        rng = self._rng
        rng.choice(
            [self._kill, self._kill, self._kill_silently, self._freeze, self._freeze, self._drain, self._part,
             self._cut_off, self._kill_client, self._freeze_client]
        )()  # fmt: skip

    def _brokers(self) -> list[BrokerProgram]:
        return [broker for broker in self._world.brokers() if not broker.is_over]

    def _clients(self) -> list[ClientProgram]:
        return [one for one in self._world.programs if isinstance(one, ClientProgram) and not one.is_over]

    def _kill(self, *, silently: bool = False) -> None:
        """A broker dies, sometimes another with it; each is started again."""
        brokers = self._brokers()
        for broker in self._rng.sample(brokers, k=min(len(brokers), self._rng.choice([1, 1, 1, 2]))):
            self._world.kill(broker, silently=silently)
            self._world.start(BrokerProgram(self._world, broker.number), self._rng.choice([0.3, 2.0, 6.0]))

    def _kill_silently(self) -> None:
        self._kill(silently=True)

    def _freeze(self) -> None:
        """Brokers stand still."""
        brokers = self._brokers()
        for broker in self._rng.sample(brokers, k=min(len(brokers), self._rng.choice([1, 1, 2]))):
            self._world.freeze(broker, self._rng.choice([0.4, 1.5, 3.0, 4.0, 6.0, 12.0]))

    def _drain(self) -> None:
        """A broker is stopped as an operator does it, and started again."""
        for broker in self._rng.sample(self._brokers(), k=min(1, len(self._brokers()))):
            broker.stop()

    def _part(self) -> None:
        """A broker's messages to another process wait."""
        programs = self._world.programs
        for broker in self._rng.sample(self._brokers(), k=min(1, len(self._brokers()))):
            other = self._rng.choice(programs)
            self._world.network.cut(broker.name, other.name, self._rng.choice([0.5, 2.0, 5.0]))

    def _cut_off(self) -> None:
        """A broker loses its store."""
        if self._world.plan.trouble.unsent:
            for broker in self._rng.sample(self._brokers(), k=min(1, len(self._brokers()))):
                broker.storage.lose_connection(self._rng.choice([1.0, 4.0]), puts_only=self._rng.random() < 0.5)

    def _kill_client(self) -> None:
        """A member of the group dies; another takes its place."""
        members = [one for one in self._clients() if one.name.startswith("c")]
        for member in self._rng.sample(members, k=min(1, len(members))):
            self._world.kill(member)
            self._world.start(ClientProgram(self._world, member.name, member.role), self._rng.choice([0.2, 3.0]))

    def _freeze_client(self) -> None:
        clients = self._clients()
        for client in self._rng.sample(clients, k=min(1, len(clients))):
            self._world.freeze(client, self._rng.choice([1.0, 4.0, 9.0]))

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self, setup: SimProgram) -> None:
        """Nothing more goes wrong: what was sent is there, and all of it is read."""
        world = self._world
        world.end_trouble()
        world.network.heal()
        world.thaw()
        world.settling = True
        self._wait(lambda: not self._of("producer", "plain", "observer"), "sent")
        topic = setup.lake.topic(IDEMPOTENT)
        world.ends = {(IDEMPOTENT, p): end for p, (_, end) in topic.offsets().items()}
        world.ends |= {(PLAIN, p): end for p, (_, end) in setup.lake.topic(PLAIN).offsets().items()}
        self._wait(lambda: not self._of("reader"), "read")
        if world.plan.consumers:
            done = world.history.committed
            self._wait(lambda: all(done.get(p, 0) >= end for p, end in world.ends.items()), "committed")
        world.ending = True
        self._wait(lambda: not self._clients(), "left")

    def _of(self, *names: str) -> list[ClientProgram]:
        return [client for client in self._clients() if client.name in names]

    def _wait(self, there: Callable[[], bool], what: str) -> None:
        until = self._scheduler.now + SETTLE_S
        while not there() and not self._wrong():
            if self._scheduler.now > until:
                left = [one.process.name for one in self._clients()]
                self._world.history.violate(f"after {SETTLE_S:.0f} s not everything is {what}; there are {left}")
                return
            self._scheduler.pause(0.25)

    def _judge(self) -> list[str]:
        """Read all there is, and compare."""
        world, seen = self._world, self._world.history.seen
        judge = self._program("judge")
        for place in world.places:
            topic = judge.lake.topic(place[0])
            start, end = topic.offsets()[place[1]]
            found = seen.log[place] = Partition(start, end)
            for batch in topic.read(place[1], start, end):
                rows = zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True)
                found.records += [(offset, None, value.decode()) for offset, value in rows]
        there = Counter(value for one in seen.log.values() for _, _, value in one.records)
        lost = [f"{value} was there before, and is not" for value in sorted(world.history.repeated - there.keys())]
        # Plain producers repeat nothing either: what is there twice, brokers have made two of.
        twice = [f"{value} is there {times} times" for value, times in sorted(there.items()) if times > 1]
        return [*self._wrong(), *lost, *twice, *summary(check(seen)), *self._checked(judge)]

    def _checked(self, judge: SimProgram) -> list[str]:
        """What `tidelog check` finds. It takes as long as all else, so that few seeds have it."""
        if self._world.seed % CHECKED:
            return []
        report = check_lake(self._world.disk, deep=True, clock=judge.clock)
        return [] if report.green else [f"check: {f}" for f in report.findings if f.severity is Severity.ERROR]


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_brokers, BUGS, lambda report: report.counts))
