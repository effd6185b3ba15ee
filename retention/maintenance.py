"""Maintenance: what keeps a lake small and fast, for all its topics or some, in one run.

For each topic: expiry, merging, compaction; then purging, and the tables of groups. Plans are pure, an executor carries
them out, the door takes what comes of it. A run may be killed anywhere and run again, and two at once are safe: one of
them loses what both did, says so, and is done.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

from tidelog.log.base.errors import (
    InvalidConfigError,
    ObjectNotFoundError,
    TidelogError,
    TopicChangedError,
    UnknownTopicError,
)
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.group_ports import GroupUpkeep
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.state.topic_state import ROWS, Segment, TopicState
from tidelog.log.upkeep.holds import Holder, NullHolder
from tidelog.retention.compaction.run import CompactionReport, Compactor, LocalCompactor, compact
from tidelog.retention.expiry import OPERATION as RETENTION
from tidelog.retention.expiry import Expiry, decide_expiry, in_steps, kept_by_the_future, plan_expiry
from tidelog.retention.merging import MOST_INPUTS, plan_merges, shape_of
from tidelog.retention.purge.plan import clock_problem
from tidelog.retention.purge.run import Needed, Purged, Purger, no_intents, purgeable
from tidelog.retention.report import Failure, MaintenanceReport, Merged, OffsetsReport, Retained, TopicReport
from tidelog.retention.rewrites.commit import Rewriting, rewrite
from tidelog.retention.rewrites.executors import Executor, LocalExecutor, Task
from tidelog.retention.rewrites.units import Unit, plan_cuts
from tidelog.retention.run_history import note_run

R = TypeVar("R")

RETAIN, COMPACT, MERGE, PURGE, OFFSETS = PARTS = ("retention", "compact", "merge", "purge", "offsets")
# What a topic's history calls a merge.
OPTIMIZE = "OPTIMIZE"
# The fewest files of a table of rows that a job compacts.
_FEWEST_ROW_FILES = 2
# A unit takes a limited number of segments: what very many become is merged once more, but not what comes meanwhile.
_MOST_PASSES = 3


def maintain(
    lake: Lake,
    *,
    only: Collection[str] = PARTS,
    topics: Sequence[str] | None = None,
    pattern: str | None = None,
    now_ms: int | None = None,
    dry_run: bool = False,
    executor: Executor | None = None,
    compactor: Compactor | None = None,
    groups: GroupUpkeep | None = None,
    needed: Needed = no_intents,
) -> MaintenanceReport:
    """Do the parts `only` of maintenance on the topics named, on those whose whole name `pattern` matches, or on all.

    `now_ms` is the time that the plans see (ms since the epoch), by default the lake's clock's. `dry_run` plans, each
    part on what is there now, and writes nothing. `groups` are looked after when no topics
    are chosen. `needed` tells a purge which files undone transactions name. What fails is named in the report, and the
    rest goes on.
    Raises `re.error` for a pattern that is none, `StorageError` or `InvalidConfigError` when the lake can't be listed
    or its configuration can't be read.
    """
    lake.reload_config()  # a loop may run for weeks
    run_id = lake.ids.new()
    at_ms = lake.clock.now_ms() if now_ms is None else now_ms
    began_s = lake.clock.elapsed_s()
    report = MaintenanceReport(run_id, lake.uri, at_ms, dry_run)
    holds = NullHolder if dry_run else Holder
    with holds(lake.storage, lake.clock, lake.ids, f"maintenance run {run_id}") as holder:
        run = _MaintenanceRun(
            lake,
            run_id,
            at_ms,
            dry_run,
            frozenset(only),
            holder,
            Purger(lake, holder, run_id, needed),
            executor or LocalExecutor(lake.storage, lake.ids),
            compactor or LocalCompactor(lake.storage, lake.ids),
        )
        if run.only & {RETAIN, COMPACT, MERGE, PURGE}:
            report.topics.extend(run.maintain_topics(_chosen(lake, topics, pattern, deleted=PURGE in run.only)))
        if OFFSETS in run.only and groups is not None and topics is None and pattern is None:
            report.offsets = run.maintain_offsets(groups)
    if not dry_run:
        took_ms = round((lake.clock.elapsed_s() - began_s) * 1000)
        note_run(lake, report, only, whole=topics is None and pattern is None, took_ms=took_ms)
    return report


def _chosen(lake: Lake, topics: Sequence[str] | None, pattern: str | None, *, deleted: bool) -> list[str]:
    """The names of the topics to look after; with `deleted`, of those whose files may still be there, too."""
    if topics is not None:
        return list(dict.fromkeys(topics))
    names = sorted({*lake.topics(), *(purgeable(lake) if deleted else ())})
    matches = re.compile(pattern).fullmatch if pattern is not None else bool
    return [name for name in names if matches(name)]


@dataclass
class _MaintenanceRun:
    """One run. `now_ms` is what plans see; what entries say of the time is the clock's."""

    lake: Lake
    run_id: str
    now_ms: int
    dry_run: bool
    only: frozenset[str]
    holder: Holder
    purger: Purger
    executor: Executor
    compactor: Compactor
    _spared: dict[str, set[int]] = field(default_factory=dict)

    def maintain_topics(self, names: Iterable[str]) -> list[TopicReport]:
        """Each topic in turn; purges come last, so that what they wait for has waited."""
        reports = [TopicReport(name) for name in names]
        ready = [report for report in reports if self._part(report, "", self._is_ready) is True]
        for report in ready:
            if self._part(report, "", lambda r: self.lake.peek(r.topic)) is not None:
                self._maintain(report)
        for report in ready:
            if PURGE in self.only and not report.gone:
                report.purge = self._part(report, PURGE, self._purge)
        return reports

    def _maintain(self, report: TopicReport) -> None:
        if RETAIN in self.only:
            report.retention = self._part(report, RETAIN, self._retain)
        if MERGE in self.only:  # before compaction, whose one entry is then small enough to win its races
            report.merge = self._part(report, MERGE, self._merge)
        if COMPACT in self.only:
            report.compact = self._part(report, COMPACT, self._compact)

    def _part(self, report: TopicReport, part: str, do: Callable[[TopicReport], R]) -> R | None:
        """Do a part; None when it fails, and the report then says why, or when the topic is deleted meanwhile."""
        if report.gone:
            return None
        try:
            return do(report)
        except (TopicChangedError, UnknownTopicError) as e:
            if part:
                report.gone = True
            else:
                report.failures.append(Failure("topic", str(e)))
        except TidelogError as e:
            report.failures.append(Failure(part or "topic", str(e)))
        return None

    def _is_ready(self, report: TopicReport) -> bool:
        """Whether the topic can be looked after: it is one, and neither its policy nor the clock is wrong."""
        lake, name = self.lake, report.topic
        state = lake.peek(name)
        if state is not None:
            self._config(name, state)
        elif PURGE not in self.only or lake.log(name).door.state.version < 0:
            require_topic(lake.log(name).door.state, name)  # only a purge looks after a deleted topic
        self.purger.look(name)
        newest_ms = 0 if state is None else state.last_modification_ms
        problem = clock_problem(lake.clock.now_ms(), self.holder.store_ms(name), newest_ms)
        if problem is not None:
            report.failures.append(Failure("clock", f"Topic '{name}': {problem}"))
        return problem is None

    def _config(self, name: str, state: TopicState) -> TopicConfig:
        """The topic's configuration. Raises `InvalidConfigError` for one that contradicts itself."""
        try:
            return TopicConfig.parse(state.overrides, defaults=self.lake.config())
        except InvalidConfigError as e:
            raise InvalidConfigError(
                f"Topic '{name}' is left as it is: {e} (Set it with lake.alter_topic or 'tidelog topic alter', the"
                " lake's defaults with 'tidelog lake alter'.)"
            ) from e

    def _look(self, name: str) -> tuple[TopicState, TopicConfig]:
        state = self.lake.topic(name).state()
        return state, self._config(name, state)

    # --- the parts -----------------------------------------------------------------------------------------

    def _retain(self, report: TopicReport) -> Retained:
        name = report.topic
        state, config = self._look(name)
        plan = plan_expiry(state, config, self.now_ms, lambda segment: self._stored_ms(name, segment))
        gone = [s for p, start in plan.starts.items() for s in state.live(p) if s.end <= start]
        future = kept_by_the_future(state, config, self.now_ms)
        for step in () if self.dry_run else in_steps(state, plan):
            self._expire(name, step)
        units = plan_cuts(self.lake.topic(name).state(), name, config)
        cut = self._rewrite(report, RETAIN, RETENTION, units)
        return Retained(
            dict(plan.starts),
            len(gone),
            sum(s.size for s in gone),
            len(units) if self.dry_run else len(cut.landed),
            len(cut.lost),
            future,
        )

    def _stored_ms(self, name: str, segment: Segment) -> int | None:
        try:
            return self.lake.storage.head(f"{name}/{unquote(segment.path)}").modified_ms
        except ObjectNotFoundError:  # lost; then only what the log says is left
            return None

    def _expire(self, name: str, step: Expiry) -> None:
        now_ms = self.lake.clock.now_ms()

        def decide(state: TopicState) -> Outcome[Mapping[int, int]]:
            return decide_expiry(state, name, step, now_ms=now_ms, parameters={"run": self.run_id})

        self.lake.commit(name, decide, durable=False)  # nothing comes in that could be lost

    def _compact(self, report: TopicReport) -> CompactionReport | None:
        if "compact" not in self._look(report.topic)[1].cleanup_policy:
            return None
        compacted = compact(
            self.lake,
            report.topic,
            now_ms=self.now_ms,
            compactor=self.compactor,
            run_id=self.run_id,
            dry_run=self.dry_run,
        )
        self._fail(report, COMPACT, compacted.failures)
        return compacted

    def _merge(self, report: TopicReport) -> Merged:
        name = report.topic
        state, config = self._look(name)
        before = shape_of(state, config)
        units = plan_merges(state, name, config, self.now_ms)
        if self.dry_run:
            return Merged(len(units), 0, before, before.replaced((unit, 1, unit.size) for unit in units))
        ends = {partition: state.end(partition) for partition in range(state.partitions)}
        count, lost, after = 0, 0, before
        for _ in range(_MOST_PASSES):
            done = self._rewrite(report, MERGE, OPTIMIZE, units)
            count, lost = count + len(units), lost + len(done.lost)
            after = after.replaced((d.unit, len(d.outputs), d.bytes_out) for d in done.landed)
            if all(len(d.unit.inputs) < MOST_INPUTS for d in done.landed):
                break
            units = plan_merges(self.lake.topic(name).state(), name, config, self.now_ms, ends)
        return Merged(count, lost, before, after)

    def _purge(self, report: TopicReport) -> Purged:
        spare = self._spared.get(report.topic, ())
        return self.purger.purge(report.topic, now_ms=self.now_ms, dry_run=self.dry_run, spare=spare)

    def _rewrite(self, report: TopicReport, part: str, operation: str, units: Sequence[Unit]) -> Rewriting:
        """Carry units out, but not those of partitions that failed before."""
        spared = self._spared.get(report.topic, ())
        tasks = [Task(unit) for unit in units if unit.partition not in spared]
        if self.dry_run or not tasks:
            return Rewriting()
        done = rewrite(
            self.lake, report.topic, tasks, self.executor, operation=operation, parameters={"run": self.run_id}
        )
        self._fail(report, part, done.failures)
        return done

    def _fail(self, report: TopicReport, part: str, failures: Mapping[int, str]) -> None:
        report.failures.extend(Failure(part, message, partition) for partition, message in sorted(failures.items()))
        self._spared.setdefault(report.topic, set()).update(failures)

    def maintain_offsets(self, groups: GroupUpkeep) -> OffsetsReport:
        """Expire groups' offsets, then compact and purge the tables that hold them."""
        report = OffsetsReport()
        with self._told(report):
            expired = groups.expire_offsets(self.now_ms, dry_run=self.dry_run)
            report.expired = {group: list(gone) for group, gone in expired.items()}
        tables: Sequence[RowLog[Any]] = ()
        with self._told(report):
            tables = groups.tables()
        ready: list[RowLog[Any]] = []
        for table in tables:  # all of them first: one purge waits for its look, and the others have waited
            with self._told(report):
                if table.fact(ROWS) is not None:  # of several, some were never written to
                    self.purger.look_rows(table)
                    ready.append(table)
        for table in ready:
            with self._told(report):
                self._maintain_table(report, table)
        return report

    def _maintain_table(self, report: OffsetsReport, table: RowLog[Any]) -> None:
        if table.chores.plan(_FEWEST_ROW_FILES) is not None and (
            self.dry_run or table.chores.compact(_FEWEST_ROW_FILES, {"run": self.run_id})
        ):  # else another run was faster
            report.compacted.append(table.name)
        report.purged.append(self.purger.purge_rows(table, now_ms=self.now_ms, dry_run=self.dry_run))

    @contextmanager
    def _told(self, report: OffsetsReport) -> Iterator[None]:
        """What fails is named, and the rest goes on."""
        try:
            yield
        except TidelogError as e:
            report.failures.append(Failure(OFFSETS, str(e)))
