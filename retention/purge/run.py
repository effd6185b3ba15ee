"""File deletion: entries past the time-travel window, then files that no reader, job or transaction needs any more.

The order (docs/format.md, 10.4): the log is trimmed, the purge floor is committed, files go last. Safe to run twice at
once and to kill anywhere: the next run goes on from what the log says.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tidelog.log.base.errors import (
    CorruptLogError,
    LogTrimmedError,
    NotATopicError,
    ObjectNotFoundError,
    TidelogError,
    UnknownTopicError,
)
from tidelog.log.checkpoints.entry_ranges import AT_ONCE
from tidelog.log.checkpoints.reading import newest_floor, whole_checkpoints
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Remove, decode_entry
from tidelog.log.door.commit_loop import SMALLEST_MIN_AGE_S, Door
from tidelog.log.door.topic_machine import stored_config
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rules import names
from tidelog.log.storage.port import LeavesUnfinished, ObjectInfo, Storage
from tidelog.log.upkeep.background import Upkeep
from tidelog.log.upkeep.holds import Hold, Holder, held_version, read_holds
from tidelog.log.upkeep.replaced_files import Kept, read_kept
from tidelog.log.upkeep.topic_files import TopicFiles, list_files, old_temporary_files
from tidelog.log.upkeep.trim import Seen, trim
from tidelog.retention.purge.plan import (
    Facts,
    Leaving,
    PurgePlan,
    Times,
    Waiting,
    decide_purge_floor,
    kept_after,
    plan_files,
    plan_log,
)

# Threads that delete many files.
_DELETERS = 16
# Files of decisions that are still to be rolled forward: (topic, purge floor) -> paths below the topic's folder. From
# the answer on, no run may decide on files that were opened at a version below that floor.
Needed = Callable[[str, int], Collection[str]]


def no_intents(topic: str, floor: int) -> Collection[str]:  # noqa: ARG001 - the port's shape
    """Nothing is decided anywhere but in the topics' own logs."""
    return ()


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge of one log did, or, dry, would do.

    `oldest`: the oldest version that can be read now. `entries`: how many objects of the log went.
    """

    topic: str
    deleted: tuple[Leaving, ...]
    waiting: tuple[Waiting, ...]
    oldest: int
    entries: int = 0
    checkpoint: int | None = None
    floor: int | None = None
    unfinished: int = 0

    def to_json(self) -> dict[str, Any]:
        """The figures, for a report. Times in ms since the epoch, by the store's clock."""
        orphans = [d for d in self.deleted if d.why == "orphan"]
        return {
            "deleted_files": len(self.deleted),
            "deleted_bytes": sum(d.size for d in self.deleted),
            "orphans": len(orphans),
            "unfinished": self.unfinished,
            "waiting_files": len(self.waiting),
            "waiting_bytes": sum(w.size for w in self.waiting),
            "waiting_until_ms": max((w.until_ms for w in self.waiting if w.until_ms is not None), default=None),
            "oldest_version": self.oldest,
            "deleted_entries": self.entries,
            "checkpoint": self.checkpoint,
            "purge_floor": self.floor,
        }


@dataclass(frozen=True, slots=True)
class _Target:
    """A log to purge, of a topic or of rows."""

    name: str
    door: Door[Any]
    upkeep: Upkeep
    rules: TopicConfig


@dataclass(frozen=True, slots=True)
class _Look:
    """The head of a log as it was seen: its version, when on the store's clock, and when on our own (s)."""

    version: int
    store_ms: int
    seen_s: float


@dataclass(frozen=True, slots=True)
class _PurgedLog:
    """The files in a log's folders, listed in an order that misses no hold."""

    floor: int
    listing: Sequence[ObjectInfo]
    holds: Sequence[Hold]

    @property
    def entry_ms(self) -> dict[int, int]:
        """When each entry was stored."""
        return {v: o.modified_ms for o in self.listing if (v := layout.entry_version(o.path)) is not None}


def purgeable(lake: Lake) -> list[str]:
    """The names of the topics that have a log, deleted ones and such as can't be opened too."""
    topics = []
    for name in lake.storage.list_folders(""):
        if names.is_internal(name) or names.why_invalid(name):
            continue
        try:
            if lake.log(name).door.refresh().version >= 0:
                topics.append(name)
        except NotATopicError:
            continue
        except TidelogError as e:
            if e.retriable:  # the store is away, say
                raise
            topics.append(name)  # it must not hide the others, and is named when it is tried
    return topics


@dataclass
class Purger:
    """Purges logs of a lake, in one run of a job.

    `holder`: the job's holds, which limit its own purges as those of others. Between a look at a log and the purge that
    rests on it 10 s must pass: so look at every log when the run begins, and purge at its end.
    """

    lake: Lake
    holder: Holder
    run_id: str = ""
    needed: Needed = no_intents
    _looks: dict[str, _Look] = field(default_factory=dict)

    def look(self, topic: str) -> None:
        """Note the head of a topic's log, and hold it.

        Raises `UnknownTopicError` where there never was a topic, `StorageError`, `CorruptLogError`.
        """
        self._look(topic, self.lake.log(topic).door)

    def look_rows(self, log: RowLog[Any]) -> None:
        """The same for a table of rows, which is there. Raises `StorageError`, `CorruptLogError`."""
        self._look(log.name, log.door)

    def purge(
        self,
        topic: str,
        *,
        now_ms: int | None = None,
        dry_run: bool = False,
        spare: Collection[int] = (),
    ) -> Purged:
        """Let go of what a topic, which may be deleted, needs no more.

        `now_ms` moves what counts for now (ms since the epoch); files and entries of the last 10 s stay whatever it
        is. Nothing of the partitions in `spare` goes. `dry_run` changes nothing.
        Raises `StorageError`, `CorruptLogError`, `InvalidConfigError`.
        """
        log = self.lake.log(topic)
        overrides = log.door.refresh().overrides
        rules = stored_config(
            topic,
            overrides,
            self.lake.config(),
            TopicConfig.log_min_age_ms,
            TopicConfig.file_delete_delay_ms,
            TopicConfig.log_checkpoint_interval,
        )
        return self._purge(_Target(topic, log.door, log.upkeep, rules), now_ms, dry_run, spare)

    def purge_rows(self, log: RowLog[Any], *, now_ms: int | None = None, dry_run: bool = False) -> Purged:
        """The same for a table of rows. Raises as `purge`."""
        rules = stored_config(log.name, log.door.refresh().overrides, self.lake.config())
        return self._purge(_Target(log.name, log.door, log.upkeep, rules), now_ms, dry_run, ())

    def _look(self, name: str, door: Door[Any]) -> _Look:
        look = self._looks.get(name)
        if look is None:
            if door.refresh().version < 0:
                raise UnknownTopicError(f"There is no topic '{name}', nor was there one. Check the name.")
            self.holder.hold(name, lambda: door.refresh().version)
            store_ms = self.holder.store_ms(name) or 0
            version = door.refresh().version
            look = self._looks[name] = _Look(version, store_ms, self.lake.clock.elapsed_s())
        return look

    # --- a purge, step by step -----------------------------------------------------------------------------

    def _purge(self, target: _Target, now_ms: int | None, dry_run: bool, spare: Collection[int]) -> Purged:
        look = self._look(target.name, target.door)
        shift_ms = 0 if now_ms is None else now_ms - self.lake.clock.now_ms()
        rules = target.rules
        times = Times(look.store_ms + shift_ms, look.store_ms, rules.log_min_age_ms, rules.file_delete_delay_ms)
        log = self._list(target.name)
        head = self._head(target, log)
        kept = read_kept(self.lake.storage, target.name, log.floor, head)
        seen = Seen(look.version, times.now_ms)
        plan = plan_log(
            log.listing,
            [c.version for c in whole_checkpoints(log.listing)],
            kept.removed.values(),
            log.floor,
            seen,
            held_version(log.holds, look.store_ms),
            rules.log_min_age_ms,
            max(1, rules.log_checkpoint_interval // 5),
        )
        floor, entries = plan.floor, 0
        if not dry_run and plan.floor > log.floor:
            self._wait(look)
            if plan.checkpoint is not None:
                # Another run trims now: then its floor counts.
                with suppress(LogTrimmedError, ObjectNotFoundError):
                    target.upkeep.checkpoint(plan.checkpoint)
            trimmed = trim(self.lake.storage, target.name, rules.log_min_age_ms, seen)
            floor, entries = trimmed.floor, len(trimmed.paths)
        kept = kept_after(kept, floor, log.entry_ms)
        files = list_files(self.lake.storage, target.name)
        facts = self._facts(target, log, kept, files, times, spare)
        files_plan = plan_files(facts)
        unfinished = old_temporary_files(files.unfinished, look.store_ms)
        deleted = (*files_plan.removed, *files_plan.orphans)
        if not dry_run and (deleted or unfinished):
            self._wait(look)
            deleted = self._delete(target, files_plan, head)
            self._discard([o.path for o in unfinished])
        return Purged(
            target.name,
            deleted,
            files_plan.waiting,
            kept.oldest,
            entries,
            plan.checkpoint,
            files_plan.floor,
            len(unfinished),
        )

    def _list(self, name: str) -> _PurgedLog:
        storage = self.lake.storage
        floor = newest_floor(storage, name)
        listing = list(storage.list_after(f"{name}/{layout.LOG_FOLDER}"))
        return _PurgedLog(floor, listing, read_holds(storage, name))

    def _head(self, target: _Target, log: _PurgedLog) -> int:
        """The version of the log's head, after which there is no entry.

        Where one does, the entry before it was removed, and what the later ones name must not be taken for orphans.
        """
        head: int = target.door.refresh().version
        if max(log.entry_ms, default=-1) > head:
            raise CorruptLogError(
                f"The log in {target.name} lacks entry {head + 1}, although later ones are there: another program"
                " removed it. Restore it from a copy; nothing is deleted here until then.",
                version=head + 1,
            )
        return head

    def _wait(self, look: _Look) -> None:
        """Let the look become so old that every writer that has not seen that head looks at the floors."""
        left_s = look.seen_s + SMALLEST_MIN_AGE_S - self.lake.clock.elapsed_s()
        if left_s > 0:
            self.lake.clock.sleep(left_s)

    def _facts(
        self, target: _Target, log: _PurgedLog, kept: Kept, files: TopicFiles, times: Times, spare: Collection[int]
    ) -> Facts:
        state = target.door.refresh()
        return Facts(
            files.data,
            frozenset(unquote(s.path) for s in state.all_segments()),
            kept,
            state.version,
            log.entry_ms,
            times,
            spare,
            [
                (h.version, h.by)
                for h in log.holds
                if h.is_valid(times.seen_ms) and h.path != self.holder.path(target.name)
            ],
        )

    def _delete(self, target: _Target, plan: PurgePlan, head: int) -> tuple[Leaving, ...]:
        """Delete the plan's files, but those that the log turns out to name; returns what was deleted."""
        files = (*plan.removed, *plan.orphans)
        floor = plan.floor or 0
        needed = set(self.needed(target.name, floor)) if plan.floor is not None else set()
        if not files:
            return ()
        if target.door.refresh().exists:
            said = {"run": self.run_id, "files": str(len(files)), "bytes": str(sum(f.size for f in files))}
            paths = [f.path for f in files]
            committed = target.door.commit(lambda state: decide_purge_floor(state, floor, paths, said))
            needed |= committed.response
            target.upkeep.after_commit(committed.version)
        else:  # nothing that was opened in the life that is over can be committed
            needed |= {unquote(s.path) for s in target.door.state.all_segments()}
        needed |= self._removed_since(target, head)
        deleted = tuple(f for f in files if f.path not in needed)
        _delete_all(self.lake.storage, [f"{target.name}/{file.path}" for file in deleted])
        return deleted

    def _removed_since(self, target: _Target, head: int) -> set[str]:
        """The files that entries after `head` removed: versions that can be read name them."""
        paths: set[str] = set()
        for version in range(head + 1, target.door.state.version + 1):
            path = f"{target.name}/{layout.entry_path(version)}"
            entry = decode_entry(version, self.lake.storage.get(path), path)
            paths.update(unquote(a.path) for a in entry.actions if isinstance(a, Remove))
        return paths

    def _discard(self, paths: Sequence[str]) -> None:
        storage = self.lake.storage
        if isinstance(storage, LeavesUnfinished):
            for path in paths:
                storage.discard_unfinished(path)


def _delete_all(storage: Storage, paths: Sequence[str]) -> None:
    if len(paths) <= AT_ONCE:
        for path in paths:
            storage.delete(path)
        return
    # On an object store each costs a round trip.
    with ThreadPoolExecutor(_DELETERS, thread_name_prefix="tidelog-purge") as pool:
        for _ in pool.map(storage.delete, paths):
            pass
