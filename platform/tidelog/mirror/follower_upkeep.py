"""What keeps a follower's logs short and its folders clean, without an entry of its own.

A follower writes its own checkpoints and trims its own logs, by its own store's times. It deletes the files that
shipped entries removed, as a purge of its own would (docs/format.md, 10.4), but publishes no purge floor: no other
writer stages anything here. What a mirror that died left behind goes an hour later.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from tidelog.log.base.errors import LogTrimmedError, ObjectNotFoundError, TidelogError
from tidelog.log.checkpoints.reading import (
    checkpoints_from,
    newest_checkpoint_version,
    newest_floor,
    read_checkpoint,
    whole_checkpoints,
)
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Metadata, Remove, decode_entry
from tidelog.log.door.commit_loop import SMALLEST_MIN_AGE_S
from tidelog.log.door.topic_machine import stored_config
from tidelog.log.lake import Lake
from tidelog.log.storage.port import LeavesUnfinished, Storage
from tidelog.log.upkeep.background import UpkeepRules, due_version
from tidelog.log.upkeep.holds import held_version, read_holds
from tidelog.log.upkeep.replaced_files import read_kept
from tidelog.log.upkeep.topic_files import list_files, old_temporary_files
from tidelog.log.upkeep.trim import Seen, trim
from tidelog.mirror.plan import ShippedEntry
from tidelog.retention.purge.plan import Facts, PurgePlan, Times, Waiting, kept_after, plan_files, plan_log
from tidelog.transactions.rows import KIND, TransactionsFold

logger = logging.getLogger("tidelog.mirror")

# How often a table from which files were removed is purged, and one of which nothing is known.
PURGE_EVERY_S: Final = 60.0
SWEEP_EVERY_S: Final = 3600.0


@dataclass
class _Table:
    """What upkeep knows of one table. `looked`: the version checked for a due checkpoint."""

    looked: int = -1
    removed: bool = True  # an earlier process may have shipped removes
    purged_s: float = float("-inf")
    waiting: Sequence[Waiting] = ()
    configuration: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _SeenHead:
    """A table's head as it was seen: when on the store's clock, and on our own."""

    version: int
    store_ms: int
    seen_s: float


@dataclass
class FollowerUpkeep:
    """Upkeep of a follower's tables, in the background of a mirror's rounds; one table at a time."""

    lake: Lake
    _tables: dict[str, _Table] = field(default_factory=dict)
    _busy: "Future[None] | None" = None

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tidelog-mirror-upkeep")

    def close(self) -> None:
        """Wait for what goes on."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def began(self, table: str) -> None:
        """A table was begun from a checkpoint: files of what the follower had of it before may be there."""
        self._tables[table] = _Table()

    def waiting(self, table: str) -> Sequence[Waiting]:
        """The removed files that are still to be deleted here, as of the last purge."""
        found = self._tables.get(table)
        return () if found is None else found.waiting

    def look(self, heads: Mapping[str, int], shipped: Iterable[ShippedEntry]) -> None:
        """Start what is due, after a round that brought the tables to `heads`."""
        for entry in shipped:
            state = self._tables.setdefault(entry.table, _Table(purged_s=self.lake.clock.elapsed_s()))
            state.removed = state.removed or bool(entry.removes)
            if entry.alters:
                state.configuration = None
        if self._busy is not None and not self._busy.done():
            return
        now_s = self.lake.clock.elapsed_s()
        for name, head in heads.items():
            state = self._tables.setdefault(name, _Table(purged_s=now_s))
            if head - state.looked >= LOOK_EVERY_ENTRIES:
                state.looked = head
                self._busy = self._pool.submit(self._quietly, self.checkpoint, name, head)
                return
            every_s = PURGE_EVERY_S if state.removed else SWEEP_EVERY_S
            if now_s - state.purged_s >= every_s:
                state.purged_s = now_s
                self._busy = self._pool.submit(self._quietly, self.purge, name, head)
                return

    def _quietly(self, work: Any, *args: Any) -> None:
        try:
            work(*args)
        except TidelogError:
            logger.warning("Upkeep of the follower's '%s' failed; it is tried again later.", args[0], exc_info=True)

    # --- checkpoints ---------------------------------------------------------------------------------------

    def checkpoint(self, table: str, head: int) -> int | None:
        """Write the checkpoint that is due, and trim the log; its version, None when none is due."""
        storage, config = self.lake.storage, self._config(table)
        rules = UpkeepRules(config.log_checkpoint_interval, config.log_min_age_ms)
        due = due_version(head, newest_checkpoint_version(storage, table), rules)
        if due is None:
            return None
        write_checkpoint(storage, table, due, self.lake.clock.now_ms())
        trim(storage, table, rules.min_age_ms)
        return due

    def _config(self, table: str) -> TopicConfig:
        state = self._tables.setdefault(table, _Table())
        if state.configuration is None:
            state.configuration = newest_configuration(self.lake.storage, table)
        own = {k.removeprefix(_OWN): v for k, v in state.configuration.items() if k.startswith(_OWN)}
        overrides = {k: v for k, v in own.items() if k in TopicConfig.KEYS}
        keys = (TopicConfig.log_checkpoint_interval, TopicConfig.log_min_age_ms, TopicConfig.file_delete_delay_ms)
        return stored_config(table, overrides, self.lake.config(), *keys)

    # --- deletion ------------------------------------------------------------------------------------------

    def purge(self, table: str, head: int) -> PurgePlan:
        """Delete what no version that can be read here names any more, as the log says, and what a dead mirror left.

        It waits 10 s after its look at the head: a reader that has not seen that head looks at the floors first.
        """
        state = self._tables.setdefault(table, _Table())
        removed_before, state.removed = state.removed, False
        storage, config, clock = self.lake.storage, self._config(table), self.lake.clock
        look = _SeenHead(head, self._store_ms(table), clock.elapsed_s())
        times = Times(look.store_ms, look.store_ms, config.log_min_age_ms, config.file_delete_delay_ms)
        floor = newest_floor(storage, table)
        listing = list(storage.list_after(f"{table}/{layout.LOG_FOLDER}"))
        entry_ms = {v: o.modified_ms for o in listing if (v := layout.entry_version(o.path)) is not None}
        holds = read_holds(storage, table)
        kept = read_kept(storage, table, floor, head)
        seen = Seen(head, look.store_ms)
        plan = plan_log(
            listing,
            [c.version for c in whole_checkpoints(listing)],
            kept.removed.values(),
            floor,
            seen,
            held_version(holds, look.store_ms),
            config.log_min_age_ms,
            max(1, config.log_checkpoint_interval // 5),
        )
        if plan.floor > floor:
            self._wait(look)
            if plan.checkpoint is not None:
                with suppress(LogTrimmedError, ObjectNotFoundError):
                    write_checkpoint(storage, table, plan.checkpoint, clock.now_ms())
            kept = kept_after(kept, trim(storage, table, config.log_min_age_ms, seen).floor, entry_ms)
        files = list_files(storage, table)
        live = live_files(storage, table)
        standing = [(h.version, h.by) for h in holds if h.is_valid(look.store_ms)]
        facts = Facts(files.data, live, kept, head, entry_ms, times, frozenset(), standing)
        purge_plan = plan_files(facts)
        state.waiting = purge_plan.waiting
        # Files of a later look at the source may be among those that no entry names yet: they are younger than an hour.
        spared = self._intents(table) if purge_plan.orphans else set()
        for file in (*purge_plan.removed, *(o for o in purge_plan.orphans if f"{table}/{o.path}" not in spared)):
            storage.delete(f"{table}/{file.path}")
        if isinstance(storage, LeavesUnfinished):
            for one in old_temporary_files(files.unfinished, look.store_ms):
                storage.discard_unfinished(one.path)
        state.removed = state.removed or (removed_before and bool(purge_plan.waiting))
        return purge_plan

    def _wait(self, look: _SeenHead) -> None:
        left_s = look.seen_s + SMALLEST_MIN_AGE_S - self.lake.clock.elapsed_s()
        if left_s > 0:
            self.lake.clock.sleep(left_s)

    def _store_ms(self, table: str) -> int:
        path = f"{table}/{layout.CLOCK_FILE}"
        self.lake.storage.put(path, b"")
        return self.lake.storage.head(path).modified_ms

    def _intents(self, table: str) -> Collection[str]:
        """The staged files that transactions need which are decided and not applied yet, as the follower knows it."""

        def at(fold: TransactionsFold) -> set[str]:
            parts = [part for one in fold.incomplete() if one.intent is not None for part in one.intent.parts]
            return {f"{part.topic}/{s.path}" for part in parts for s in part.segments if part.topic == table}

        if layout.LOG_FOLDER not in self.lake.storage.list_folders(layout.TRANSACTIONS_TABLE):
            return set()
        return self.lake.row_log(layout.TRANSACTIONS_TABLE, KIND).look(at)


_OWN: Final = "tidelog."
# A log that has grown by this number of entries may need a checkpoint.
LOOK_EVERY_ENTRIES: Final = 20


def _folded(storage: Storage, folder: str) -> Iterable[Any]:
    """The actions of a log that only this process writes: the newest checkpoint's, then the entries' after it."""
    floor = newest_floor(storage, folder)
    version = -1
    for checkpoint in checkpoints_from(storage, folder, floor + 1):
        with suppress(ObjectNotFoundError):
            yield from read_checkpoint(storage, folder, checkpoint)
            version = checkpoint.version
            break
    while True:
        version += 1
        path = f"{folder}/{layout.entry_path(version)}"
        try:
            data = storage.get(path)
        except ObjectNotFoundError:
            return
        yield from decode_entry(version, data, path).actions


def live_files(storage: Storage, folder: str) -> frozenset[str]:
    """The files that the head of a log names, by path below its folder."""
    live: set[str] = set()
    for action in _folded(storage, folder):
        if isinstance(action, Add):
            live.add(unquote(action.path))
        elif isinstance(action, Remove):
            live.discard(unquote(action.path))
    return frozenset(live)


def newest_configuration(storage: Storage, folder: str) -> Mapping[str, str]:
    """The table properties at the head of a log."""
    configuration: Mapping[str, str] = {}
    for action in _folded(storage, folder):
        if isinstance(action, Metadata):
            configuration = action.configuration
    return configuration
