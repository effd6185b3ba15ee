"""A simulated lake with an input, outputs, transactional copiers and maintenance: what there is and what goes wrong."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

from groups_sim_world import Program
from history import Copy, History
from sim_journal import Journal
from sim_program import SimWorld
from sim_scheduler import Actor, Process, Scheduler
from sim_storage import Trouble

from tidelog.log.rows import flat_combining
from tidelog.log.upkeep.holds import Holder
from tidelog.retention import maintenance
from tidelog.retention.compaction import survivors
from tidelog.retention.purge import run as purge_run
from tidelog.retention.rewrites import execute, executors

INPUT, AUDIT = "in", "audit"
PARTITIONS = 2
TIMEOUT_MS = 6_000
# A transactional id each, with a group of its own: (id, output, group).
COPIERS = (("x", "out-x", "group-x"), ("y", "out-y", "group-y"))
TOPICS = (INPUT, AUDIT, *(output for _, output, _ in COPIERS))
TOPIC_CONFIG = {"log.checkpoint.interval": "10", "log.min.age.ms": "10000", "file.delete.delay.ms": "3000"}


@dataclass(frozen=True)
class TransactionsPlan:
    """What kind of run a seed stands for. Means in seconds."""

    duration_s: float
    pause_s: float
    mishap_s: float
    copiers: int
    maintainers: int
    operators: int
    twins: bool  # whether two copiers sometimes have one transactional id
    expires: bool  # whether transactional ids are forgotten within the run
    trouble: Trouble
    on_disk: bool = False  # processes have clocks of their own

    @staticmethod
    def of(seed: int) -> "TransactionsPlan":
        rng = Random(f"transactions plan {seed}")
        rough = rng.choice([0.0, 0.3, 1.0])
        return TransactionsPlan(
            duration_s=rng.uniform(30, 70),
            pause_s=rng.choice([1.0, 3.0]),
            mishap_s=rng.choice([2.0, 5.0, 12.0]),
            copiers=rng.choice([1, 2, 2]),
            maintainers=rng.choice([0, 1, 1]),
            operators=rng.choice([0, 1]),
            twins=rng.random() < 0.6,
            expires=rng.random() < 0.2,
            trouble=Trouble(
                slow=rng.choice([0.0, 0.005]),
                unsent=0.004 * rough,
                lost=0.01 * rough,
                late=0.004 * rough,
                misread=0.01 * rough,
                conflict=0.01 * rough,
                full=0.002 * rough,
                freeze=rng.choice([0.0, 0.0005]),
                freeze_at_put=rng.choice([0.0, 0.02, 0.06]),
            ),
        )


@dataclass
class TransactionsJournal(Journal):
    """The run's events, and what clients saw."""

    history: History
    counts: Counter[str] = field(default_factory=Counter)

    def called(self, process: Process, method: str, path: str, result: object) -> None:
        if method == "FROZEN":
            self.counts["frozen"] += 1
        if method in ("FROZEN", "put_if_absent", "put", "create", "delete"):
            self.note(f"{process.name}: {method} {path} {result if isinstance(result, str | bool) else ''}")

    def killed(self, process: Process) -> None:
        self.counts["killed"] += 1
        super().killed(process)

    def stored(self, method: str, path: str, data: bytes) -> None:
        """Nothing is read off the bytes: what clients saw must do."""


class TransactionsWorld(SimWorld):
    """The copiers, and what produces, reads and maintains beside them."""

    history: TransactionsJournal

    def __init__(self, seed: int, plan: TransactionsPlan, trace: list[str] | None = None) -> None:
        super().__init__(Random(f"transactions run {seed}"), plan)
        self.seen = History(copies=[Copy((INPUT,), (output,), group) for _, output, group in COPIERS])
        self.history = TransactionsJournal(self.scheduler, self.seen, trace=trace)

    def launch(self, name: str, role: Callable[[Program], None], delay: float = 0.0) -> None:
        """Start a process that plays a role, after `delay` seconds."""
        self.start(Program(self, name, role), delay)


class InlinePool(Executor):
    """A pool of threads without threads: work is done where it is submitted."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as e:
            future.set_exception(e)
        return future


class SimEvent:
    """`threading.Event` of a world: an actor that waits lets the others run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False
        self._waiters: list[Actor] = []

    def set(self) -> None:
        self._is_set = True
        for waiter in self._waiters:
            self._scheduler.wake(waiter)
        self._waiters.clear()

    def wait(self) -> None:
        while not self._is_set:
            self._waiters.append(self._scheduler.current)
            self._scheduler.block()


class InlineHolder(Holder):
    """Holds that no process renews: simulated runs of maintenance are shorter than they last."""

    def __enter__(self) -> "InlineHolder":
        return self


@contextmanager
def inline(scheduler: Scheduler) -> Iterator[None]:
    """Maintenance without threads, and threads that line up for a table of rows on the scheduler."""

    real = flat_combining.Waiter

    def waiter(request: Any) -> flat_combining.Waiter[Any]:
        return real(request, wake=SimEvent(scheduler))  # type: ignore[arg-type]  # it is asked for no more

    with ExitStack() as stack:
        stack.enter_context(patch.object(flat_combining, "Waiter", waiter))
        for module in (execute, executors, purge_run, survivors):
            stack.enter_context(patch.object(module, "ThreadPoolExecutor", InlinePool))
        stack.enter_context(patch.object(maintenance, "Holder", InlineHolder))
        yield
