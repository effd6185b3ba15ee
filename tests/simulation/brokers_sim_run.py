"""One run of brokers: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/brokers_sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/brokers_sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

import brokers_sim_consumers as consumers
import brokers_sim_producers as producers
from brokers_sim_bugs import BUGS
from brokers_sim_journal import BrokersJournal
from brokers_sim_transactions import copier
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
from history import Place, Rule, Stretch
from sim_director import Director, read_log, read_on
from sim_running import Planted, repeat, staged
from transactions_sim_world import COPIERS

from tidelog.broker.produce import joint_entries
from tidelog.log.base.errors import CorruptSegmentError
from tidelog.log.door import commit_loop
from tidelog.log.rows import flat_combining
from tidelog.log.upkeep import background
from tidelog.transactions import staged_topics, timeouts
from tidelog.transactions.transaction_log import TransactionLog, Unfinished

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


class _Director(Director):
    """Directs brokers and their clients."""

    def direct(self) -> list[str]:
        """The whole run; returns what is wrong."""
        world, plan = self._world, self._world.plan
        setup = self._program("setup")
        for name in world.topics:
            setup.lake.create_topic(name, plan.partitions, TOPIC_CONFIG)
        world.history.seen.rules[PLAIN] = Rule(once=False)
        world.cores = {name: self._rng.choice([0.0, 1.0, 3.0]) for name in world.topics}
        for number in range(1, plan.brokers + 1):
            world.start(BrokerProgram(world, number), self._rng.uniform(0, 1))
        self._scheduler.pause(2.0)
        world.trouble, world.network.weather = plan.trouble, plan.weather
        for name, role in self._casting():
            world.start(ClientProgram(world, name, role), self._rng.uniform(0, 2))
        if plan.copiers:
            world.start(Program(world, "native", follow), self._rng.uniform(0, 2))
        while self._scheduler.now < plan.duration_s and not self._wrong():
            self._scheduler.pause(self._rng.uniform(0.3, 1.7) * plan.mishap_s)
            if not self._wrong():
                self._mishap()
        if not self._wrong():
            self._settle(setup)
        return self._wrong() or self._judge()

    def _program(self, name: str) -> Program:
        program = Program(self._world, name, lambda _: None)
        program.ids = SeededUuids(self._rng.getrandbits(64))
        program.run()
        return program

    def _wrong(self) -> list[str]:
        return [*super()._wrong(), *self._world.history.faults]

    def _casting(self) -> list[tuple[str, Role]]:
        plan = self._world.plan
        cast: list[tuple[str, Role]] = [("producer", producers.produce)] * plan.producers
        cast += [("plain", producers.produce_plainly)] * plan.plain_producers
        for number in range(plan.consumers):
            static = f"i{number}" if number < plan.statics else None
            cast.append((f"c{number}", consumers.consumer(static)))
        cast += [(f"copier-{one}", copier(one)) for one in self._ids]
        return [*cast, ("reader", consumers.read_all), ("observer", consumers.observe)]

    @property
    def _ids(self) -> list[str]:
        """Transactional ids."""
        return [one for one, _, _ in COPIERS[: self._world.plan.copiers]]

    # --- mishaps -------------------------------------------------------------------------------------------

    def _mishap(self) -> None:
        mishaps = [
            self._kill, self._kill, self._kill_silently, self._freeze, self._freeze, self._drain, self._part,
            self._cut_off, self._kill_client, self._freeze_client, self._load, self._load,
        ]  # fmt: skip
        self._rng.choice(mishaps + [self._kill_copier, self._kill_copier, self._twin] * bool(self._ids))()

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

    def _load(self) -> None:
        """A topic takes more of its leaders, or less."""
        self._world.cores[self._rng.choice(self._world.topics)] = self._rng.choice([0.0, 0.2, 1.0, 3.0])

    def _kill_client(self) -> None:
        """A member of the group dies; another takes its place."""
        members = [one for one in self._clients() if one.name.startswith("c")]
        for member in self._rng.sample(members, k=min(1, len(members))):
            self._world.kill(member)
            self._world.start(ClientProgram(self._world, member.name, member.role), self._rng.choice([0.2, 3.0]))

    def _kill_copier(self) -> None:
        """A transactional producer dies amid its transaction; another takes its id."""
        copiers = self._copiers()
        for one in self._rng.sample(copiers, k=min(1, len(copiers))):
            self._world.kill(one)
            self._world.start(ClientProgram(self._world, one.name, one.role), self._rng.choice([0.2, 3.0, 9.0]))

    def _twin(self) -> None:
        """Another producer with a transactional id that is in use."""
        if self._world.plan.twins and len(self._copiers()) < 5:
            one = self._rng.choice(self._ids)
            self._world.start(ClientProgram(self._world, f"copier-{one}", copier(one)), 0.0)

    def _copiers(self, *ids: str) -> list[ClientProgram]:
        """Producers with these transactional ids, or with any."""
        return self._of(*(f"copier-{one}" for one in ids or self._ids))

    def _freeze_client(self) -> None:
        clients = self._clients()
        for client in self._rng.sample(clients, k=min(1, len(clients))):
            self._world.freeze(client, self._rng.choice([1.0, 4.0, 9.0]))

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self, setup: Program) -> None:
        """Nothing more goes wrong: what was sent is there, and all of it is read."""
        world = self._world
        world.end_trouble()
        world.network.heal()
        world.thaw()
        world.settling = True
        self._wait_for(lambda: not self._of("producer", "plain", "observer"), "sent")
        world.copied_ends = self._ends(setup, IDEMPOTENT)
        self._end_transactions(setup)
        world.ends = self._ends(setup, *world.topics)
        self._wait_for(lambda: not self._of("reader"), "read")
        if world.plan.consumers:
            done = world.history.committed
            self._wait_for(lambda: all(done.get(p, 0) >= end for p, end in world.ends.items()), "committed")
        world.ending = True
        self._wait_for(lambda: not self._clients(), "left")

    def _end_transactions(self, setup: Program) -> None:
        """Everything is copied, but by ids whose producers are all dead: their transactions end by themselves."""
        world = self._world
        abandoned = self._ids[:1] if world.plan.abandoned else []
        for one in self._ids:
            if one not in abandoned:
                world.start(ClientProgram(world, f"copier-{one}", copier(one, is_last=True)), 0.0)
        for program in self._copiers(*abandoned) if abandoned else ():
            world.kill(program)
        self._wait_for(lambda: not self._copiers(), "copied")
        transactions = TransactionLog(setup.lake)

        def all_ended() -> bool:
            left, _ = transactions.unfinished(Unfinished(), -1)
            return not left.open and not left.incomplete

        self._wait_for(all_ended, "ended of transactions")

    def _ends(self, setup: Program, *topics: str) -> dict[Place, int]:
        return {(name, p): end for name in topics for p, (_, end) in setup.lake.topic(name).offsets().items()}

    def _of(self, *names: str) -> list[ClientProgram]:
        return [client for client in self._clients() if client.name in names]

    def _wait_for(self, there: Callable[[], bool], what: str) -> None:
        def missing() -> str:
            return f"not everything is {what}; there are {[one.process.name for one in self._clients()]}"

        self._wait(there, SETTLE_S, missing)

    def _judge(self) -> list[str]:
        """Read all there is, and compare."""
        world, seen = self._world, self._world.history.seen
        judge = self._program("judge")
        try:
            seen.log = read_log(judge.lake, world.topics)
        except CorruptSegmentError as e:  # brokers have deleted what the log names
            return [str(e)]
        for _, _, group in COPIERS[: world.plan.copiers]:
            offsets = judge.log.stable_offsets(group)
            seen.committed |= {(group, place): one.offset for place, one in offsets.items()}
        there = Counter(value for one in seen.log.values() for _, _, value in one.records)
        lost = [f"{value} was there before, and is not" for value in sorted(world.history.repeated - there.keys())]
        # Plain producers repeat nothing either: what is there twice, brokers have made two of.
        twice = [f"{value} is there {times} times" for value, times in sorted(there.items()) if times > 1]
        # What `tidelog check` finds takes as long as all else.
        checked = [] if world.seed % CHECKED else self._checked(judge)
        return [*self._wrong(), *lost, *twice, *world.history.complaints(), *summary(check(seen)), *checked]


def follow(program: Program) -> None:
    """A native reader of what is copied."""
    world = program.world
    stretches: dict[Place, Stretch] = {}
    while not world.ends:
        program.pause(world.rng.uniform(0.2, 1.5) * world.plan.pause_s)
        for name in world.topics:
            with suppress(*program.unanswered):
                read_on(program, name, world.history.seen, stretches)


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_brokers, BUGS, lambda report: report.counts))
