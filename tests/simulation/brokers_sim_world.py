"""A simulated lake with brokers over it and Kafka clients around them: what there is and what may go wrong."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from brokers_sim_journal import BrokersJournal
from brokers_sim_loop import SimLoop, SimPipes, SimPool, SimThreads
from brokers_sim_network import Host, SimNetwork, Weather, listen
from history import Copy
from sim_program import ProcessClock, SeededIds, SimProgram, SimWorld
from sim_scheduler import Process
from sim_storage import Trouble
from transactions_sim_world import AUDIT, COPIERS, inline

from tidelog.access import access_log, following
from tidelog.broker import broker as broker_module
from tidelog.broker.base import topics as broker_topics
from tidelog.broker.base.load import TopicShares
from tidelog.broker.base.settings import BrokerSettings, GroupSettings, Linger
from tidelog.broker.broker import Broker
from tidelog.broker.cluster import cluster as broker_cluster
from tidelog.broker.cluster import membership
from tidelog.broker.produce.hand_over import HandOvers
from tidelog.cluster.model import DuplicateBrokerError
from tidelog.log.base.errors import StorageError, TidelogError
from tidelog.log.follow import tailing
from tidelog.log.group_commit.engine import PendingEntry
from tidelog.server.base.blocking import in_threads
from tidelog.server.base.listener_settings import ListenerSettings

IDEMPOTENT, PLAIN = "once", "plain"
TOPICS = (IDEMPOTENT, PLAIN)
PORT = 9092
TOPIC_CONFIG = {"log.checkpoint.interval": "20", "log.min.age.ms": "10000"}
# How many calls of a broker wait for its store at once.
THREADS = 4


@dataclass(frozen=True)
class BrokersPlan:
    """What kind of run a seed stands for. Means in seconds."""

    brokers: int
    partitions: int
    producers: int
    plain_producers: int
    consumers: int
    statics: int
    duration_s: float
    pause_s: float
    mishap_s: float
    session_ms: int
    weather: Weather
    trouble: Trouble
    on_disk: bool  # brokers share a machine's wall clock; else each has its own
    copiers: int  # transactional ids that copy records
    twins: bool  # whether two producers sometimes have one transactional id
    abandoned: bool  # whether one id's producers die, and none comes after them
    leaders: str  # how many brokers lead a topic, and the least time between two changes
    leaders_s: float
    overlaps: bool  # whether brokers stage entries ahead, however short commits are

    @staticmethod
    def of(seed: int) -> "BrokersPlan":
        rng = Random(f"brokers plan {seed}")
        rough, stormy = rng.choice([0.0, 0.0, 0.3, 1.0]), rng.choice([0.0, 0.3, 1.0])
        consumers = rng.choice([0, 1, 2, 3])
        return BrokersPlan(
            brokers=rng.choice([1, 2, 3, 3, 4]),
            partitions=rng.choice([1, 2, 3]),
            producers=rng.choice([1, 2, 2]),
            plain_producers=rng.choice([0, 0, 1]),
            consumers=consumers,
            statics=rng.choice([0, 0, consumers]),
            duration_s=rng.uniform(15, 35),
            pause_s=rng.choice([0.7, 1.5, 3.0]),
            mishap_s=rng.choice([2.0, 4.0, 8.0]),
            session_ms=rng.choice([6_000, 10_000]),
            weather=Weather(
                late=0.01 * stormy, reset_before=0.01 * stormy, reset_after=0.01 * stormy, silent=0.005 * stormy
            ),
            trouble=Trouble(
                slow=rng.choice([0.0, 0.0, 0.003]),
                unsent=0.002 * rough,
                lost=0.003 * rough,
                late=0.001 * rough,
                misread=0.005 * rough,
                conflict=0.005 * rough,
                full=0.0005 * rough,
                freeze=0.0,
                freeze_at_put=rng.choice([0.0, 0.0, 0.002]),
            ),
            on_disk=rng.random() < 0.5,
            copiers=rng.choice([0, 0, 1, 2]),
            twins=rng.random() < 0.5,
            abandoned=rng.random() < 0.3,
            leaders=rng.choice(["auto", "auto", "auto", "all", "2"]),
            leaders_s=rng.choice([0.5, 1.0, 3.0]),
            overlaps=seed % 3 == 0,
        )


class SeededUuids(SeededIds):
    """UUIDs, as Kafka's protocol has topics' ids."""

    def new(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))


class DriftingClock(ProcessClock):
    """A process' clocks, whose quartz is a little fast or slow."""

    def __init__(self, world: SimWorld, process: Process, rate: float) -> None:
        super().__init__(world, process)
        self._rate = rate

    def elapsed_s(self) -> float:
        return super().elapsed_s() * self._rate

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / self._rate)


class BrokersWorld(SimWorld):
    """The brokers, the network, and the clients."""

    history: BrokersJournal

    def __init__(self, seed: int, plan: BrokersPlan, trace: list[str] | None = None) -> None:
        super().__init__(Random(f"brokers run {seed}"), plan)
        self.seed = seed
        self.history = BrokersJournal(self.scheduler, plan.partitions, trace=trace)
        self.network = SimNetwork(self.scheduler, Random(f"network {seed}"))
        self.history.leaders_s = plan.leaders_s
        # What topics take of all brokers, in cores.
        self.cores: dict[str, float] = {}
        # When nothing goes wrong any more, and every client is to come to its end.
        self.settling = False
        copiers = COPIERS[: plan.copiers]
        self.topics = (*TOPICS, *((AUDIT, *(output for _, output, _ in copiers)) if copiers else ()))
        self.history.seen.copies += [Copy((IDEMPOTENT,), (output,), group) for _, output, group in copiers]
        self.places = [(topic, p) for topic in self.topics for p in range(plan.partitions)]
        # Where the partitions end that are copied, and all others, once nothing more is sent to them.
        self.copied_ends: dict[tuple[str, int], int] = {}
        self.ends: dict[tuple[str, int], int] = {}
        # Tasks of dead loops: nothing of them may run, not even when they are forgotten.
        self.graveyard: list[asyncio.Task[Any]] = []

    def is_read(self, positions: Mapping[tuple[str, int], int]) -> bool:
        """Whether that is all there is, and nothing more comes."""
        return bool(self.ends) and all(positions[place] >= end for place, end in self.ends.items())

    def current_program(self) -> SimProgram:
        """The process whose actor runs."""
        process = self.scheduler.current.process
        return next(program for program in self.programs if program.process is process)

    def brokers(self) -> list["BrokerProgram"]:
        """Those that are not dead."""
        return [program for program in self.programs if isinstance(program, BrokerProgram)]

    def bootstrap(self) -> list[tuple[str, int]]:
        """Where clients look for brokers."""
        return [(f"b{number}", PORT) for number in range(1, self.plan.brokers + 1)]

    def kill(self, program: SimProgram, *, silently: bool = False) -> None:
        """End a process; `silently`: its machine is gone, too, and resets no connections."""
        assert isinstance(program, LoopProgram)
        self.bury(program)
        super().kill(program)
        self.network.gone(program.process, silently=silently)

    def over(self, program: "LoopProgram") -> None:
        """A process has ended by itself. A broker is started again."""
        self.network.gone(program.process, silently=False)
        self.programs.remove(program)
        if isinstance(program, BrokerProgram):
            self.start(BrokerProgram(self, program.number), self.rng.choice([0.2, 1.0, 3.0]))

    def bury(self, program: SimProgram) -> None:
        """Keep what a loop leaves behind."""
        if isinstance(program, LoopProgram) and program.loop is not None:
            self.graveyard += asyncio.all_tasks(program.loop)

    def end(self) -> None:
        """Forget all tasks: the run is over."""
        for program in list(self.programs):
            self.bury(program)
            program.process.dead = True
        for task in self.graveyard:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            try:
                coroutine.close()  # type: ignore[union-attr]
            except (RuntimeError, ValueError):  # it wants to go on
                continue


class LoopProgram(SimProgram):
    """A process with an event loop."""

    def __init__(self, world: BrokersWorld, name: str) -> None:
        super().__init__(world, name)
        self.rng = Random(world.rng.getrandbits(64))
        self.ids = SeededUuids(world.rng.getrandbits(64))
        self.rate = 1.0 if world.plan.on_disk else self.rng.choice([0.995, 1.0, 1.005])
        self.clock = DriftingClock(world, self.process, self.rate)
        self.loop: SimLoop | None = None
        self.is_over = False

    def run_loop(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a coroutine in a loop of this process."""
        self.loop = SimLoop(self.world.scheduler, self.clock, self.world.network, self.rate)
        self.world.history.in_loops.add(self.world.scheduler.current)
        self.world.network.join(Host(self.process, self.loop, self.name))
        try:
            self.loop.run_until_complete(main())
        finally:
            self.world.history.faults += [f"{self.name}: {fault}" for fault in self.loop.faults]
        self.is_over = True
        self.world.over(self)


class SimShares(TopicShares):
    """What topics take of a broker: the same of each."""

    def __init__(self, world: BrokersWorld) -> None:
        self._world = world

    def look(self, now_s: float) -> dict[str, float]:
        del now_s
        shares = {topic: cores / self._world.plan.brokers for topic, cores in sorted(self._world.cores.items())}
        self.cores = sum(shares.values())
        return shares


class BrokerProgram(LoopProgram):
    """A broker's process."""

    def __init__(self, world: BrokersWorld, number: int) -> None:
        super().__init__(world, f"b{number}")
        self.number = number
        self.broker: Broker | None = None
        self.is_stopping = False
        self._stop: asyncio.Event | None = None

    def run(self) -> None:
        self.open()
        self.run_loop(self._serve)

    def stop(self) -> None:
        """SIGTERM."""
        self.is_stopping = True
        if self.loop is not None and self._stop is not None:
            self.loop.call_soon_threadsafe(self._stop.set)

    async def _serve(self) -> None:
        plan = self.world.plan
        settings = BrokerSettings(
            {"PLAINTEXT": ListenerSettings(self.name, PORT)},
            id=self.number,
            drain_s=2.0,
            cache_bytes=self.rng.choice([2_000, 1_000_000]),
            cache_files_bytes=20_000 * (self.number % 2),
            groups=GroupSettings(initial_rebalance_delay_ms=self.rng.choice([0, 500])),
            default_replication_factor=min(3, plan.brokers),
            topic_leaders=plan.leaders,
            topic_leaders_interval_s=plan.leaders_s,
            linger=Linger(overlap_s=0.0) if plan.overlaps else None,
        )
        self._stop = asyncio.Event()
        pool = SimPool(self.world.scheduler, self.spawn, THREADS)
        broker = Broker(self.lake, settings, in_threads(pool), SimShares(self.world))
        try:
            await broker.start()
        except (StorageError, DuplicateBrokerError, TidelogError) as e:
            self.world.history.note(f"{self.name} does not start: {e}")
            return
        self.broker = broker
        self.world.history.note(f"{self.name} serves")
        if not self.is_stopping:
            await self._stop.wait()
        await broker.close()
        self.world.history.note(f"{self.name} is drained")


class _Mistakes(logging.Handler):
    """What brokers log as mistakes of their own."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self._faults.append(self.format(record))


@contextmanager
def _listening(faults: list[str]) -> Iterator[None]:
    """Keep the mistakes that brokers log; all else that they say is no news here."""
    logger, handler = logging.getLogger("tidelog.broker"), _Mistakes(faults)
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def _staging(history: BrokersJournal) -> Callable[..., None]:
    """Entries that are counted where they are staged ahead."""
    stage = PendingEntry.stage_ahead

    def counted(self: Any) -> None:
        stage(self)
        history.counts["staged ahead"] += self._staged is not None

    return counted


def _counting(history: BrokersJournal) -> Callable[..., Awaitable[Any]]:
    """Hand-overs that are counted by what became of them."""
    handed_over = HandOvers._handed_over

    async def counted(self: Any, committer: Any, topic: Any, share: Any) -> Any:
        answer = await handed_over(self, committer, topic, share)
        history.counts[f"handed over: {answer.outcome}"] += 1
        return answer

    return counted


@contextmanager
def on_stage(world: BrokersWorld) -> Iterator[None]:
    """Brokers whose threads, pipes and sockets are simulated."""
    threads = SimThreads(world.scheduler, lambda name, body: world.current_program().spawn(name, body))
    pipes = SimPipes(world.scheduler)
    with ExitStack() as stack:
        stack.enter_context(inline(world.scheduler))
        stack.enter_context(_listening(world.history.faults))
        for module in (broker_topics, broker_cluster, membership, following, access_log):
            stack.enter_context(patch.object(module, "threading", threads))
        stack.enter_context(patch.object(HandOvers, "_handed_over", _counting(world.history)))
        stack.enter_context(patch.object(PendingEntry, "stage_ahead", _staging(world.history)))
        stack.enter_context(patch.object(tailing, "os", pipes))
        stack.enter_context(patch.object(tailing, "select", pipes))
        stack.enter_context(patch.object(broker_module, "listen", listen))
        try:
            yield
        finally:
            world.end()
