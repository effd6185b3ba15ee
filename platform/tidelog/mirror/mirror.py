"""A mirror: one process that makes a lake, the follower, the same as another, the source, round after round.

A round reads the heads of the source's tables, of transactions and groups first; copies the files that the entries up
to there name; and puts the entries, those of transactions last. It may stop anywhere: the follower's own log says how
far it got, and an entry is put as the source has it, or is there already.
"""

import logging
import re
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Final, TypeVar

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cuts.rules import known_up_to
from tidelog.log.base.errors import CorruptLogError, MissingSegmentError, StorageError, TidelogError
from tidelog.log.base.rate import Rate
from tidelog.log.checkpoints.reading import newest_checkpoint_version
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Distant
from tidelog.log.upkeep.holds import Holder
from tidelog.mirror import round_journal
from tidelog.mirror.checkpoint_start import CheckpointStart
from tidelog.mirror.copying import Copier
from tidelog.mirror.divergence import DivergedError, Divergence
from tidelog.mirror.follower_log import divergence, head_of, put_entries
from tidelog.mirror.follower_setup import require_follower
from tidelog.mirror.follower_upkeep import FollowerUpkeep
from tidelog.mirror.lease import FollowerLease
from tidelog.mirror.plan import (
    RoundPlan,
    Ship,
    ShippedEntry,
    SourceHead,
    TableStart,
    begins,
    needed_files,
    plan_round,
    read_entry,
)
from tidelog.mirror.source_logs import PassedEntryError, SourceLog, SourceTables
from tidelog.mirror.tables import Rank
from tidelog.mirror.truncation import cut_off, note_diverged, noted_diverged
from tidelog.operations.mirrors import MirrorStatus, TableStatus, read_status, write_status
from tidelog.transactions.rows import KIND, TransactionsFold

logger = logging.getLogger("tidelog.mirror")

R = TypeVar("R")

STATUS_EVERY_S: Final = 1.0
# How often the lake's own file, and the source's cluster, are looked at.
LAKES_EVERY_S: Final = 2.0
# Pauses between looks that found nothing: from the first to the longest, on a local disk and at an object store.
_PAUSES_S: Final = {False: (0.005, 0.05), True: (0.05, 1.0)}
_DELAYS: Final = 1_000
_ACCESS_ROOT: Final = "access.root"


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What a round did. `whole`: the follower is as the source was at one time, in every table that is shipped."""

    entries: int
    copied_bytes: int
    whole: bool


@dataclass
class _Counts:
    rounds: int = 0
    entries: int = 0
    whole_ms: int | None = None
    cluster_epoch: int = 0
    delays_ms: deque[int] = field(default_factory=lambda: deque(maxlen=_DELAYS))


class Mirror:
    """Mirrors `source` to `follower`, which follows it by its own file (`adopt`). For one thread.

    `wanted`: topics are shipped whose name it matches, by default all. `bytes_per_s` limits what is copied. `discard`:
    what the follower has and the source hasn't is cut off; else such a table is not shipped. `promoting`: for the last
    rounds, which a promotion makes.
    """

    def __init__(
        self,
        source: Lake,
        follower: Lake,
        *,
        wanted: re.Pattern[str] | None = None,
        bytes_per_s: float | None = None,
        discard: bool = False,
        promoting: bool = False,
        lease: FollowerLease | None = None,
        copier: Copier | None = None,
    ) -> None:
        self._source = source
        self._follower = follower
        self._discard = discard
        self._promoting = promoting
        self._lease = lease
        self._number = 0 if lease is None else lease.number
        self.clock = source.clock
        self.run_id = follower.ids.new()
        self._copier = copier or Copier(source.storage, follower.storage, Rate(self.clock, bytes_per_s))
        self._starts = CheckpointStart(source.storage, follower.storage, self._copier, self.clock, source.ids)
        self._upkeep = FollowerUpkeep(follower)
        self._tables = SourceTables(source.storage, self._copier, wanted, self._open)
        self._logs, self._ranks = self._tables.logs, self._tables.ranks
        # The follower's heads, of tables that it has.
        self._heads: dict[str, int] = {}
        self._problems: dict[str, str] = {}
        self._diverged: dict[str, Divergence] = {}
        self._discarded: list[Divergence] = []
        # Files of these tables may have been copied by a round that did not end.
        self._again: set[str] = set()
        self._decided: dict[str, int] | None = None
        self._stuck = False
        self._counts = _Counts()
        self._lakes_s = self._status_s = float("-inf")
        # What it said last; other threads may read it.
        self.said: MirrorStatus | None = None
        self._resume()

    def close(self) -> None:
        """Say that the mirror has ended, and end its threads."""
        self._upkeep.close()
        self._copier.close()
        self._say(ended=True)

    def _resume(self) -> None:
        """Go on where an earlier process was."""
        storage = self._follower.storage
        before = read_status(storage)
        if before is not None and before.source == self._source.uri:
            self._counts.whole_ms, self._counts.cluster_epoch = before.whole_ms, before.cluster_epoch
        round_journal.finish(storage, self._follower.ids)

    # --- rounds --------------------------------------------------------------------------------------------

    def run(self, wait: Callable[[float], bool]) -> None:
        """Rounds until `wait`, which waits for its number of seconds, says that it is to stop.

        Or until an operator promotes the follower (`LakeFollowsError`). While a store gives no answer it is tried
        again. Raises what no later round can mend.
        """
        distant = isinstance(self._source.storage, Distant)
        shortest_s, longest_s = _PAUSES_S[distant]
        pause_s = shortest_s
        while True:
            problem = ""
            try:
                moved = self.round().entries > 0
            except TidelogError as e:
                if not (isinstance(e, StorageError) or e.retriable):
                    raise
                logger.warning("A round of the mirror failed, and is tried again. %s", e)
                moved, problem = False, str(e)
                self._again.update(self._logs)
            self._say_now_and_then(problem)
            pause_s = shortest_s if moved else min(2 * pause_s, 1.0 if problem else longest_s)
            if wait(pause_s):
                return

    def round(self) -> RoundResult:
        """Ship what the source has now. Raises `LakeFollowsError` when the follower follows it no more."""
        before = self._copier.copied_bytes
        if self._lease is not None:
            self._lease.require(look=False)
        self._look_at_lakes()
        began_ms = self.clock.now_ms()
        stable = self._tables.look(self._problems)
        source = {name: log.head for name, log in self._logs.items() if name not in self._problems}
        part = self._part(source)
        source, stable = source | part, stable and not part
        plan = plan_round(source, self._heads, self._ranks, stable=stable)
        with ExitStack() as held:
            try:
                if plan.starts:
                    by = f"mirror to {self._follower.uri} {self.run_id}"
                    holder = held.enter_context(Holder(self._source.storage, self.clock, self._source.ids, by))
                    plan = self._begin_tables(plan, holder)
                entries = self._read(plan, stable=stable)
            except _StaleError as e:
                logger.info("%s", e)
                return RoundResult(0, self._copier.copied_bytes - before, False)
            shipped = self._ship(entries, atomic=plan.atomic)
        reached = all(self._heads.get(ship.table, -1) >= ship.to for ship in plan.ships)
        whole = plan.whole and reached and not self._problems and not part
        topics = {name: head.version for name, head in part.items() if self._ranks[name] < Rank.GROUPS}
        self._stuck = bool(part) and not any(self._heads.get(name, -1) >= to for name, to in topics.items())
        if whole:
            self._counts.whole_ms = began_ms
            self._again.clear()
        self._counts.rounds += 1
        self._counts.entries += len(shipped)
        # Files that wait for their entries were copied just now, or no upkeep goes on there.
        self._upkeep.look({n: head for n, head in self._heads.items() if n not in self._again}, shipped)
        return RoundResult(len(shipped), self._copier.copied_bytes - before, whole)

    def _part(self, source: Collection[str]) -> dict[str, SourceHead]:
        """Heads up to which a round ships, of tables that are far behind: it fits into memory, and ends before long.

        Where no topic got there, because a decision of a transaction comes first, the next round ships everything.
        """
        parts = () if self._stuck else [name for name in source if not self._begins(name)]
        found = {name: self._logs[name].next_head for name in parts}
        return {name: head for name, head in found.items() if head is not None}

    def _begins(self, name: str) -> bool:
        """Whether the table is begun from a checkpoint, from which it is not far to its head."""
        head = self._logs[name].head
        there = begins(head, self._heads.get(name))
        return there and newest_checkpoint_version(self._source.storage, name) > head.floor

    def _require_follower(self) -> None:
        if self._lease is not None:
            self._lease.require()
        require_follower(self._source, self._follower, promoting=self._promoting)

    def _look_at_lakes(self) -> None:
        now_s = self.clock.elapsed_s()
        if now_s - self._lakes_s < LAKES_EVERY_S:
            return
        self._require_follower()
        config = dict(self._source.reload_config().overrides)
        own = self._follower.config().overrides
        if own.get(_ACCESS_ROOT):  # where this lake's users are kept is a matter of its place
            config[_ACCESS_ROOT] = own[_ACCESS_ROOT]
        if config != own:
            changes = dict.fromkeys(own.keys() - config.keys()) | config
            self._follower.alter_config(changes)
        self._counts.cluster_epoch = max(self._counts.cluster_epoch, ClusterLog(self._source).look().epoch)
        self._problems = {name: why for name, why in self._problems.items() if name in self._diverged}
        self._lakes_s = now_s

    # --- tables that are new ---------------------------------------------------------------------------------

    def _open(self, name: str, found: Rank) -> SourceLog:  # noqa: ARG002 - the port's shape
        """A table's log at the source, after what the follower has of it."""
        head = head_of(self._follower.storage, name)
        log = self._logs[name] = SourceLog(self._source.storage, name, self.clock, -1 if head is None else head)
        log.look_at_floors()
        log.look()
        self._again.add(name)
        if head is not None:
            self._heads[name] = head
            self._compare(name, head)
        return log

    def _compare(self, name: str, head: int) -> None:
        """Refuse to go on where the follower's log is not the beginning of the source's."""
        source, follower = self._source.storage, self._follower.storage
        newest = head_of(source, name)
        noted = noted_diverged(follower)
        difference = noted.get(name) or divergence(source, follower, name, -1 if newest is None else newest, head)
        if difference is None:
            return
        if self._discard:
            logger.warning("%s It is cut off, as asked for.", difference)
            cut_off(follower, name, difference.version)
            note_diverged(follower, {n: one for n, one in noted.items() if n != name})
            self._discarded.append(difference)
            self._start_over(name)
        else:
            self._diverged[name] = difference
            self._problems[name] = str(difference)
            logger.error("%s", difference)

    def _start_over(self, name: str) -> None:
        """Look at the follower's log again."""
        head = head_of(self._follower.storage, name)
        self._heads.pop(name, None)
        if head is not None:
            self._heads[name] = head
        if self._ranks[name] is Rank.TRANSACTIONS:
            self._decided = None
        log = self._logs[name]
        log.restart(-1 if head is None else head)
        log.look()

    # --- shipping ------------------------------------------------------------------------------------------

    def _begin_tables(self, plan: RoundPlan, holder: Holder) -> RoundPlan:
        """Begin tables from checkpoints, and ship what follows them with the rest of the round."""
        if any(start.again for start in plan.starts):
            self._counts.whole_ms = None  # from here on, until the round ends, tables are of different times
            self._say(durable=True)
        ships, whole = list(plan.ships), plan.whole
        for start in plan.starts:
            version = self._try(start.table, partial(self._begin_table, start, holder))
            if version is None:
                continue
            whole = whole and version <= start.to
            if version < start.to:
                ships.append(Ship(start.table, version, start.to))
        ships.sort(key=lambda s: (self._ranks[s.table], s.table))
        atomic = plan.atomic or any(self._ranks[s.table] is Rank.TRANSACTIONS for s in ships)
        return RoundPlan((), tuple(ships), atomic, whole)

    def _begin_table(self, start: TableStart, holder: Holder) -> int:
        self._require_follower()
        log = self._logs[start.table]
        version = self._starts.begin(log, start.to, holder)
        if version >= 0:
            self._heads[start.table] = version
            self._upkeep.began(start.table)
        if self._ranks[start.table] is Rank.TRANSACTIONS:
            self._decided = None
        log.look()
        return version

    def _read(self, plan: RoundPlan, *, stable: bool) -> list[ShippedEntry]:
        """The entries of a round, and their files at the follower. A table with a problem is left out."""
        shipped: list[ShippedEntry] = []
        for ship in plan.ships:
            entries = self._try(ship.table, partial(self._read_entries, ship, stable=stable))
            if entries and self._try(ship.table, partial(self._copy, ship.table, entries)) is not None:
                shipped.extend(entries)
        return shipped

    def _read_entries(self, ship: Ship, *, stable: bool) -> list[ShippedEntry]:
        log, decides = self._logs[ship.table], self._ranks[ship.table] is Rank.TRANSACTIONS
        try:
            entries = [read_entry(ship.table, v, data, decides=decides) for v, data in log.entries(ship.to)]
        except PassedEntryError as e:
            if log.look_at_floors() <= ship.after:
                raise CorruptLogError(f"{e} It was there before: 'tidelog check' says what else is lost.") from e
            raise _StaleError(f"{e} The source trimmed its log meanwhile: the table is begun again.") from e
        if stable:
            return entries
        to = known_up_to([(e.version, e.applied) for e in entries], self._known_decisions(), ship.to)
        return [entry for entry in entries if entry.version <= to]

    def _known_decisions(self) -> dict[str, int]:
        """The newest decision of each transactional id that the follower has."""
        if self._decided is None:

            def at(fold: TransactionsFold) -> dict[str, int]:
                return {one.transactional_id: layout.pack_epoch(one.epoch, one.number) for one in fold.all()}

            self._decided = self._follower.row_log(layout.TRANSACTIONS_TABLE, KIND).look(at)
        return self._decided

    def _copy(self, table: str, entries: Sequence[ShippedEntry]) -> bool:
        wanted = {path: size for path, size in needed_files(entries).items() if self._tables.ships(path)}
        missing = self._copier.copy(wanted, again=table in self._again)
        if missing:
            self._require_passed(table, entries, set(missing))
        return True

    def _require_passed(self, table: str, entries: Sequence[ShippedEntry], missing: set[str]) -> None:
        """Raise where a reader needs the files that are gone from the source."""
        for entry in entries:
            missing -= entry.strange.keys()
        removed = {path for entry in entries for path in entry.removes}
        missing -= removed
        log = self._logs[table]
        if missing and log.look_at_floors() >= entries[0].version:
            raise _StaleError(f"The source trimmed the log of '{table}' meanwhile: it is begun again.")
        lost = {path for entry in entries for path in entry.adds} & missing
        if lost:
            raise MissingSegmentError(
                f"{min(lost)} is not at the source, and its log names it: it is lost there. 'tidelog check' says what"
                " else is; the mirror goes on when it is restored or given up."
            )
        # What an intent named and is gone was applied, replaced and deleted since: the topic's entries tell the rest.

    def _ship(self, entries: Sequence[ShippedEntry], *, atomic: bool) -> list[ShippedEntry]:
        """Put entries whose files are there; those that were put."""
        storage = self._follower.storage
        if atomic and entries:
            self._require_follower()
            journal = [round_journal.JournalEntry(e.table, e.version, e.data) for e in entries]
            round_journal.begin(storage, journal, self._number)
        shipped: list[ShippedEntry] = []
        for _, of_rank in groupby(entries, key=lambda e: self._ranks[e.table]):
            by_table: dict[str, list[ShippedEntry]] = {}
            for entry in of_rank:
                by_table.setdefault(entry.table, []).append(entry)
            results = [*self._copier.run(self._put, by_table.values())]
            for done, _ in results:
                self._note_shipped(done)
                shipped.extend(done)
            for table, (_, error) in zip(by_table, results, strict=True):
                if isinstance(error, DivergedError):
                    self._compare(table, head_of(storage, table) or 0)
                elif error is not None:
                    raise error
        if atomic and entries:
            round_journal.end(storage, self._number)
        return shipped

    def _put(self, entries: Sequence[ShippedEntry]) -> tuple[list[ShippedEntry], Exception | None]:
        """Put entries of one table, in any thread: those that were put, and the error that stopped it."""
        table, left = entries[0].table, [(entry.version, entry.data) for entry in entries]
        while left:
            try:
                done = put_entries(self._follower.storage, table, left, self._follower.ids)
            except TidelogError as e:
                return [*entries[: len(entries) - len(left)]], e
            left = left[done:]
        return [*entries], None

    def _note_shipped(self, entries: Sequence[ShippedEntry]) -> None:
        now_ms = self.clock.now_ms()
        for entry in entries:
            self._logs[entry.table].shipped(entry.version)
            self._heads[entry.table] = entry.version
            self._again.discard(entry.table)
            if self._decided is not None:
                self._decided.update(entry.decided)
            self._counts.delays_ms.append(max(0, now_ms - entry.info.timestamp_ms))

    def _try(self, table: str, work: Callable[[], R]) -> R | None:
        """The result of a table's work; a problem of its own does not hold up the others."""
        try:
            return work()
        except _StaleError:
            raise
        except TidelogError as e:
            if e.retriable and not isinstance(e, MissingSegmentError):  # the store is away
                raise
            logger.warning("'%s' is not shipped. %s", table, e)
            self._problems[table] = str(e)
            self._logs[table].restart(self._logs[table].after)
            return None

    # --- status --------------------------------------------------------------------------------------------

    @property
    def diverged(self) -> list[Divergence]:
        """The tables that are not shipped because the follower's log is not the beginning of the source's."""
        return [self._diverged[name] for name in sorted(self._diverged)]

    @property
    def discarded(self) -> list[Divergence]:
        """What was cut off."""
        return list(self._discarded)

    @property
    def problems(self) -> dict[str, str]:
        """The tables that are not shipped, and why."""
        return dict(self._problems)

    def status(self, problem: str = "", *, ended: bool = False) -> MirrorStatus:
        """What there is to say now."""
        now_ms = self.clock.now_ms()
        tables = {}
        for name, log in sorted(self._logs.items()):
            waiting = self._upkeep.waiting(name)
            tables[name] = TableStatus(
                log.head.version,
                self._heads.get(name, -1),
                log.bytes_ahead(),
                self._problems.get(name, ""),
                sum(w.size for w in waiting),
                max((w.until_ms for w in waiting if w.until_ms is not None), default=None),
            )
        delays = sorted(self._counts.delays_ms)
        behind = [log.oldest_ahead_ms() for log in self._logs.values()]
        oldest_ms = min((ms for ms in behind if ms is not None), default=now_ms)
        return MirrorStatus(
            self._source.uri,
            self.run_id,
            now_ms,
            self._counts.whole_ms,
            sum(max(0, t.source - t.follower) for t in tables.values()),
            sum(t.behind_bytes for t in tables.values()),
            max(0, now_ms - oldest_ms),
            (delays[len(delays) // 2], delays[-1]) if delays else (0, 0),
            self._counts.rounds,
            self._counts.entries,
            self._copier.copied_bytes,
            self._counts.cluster_epoch,
            ended,
            problem,
            tables,
            [one.to_json() for one in self.diverged],
        )

    def _say_now_and_then(self, problem: str) -> None:
        now_s = self.clock.elapsed_s()
        if now_s - self._status_s >= STATUS_EVERY_S:
            self._status_s = now_s
            self._say(problem)

    def _say(self, problem: str = "", *, ended: bool = False, durable: bool = False) -> None:
        self.said = self.status(problem, ended=ended)
        write_status(self._follower.storage, self.said, durable=durable)


class _StaleError(TidelogError):
    """What was read of the source's log means nothing any more."""
