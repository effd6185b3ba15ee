"""A snapshot of all of a lake, and when to take a new one."""

import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final, Self, TypeVar

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import ClusterState
from tidelog.groups.model import GroupView
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import InvalidTopicError, NotATopicError, ObjectNotFoundError, TidelogError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import OnThisMachine, Storage
from tidelog.log.upkeep.holds import read_holds
from tidelog.retention.run_history import MaintenanceRun, maintenance_runs
from tidelog.transactions.open_parts import OpenTransaction
from tidelog.transactions.transaction_log import TransactionLog

logger = logging.getLogger(__name__)

# On an object store each snapshot costs requests: a younger one is given again. A local disk is read each time.
SHARED_AGE_S: Final = 30.0
# What changes slowly and costs listings: a topic's checkpoint, and its holds.
UPKEEP_AGE_S: Final = 60.0
# Topics of an object store that are read at once.
_AT_ONCE: Final = 32
# Disks say in steps of some ms when a folder changed: after so long, no change has the time of an earlier one.
_SETTLED_S: Final = 2.0

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """When a topic's newest checkpoint was written, and its oldest hold renewed; ms of the store's clock, or None."""

    checkpoint_ms: int | None
    holds: int
    oldest_held: int | None


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of a lake's disk."""

    free: int
    total: int


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """What a lake held at `at_ms`, ms since the epoch.

    `broken`: topics that can't be read, with the reason. `runs`: maintenance, the newest first. `unread`: folders that
    are not read yet, where the first snapshot is still taken; then there is nothing of groups and of what follows.
    """

    at_ms: int
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    open_transactions: tuple[OpenTransaction, ...] = ()
    undone: int = 0
    cluster: ClusterState = field(default_factory=ClusterState)
    upkeep: Mapping[str, TableUpkeep] = field(default_factory=dict)
    runs: tuple[MaintenanceRun, ...] = ()
    space: Space | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ReadTopic:
    """A topic whose log's folder had last changed at `written_ns` when it was read, first at `since_s`.

    `state`: as read so much later that no change of then has the same time; None before.
    """

    written_ns: int
    since_s: float
    state: TopicState | None = None


class SnapshotReader:
    """Takes a snapshot of a lake when it is asked and the last one is too old. Many threads may call all methods.

    `age_s`: how old a snapshot may be; None: nothing on a local disk, `SHARED_AGE_S` on an object store.
    """

    def __init__(self, lake: Lake, age_s: float | None = None) -> None:
        self._lake = lake
        self._age_s = (SHARED_AGE_S if lake.storage.is_shared else 0.0) if age_s is None else age_s
        self._on_disk = lake.storage if isinstance(lake.storage, OnThisMachine) else None
        self._groups = GroupLog(lake)
        self._transactions = TransactionLog(lake)
        self._cluster = ClusterLog(lake)
        self._lock = threading.Lock()
        # A disk of this machine answers sooner than another thread.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "metrics") if lake.storage.is_shared else None
        self._last: LakeSnapshot | None = None
        self._taken_s = 0.0
        # How often snapshots were made invalid: by now, and when the last one was begun.
        self._invalidations = self._last_invalidations = 0
        # The folders of the newest snapshot, None before they are listed, and what was found in them so far.
        self._folders: tuple[str, ...] | None = None
        self._found: dict[str, TopicState | str | None] = {}
        self._listed = threading.Event()
        self._upkeep: dict[str, TableUpkeep] = {}
        self._upkeep_s = float("-inf")
        # What need not be read again while its log's folder is as it was then.
        self._read_topics: dict[str, _ReadTopic] = {}
        self.reads = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def read(self) -> LakeSnapshot:
        """The lake as it is now, or was within the age. Raises `LakeNotFoundError`, `StorageError`."""
        with self._lock:
            return self._recent()

    def latest(self, within_s: float) -> LakeSnapshot:
        """As `read`; but where another thread takes longer for it, the one before, or what the first has found so far.

        After `invalidate` it waits. Raises as `read` does.
        """
        if self._lock.acquire(timeout=within_s):
            try:
                return self._recent()
            finally:
                self._lock.release()
        last = self._last
        if last is not None:
            return last if self._last_invalidations == self._invalidations else self.read()
        self._listed.wait()
        folders, states = self._folders, self._found.copy()
        if folders is None:  # the other thread failed
            return self.read()
        return self._of_topics(states, unread=tuple(name for name in folders if name not in states))

    def _recent(self) -> LakeSnapshot:
        """The newest snapshot, or a new one. The lock is held."""
        now_s, invalidations = self._lake.clock.elapsed_s(), self._invalidations
        if self._last is None or self._last_invalidations != invalidations or now_s - self._taken_s >= self._age_s:
            self._listed.clear()
            try:
                self._last = self._take(now_s)
            finally:
                self._listed.set()
            self._taken_s, self._last_invalidations = now_s, invalidations
        return self._last

    def invalidate(self) -> None:
        """Have the next snapshot be a new one, however old the last is."""
        self._invalidations += 1

    def _take(self, now_s: float) -> LakeSnapshot:
        self.reads += 1
        self._lake.require_lake()
        folders = tuple(one for one in self._lake.storage.list_folders("") if not names.is_internal(one))
        states: dict[str, TopicState | str | None] = {}
        self._found, self._folders = states, folders
        self._listed.set()
        states.update(zip(folders, self._of_each(self._peek, folders), strict=True))  # one by one, as they are read
        self._read_topics = {name: self._read_topics[name] for name in folders if name in self._read_topics}
        topics = self._of_topics(states)
        if now_s - self._upkeep_s >= UPKEEP_AGE_S:
            self._upkeep = dict(zip(topics.topics, self._of_each(self._upkeep_of, topics.topics), strict=True))
            self._upkeep_s = now_s
        return replace(
            topics,
            groups=self._read_or_none("groups", self._views) or {},
            open_transactions=tuple(self._read_or_none("transactions", self._transactions.all_open) or ()),
            undone=len(self._read_or_none("transactions", lambda: self._transactions.incomplete()) or ()),
            cluster=self._read_or_none("brokers", self._cluster.look) or ClusterState(),
            upkeep={name: one for name, one in self._upkeep.items() if name in topics.topics},
            runs=tuple(self._read_or_none("maintenance", lambda: maintenance_runs(self._lake.storage)) or ()),
            space=space_of(self._lake.storage),
        )

    def _views(self) -> dict[str, GroupView]:
        """The groups; one that is as it was is the same object as in the snapshot before."""
        before = {} if self._last is None else self._last.groups
        views = self._groups.views(self._topic)
        return {name: before[name] if before.get(name) == view else view for name, view in views.items()}

    def _topic(self, name: str) -> TopicState | None:
        """A topic as the snapshot that is taken has found it."""
        if name not in self._found:
            return self._lake.peek(name)
        found = self._found[name]
        return found if isinstance(found, TopicState) else None

    def _of_topics(self, found: Mapping[str, TopicState | str | None], unread: tuple[str, ...] = ()) -> LakeSnapshot:
        topics = {name: one for name, one in found.items() if isinstance(one, TopicState)}
        broken = {name: one for name, one in found.items() if isinstance(one, str)}
        return LakeSnapshot(self._lake.clock.now_ms(), topics, broken, unread=unread)

    def _of_each(self, read: Callable[[str], R], names: Iterable[str]) -> Iterator[R]:
        return map(read, names) if self._threads is None else self._threads.map(read, names)

    def _peek(self, name: str) -> TopicState | str | None:
        """The topic, or why it can't be read: one that can't must not hide the others."""
        written_ns = self._written_ns(name)
        seen = self._read_topics.get(name)
        if seen is None or seen.written_ns != written_ns:
            seen = None
        elif seen.state is not None:
            return seen.state if seen.state.exists else None
        try:
            now_s = self._lake.clock.elapsed_s()
            state = self._lake.peek(name)
            if written_ns is not None and seen is None:
                self._read_topics[name] = _ReadTopic(written_ns, now_s)
            elif seen is not None and now_s - seen.since_s >= _SETTLED_S:
                self._read_topics[name] = _ReadTopic(seen.written_ns, seen.since_s, state)
            return state
        except (InvalidTopicError, NotATopicError):
            return None
        except TidelogError as e:
            if e.retriable:  # the store is away, say
                raise
            logger.warning("No metrics of topic %s: %s", name, e)
            return str(e)

    def _written_ns(self, name: str) -> int | None:
        """When a topic's log on this machine's disk last got a file, or lost one; None where that is not known."""
        if self._on_disk is None:
            return None
        try:
            return os.stat(self._on_disk.local_path(f"{name}/{layout.LOG_FOLDER}")).st_mtime_ns
        except OSError:
            return None

    def _read_or_none(self, what: str, read: Callable[[], R]) -> R | None:
        """What is read; None where it can't be: that must not hide the rest."""
        try:
            return read()
        except TidelogError as e:
            logger.warning("No metrics of %s: %s", what, e)
            return None

    def _upkeep_of(self, name: str) -> TableUpkeep:
        storage = self._lake.storage
        try:
            written: int | None = storage.head(f"{name}/{layout.LAST_CHECKPOINT}").modified_ms
        except ObjectNotFoundError:
            written = None
        holds = read_holds(storage, name)
        return TableUpkeep(written, len(holds), min((hold.version for hold in holds), default=None))


def space_of(storage: Storage) -> Space | None:
    """The space of the disk that a store is on; None for one that is no disk of this machine."""
    if not isinstance(storage, OnThisMachine):
        return None
    found = shutil.disk_usage(storage.local_path(""))
    return Space(found.free, found.total)
