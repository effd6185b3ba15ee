"""Maintenance of a lake with all that is in it: topics, groups, transactions, and the tables of brokers and access.

`tidelog maintain`, brokers, the console and Spark's jobs have it run, once or in rounds, and keys erased.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tidelog.access.access_log import AccessLog
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cuts.cut_log import CutLog
from tidelog.groups.store.adapters import GroupsAndTransactions, LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.retention.compaction.run import Compactor
from tidelog.retention.key_erasure import KeyErasure, erase_keys
from tidelog.retention.maintenance import COMPACT, MERGE, PARTS, RETAIN, maintain
from tidelog.retention.report import MaintenanceReport, ReportRow
from tidelog.retention.rewrites.executors import Executor
from tidelog.retention.run_history import MaintenanceRun
from tidelog.transactions.upkeep import TransactionUpkeep


class LakeMaintenance:
    """Maintains a lake, as often as it is asked to.

    `executor`, `compactor`: what reads and writes segments; None for this process.
    """

    def __init__(self, lake: Lake, executor: Executor | None = None, compactor: Compactor | None = None) -> None:
        self._lake = lake
        self._executor, self._compactor = executor, compactor
        groups = GroupLog(lake)
        self._transactions = TransactionUpkeep(lake, LoggedOffsets(groups))
        others = (ClusterLog(lake), AccessLog(lake), CutLog(lake))
        further = lambda: [table for other in others for table in other.tables()]  # noqa: E731
        self._groups = GroupsAndTransactions(groups, self._transactions, further)

    def run(
        self,
        *,
        only: Collection[str] = PARTS,
        topics: Sequence[str] | None = None,
        pattern: str | None = None,
        now_ms: int | None = None,
        dry_run: bool = False,
    ) -> MaintenanceReport:
        """One run: what it takes, and raises, is as `maintain` has it."""
        return maintain(
            self._lake, only=only, topics=topics, pattern=pattern, now_ms=now_ms, dry_run=dry_run,
            executor=self._executor, compactor=self._compactor, groups=self._groups,
            needed=self._transactions.needed_files,
        )  # fmt: skip

    def due(self) -> list[ReportRow]:
        """What retention, merges and compaction would do now. Raises as `maintain` does."""
        plan = self.run(only=(RETAIN, MERGE, COMPACT), dry_run=True)
        return [row for row in plan.rows() if not row.is_idle]


class RunCounts:
    """The rounds of a loop by outcome, and times of the elapsed clock. Written by one thread, read by any."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.runs = {"done": 0, "failed": 0}
        self.failures = 0
        self.began_s: float | None = None
        self.ended_s: float | None = None
        self.took_s = 0.0

    def round(self, run: Callable[[], MaintenanceReport]) -> TidelogError | None:
        """Have a run take place, and count it: the error that ended it, which may be over by the next round."""
        began_s = self.began_s = self._clock.elapsed_s()
        error: TidelogError | None = None
        try:
            failures = len(run().failures())
        except TidelogError as e:
            failures, error = 1, e
        self.began_s, self.ended_s = None, self._clock.elapsed_s()
        self.took_s, self.failures = self.ended_s - began_s, failures
        self.runs["failed" if failures else "done"] += 1
        return error

    @property
    def running_s(self) -> float:
        """Since the round that goes on began; 0 between two."""
        began_s = self.began_s
        return 0.0 if began_s is None else self._clock.elapsed_s() - began_s

    @property
    def idle_s(self) -> float | None:
        """Since the last round ended; None before."""
        ended_s = self.ended_s
        return None if ended_s is None else self._clock.elapsed_s() - ended_s


def newest_whole_run(runs: Iterable[MaintenanceRun]) -> MaintenanceRun | None:
    """The newest run of all of a lake. `runs`: the newest first."""
    return next((run for run in runs if run.whole), None)


@dataclass(frozen=True, slots=True)
class LakeErasure:
    """Keys that were erased from topics in one run, or, dry, would be."""

    run_id: str
    topics: tuple[KeyErasure, ...]

    @property
    def done(self) -> bool:
        """Whether no file of the topics holds such a record any more."""
        return all(topic.done for topic in self.topics)

    @property
    def failed(self) -> bool:
        """Whether a partition keeps its records."""
        return any(topic.failures for topic in self.topics)

    @property
    def waits(self) -> bool:
        """Whether files that may hold such records are yet to be deleted, now that they left their topics."""
        return any(topic.waiting and not topic.dry_run for topic in self.topics)


def erase(
    lake: Lake,
    topics: Sequence[str],
    keys: frozenset[bytes],
    *,
    executor: Executor | None = None,
    dry_run: bool = False,
    wait: bool = False,
) -> LakeErasure:
    """Erase keys from topics, also from transactions that are committed and not yet applied, as `erase_keys` does.

    Raises as `erase_keys`, and before anything is changed where a topic is not there.
    """
    for topic in topics:
        lake.topic(topic).state()
    run_id = lake.ids.new()
    transactions = TransactionUpkeep(lake, LoggedOffsets(GroupLog(lake)))
    erasures = [
        erase_keys(
            lake, topic, keys, executor=executor, run_id=run_id, dry_run=dry_run, wait=wait,
            needed=transactions.needed_files, settle=transactions.complete_for,
        )
        for topic in topics
    ]  # fmt: skip
    return LakeErasure(run_id, tuple(erasures))
