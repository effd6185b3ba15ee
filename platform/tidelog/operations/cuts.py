"""Cuts of a lake: how one is made while others write, and what is done with those that have names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from tidelog.access.access_log import AccessLog
from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.model import Cut, CutLostError, CutTable, Place, cut_exists
from tidelog.cuts.rules import (
    TableAt,
    check_name,
    decided_by,
    is_torn,
    known_up_to,
    markers,
    positions_within,
    settles,
)
from tidelog.groups.model import GroupView
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog, counted
from tidelog.groups.store.rows import KIND as GROUPS
from tidelog.groups.store.rows import GroupsFold
from tidelog.log.base.errors import (
    ContendedLogError,
    InvalidTopicError,
    LakeFollowsError,
    NotATopicError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    StorageError,
    TidelogError,
)
from tidelog.log.checkpoints.entry_ranges import decoded_entries
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.config.lake_file import tables_among
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Entry
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rules import names
from tidelog.log.upkeep.holds import Holder, keep_version, read_holds
from tidelog.log.upkeep.replaced_files import read_removed
from tidelog.log.upkeep.topic_files import list_files
from tidelog.transactions.model import Transactional, TransactionKey, Verdict
from tidelog.transactions.roll_forward import roll_forward
from tidelog.transactions.rows import TransactionsFold
from tidelog.transactions.rules import verdict
from tidelog.transactions.transaction_log import TransactionLog

R = TypeVar("R")
T = TypeVar("T")

# A cut is made again when a transaction of it was applied after one that is not part of it; at most this often.
MOST_LOOKS: Final = 50
# Topics of an object store that are read at once.
_AT_ONCE: Final = 16
# How the names of holds begin that keep a cut's tables.
_HOLD: Final = "cut-"
# A hold of no cut that is younger belongs to one that is being made.
_LEFT_MS: Final = 3_600_000


class _Torn(Exception):  # noqa: N818 - a turn of the making, never seen outside
    """A table can't be cut where the transactions were looked at: look again."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """What the log of transactions said at a version; `fold` stays as it is."""

    table: TableAt
    fold: TransactionsFold

    def verdict(self, key: TransactionKey) -> Verdict:
        return verdict(self.fold, key)


@dataclass(frozen=True, slots=True)
class _GroupsAt:
    table: TableAt
    fold: GroupsFold


def take_cut(lake: Lake, name: str = "") -> Cut:
    """A cut of the lake as it is now, as a plain value. What was acknowledged before the call is in it.

    Nothing is written but the effects of transactions that are decided. Raises `StorageError`, `ContendedLogError`
    where transactions end so fast that none was to be had, `LakeFollowsError` for a follower to which the effects of
    one are still to come, and what a table raises that can't be read.
    """
    with _Making(lake) as making:
        for _ in range(MOST_LOOKS):
            try:
                return making.cut(name)
            except (_Torn, ObjectNotFoundError):
                lake.clock.sleep(0.01 * lake.ids.fraction())
    raise ContendedLogError(
        f"No cut of {lake.uri} could be made: {MOST_LOOKS} times transactions were applied in another order than they"
        " were decided while it was looked at. Try again, or when fewer producers write."
    )


class _Making:
    """The steps of a cut (docs/format.md, 13.6): tables as they are, t, what is decided up to t, tables again."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._transactions = TransactionLog(lake)
        self._group_log = GroupLog(lake)
        self._access = AccessLog(lake)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "cut") if lake.storage.is_shared else None

    def __enter__(self) -> "_Making":
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown()

    def cut(self, name: str) -> Cut:
        """One try. Raises `_Torn`."""
        time_ms = self._lake.clock.now_ms()
        groups_before = self._groups()
        before = dict(self._of_each(self._topic_at, self._topics()))
        decided, incomplete = self._decided()
        self._complete(incomplete)
        tables: dict[str, CutTable] = {}
        offsets: dict[str, Mapping[Place, tuple[int, str]]] = {}
        for log in self._group_log.tables():
            table, views = self._cut_groups(log, groups_before.get(log.name), decided)
            tables[log.name] = table.in_cut(is_rows=True)
            offsets |= {group: _offsets(view, decided) for group, view in views.items()}
        cut_topic = partial(self._cut_topic, before=before, decided=decided_by(decided.fold))
        topics = dict(self._of_each(cut_topic, self._topics()))
        tables |= {topic: at.in_cut() for topic, at in topics.items() if at.exists}
        if decided.table.exists:
            tables[layout.TRANSACTIONS_TABLE] = decided.table.in_cut(is_rows=True)
        for other in self._access.tables():
            tables[other.name] = _row_table(other).in_cut(is_rows=True)
        positions = positions_within(offsets, tables)
        return Cut(name, self._lake.ids.new(), time_ms, tables, positions)

    def _of_each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterable[tuple[T, R]]:
        found = list(items)
        results = map(work, found) if self._threads is None else self._threads.map(work, found)
        return zip(found, results, strict=True)

    # --- topics --------------------------------------------------------------------------------------------

    def _topics(self) -> list[str]:
        return list(filter(names.may_be_topic, self._lake.storage.list_folders("")))

    def _topic_at(self, topic: str) -> TableAt:
        """A topic at the head of its log; of what is no topic that there is none."""
        try:
            door = self._lake.log(topic).door
            with door.lock:
                return TableAt.of(door.refresh())
        except (InvalidTopicError, NotATopicError):
            return TableAt()

    def _cut_topic(self, topic: str, before: Mapping[str, TableAt], decided: Mapping[str, int]) -> TableAt:
        at, head = before.get(topic, TableAt()), self._topic_at(topic)
        if not head.exists and head.version < 0:
            return head
        entries = self._entries(topic, at.version, head.version)
        applied = [(entry.version, markers(entry.actions)) for entry in entries]
        to = known_up_to(applied, decided, head.version)
        if is_torn(applied, decided, to):
            raise _Torn
        return head if to == head.version else _after(at, entries, to)

    def _entries(self, folder: str, after: int, to: int) -> list[Entry]:
        """The entries (after, to] of a log, which the process has just read."""
        return list(decoded_entries(self._lake.storage, folder, range(after + 1, to + 1)))

    # --- transactions and groups ---------------------------------------------------------------------------

    def _decided(self) -> tuple[_Decided, list[Transactional]]:
        """What is decided, and of that what may not be applied yet."""
        logs = self._transactions.tables()
        if not logs:
            return _Decided(TableAt(), TransactionsFold()), []
        [log] = logs
        with log.door.lock:
            state = log.door.refresh()
            fold = state.fold.copy()
            return _Decided(TableAt.of(state), fold), list(fold.incomplete())

    def _complete(self, incomplete: Iterable[Transactional]) -> None:
        """Apply what is decided. It is not marked complete: its producer does that, or the next reader.

        Raises `LakeFollowsError` for a follower, where only its mirror can.
        """
        offsets = LoggedOffsets(self._group_log)
        follows = self._lake.follows()
        for transactional in incomplete:
            if transactional.intent is None:
                continue
            if follows is not None:
                raise LakeFollowsError(
                    f"The lake {self._lake.uri} follows {follows.source}, where a transaction of"
                    f" '{transactional.transactional_id}' is committed of which a part is not here yet. Try again when"
                    " the mirror has shipped that; or go by a cut that the source has made ('tidelog cut list'); or,"
                    " when the source is lost, promote this lake first ('tidelog mirror promote')."
                )
            roll_forward(self._lake, offsets, transactional.key_of(transactional.intent), transactional.intent)

    def _groups(self) -> dict[str, _GroupsAt]:
        return {log.name: _groups_at(log) for log in self._group_log.tables()}

    def _cut_groups(
        self, log: RowLog[GroupsFold], before: _GroupsAt | None, decided: _Decided
    ) -> tuple[TableAt, dict[str, GroupView]]:
        """A table of groups up to the last entry before the first that settles a transaction after the cut."""
        at = before or _GroupsAt(TableAt(), GroupsFold())
        head = _groups_at(log)
        entries = self._entries(log.name, at.table.version, head.table.version)
        last = next((e.version - 1 for e in entries if settles(e.info.rows, decided.verdict)), head.table.version)
        if last < head.table.version:
            fold = at.fold.fork()
            for entry in entries:
                if entry.version <= last:
                    fold.take([GROUPS.schema.from_json(row) for row in entry.info.rows])
            head = _GroupsAt(_after(at.table, entries, last), fold)
        return head.table, {group: head.fold.view(group) for group in head.fold.group_ids()}


def _after(at: TableAt, entries: Iterable[Entry], to: int) -> TableAt:
    for entry in entries:
        if entry.version <= to:
            at = at.after(entry)
    return at


def _groups_at(log: RowLog[GroupsFold]) -> _GroupsAt:
    with log.door.lock:
        state = log.door.refresh()
        return _GroupsAt(TableAt.of(state), state.fold.copy())


def _row_table(log: RowLog[Any]) -> TableAt:
    with log.door.lock:
        return TableAt.of(log.door.refresh())


def _offsets(view: GroupView, decided: _Decided) -> dict[Place, tuple[int, str]]:
    """A group's offsets, those that wait for transactions of the cut among them."""
    verdicts = {key: decided.verdict(key) for key, _ in view.pending}
    offsets = counted(view, verdicts).offsets
    return {place: (committed.offset, committed.topic_id) for place, committed in offsets.items()}


# --- cuts with names ---------------------------------------------------------------------------------------


def create_cut(lake: Lake, name: str, *, keep: bool = False) -> Cut:
    """Make a cut and give it a name. `keep`: what it needs is held until it is deleted, and so costs space.

    Raises `CutExistsError`, `InvalidCutNameError`, `LakeFollowsError`, and as `take_cut` does; with `keep` also
    `CutLostError`, where a log was trimmed meanwhile.
    """
    check_name(name)
    lake.permit(layout.CUTS_TABLE)()  # before anything is applied or held
    log = CutLog(lake)
    if name in log.all():  # before the work; the log decides
        raise cut_exists(name)
    if not keep:
        return log.create(take_cut(lake, name))
    by = f"cut {name} {lake.ids.new()}"
    with Holder(lake.storage, lake.clock, lake.ids, f"the making of {by}") as holder:
        for folder in _tables(lake):
            holder.hold(folder, partial(_head, lake, folder))
        cut = replace(take_cut(lake, name), kept=True)
        try:
            for folder, table in cut.tables.items():
                keep_version(lake.storage, folder, _hold_id(cut), table.version, f"cut {name}")
                _require_there(lake, name, folder, table)
            return log.create(cut)
        except (OutcomeUnknownError, StorageError):
            raise  # it may be there; else a deletion sweeps the holds
        except TidelogError:
            _release(lake, cut)
            raise


def delete_cut(lake: Lake, name: str) -> Cut:
    """Take a cut away, and let go of what it held; which it was. Holds that a crash left are taken away, too.

    Raises `UnknownCutError`.
    """
    log = CutLog(lake)
    cut = log.delete(name)
    _release(lake, cut)
    # The entry that has just deleted the cut stands for the store's clock.
    entries = lake.storage.list_after(f"{layout.CUTS_TABLE}/{layout.LOG_FOLDER}")
    store_now_ms = max((entry.modified_ms for entry in entries), default=0)
    ids = {_hold_id(other) for other in log.all().values()}
    for folder in _tables(lake):
        for hold in read_holds(lake.storage, folder):
            hold_id = hold.path.rpartition("/")[2]
            if hold_id.startswith(_HOLD) and hold_id not in ids and store_now_ms - hold.renewed_ms > _LEFT_MS:
                lake.storage.delete(hold.path)
    return cut


def hold_kept_cuts(lake: Lake) -> None:
    """Hold what kept cuts need in a lake that was a follower, as far as it is there: holds are not shipped."""
    kept = [cut for cut in CutLog(lake).all().values() if cut.kept]
    for folder in sorted({folder for cut in kept for folder in cut.tables}):
        there = range(newest_floor(lake.storage, folder) + 1, _head(lake, folder) + 1)
        for cut in kept:
            table = cut.tables.get(folder)
            if table is not None and table.version in there:
                keep_version(lake.storage, folder, _hold_id(cut), table.version, f"cut {cut.name}")


def _hold_id(cut: Cut) -> str:
    return f"{_HOLD}{cut.id}"


def _release(lake: Lake, cut: Cut) -> None:
    if cut.kept:
        for folder in cut.tables:
            lake.storage.delete(f"{folder}/{layout.HOLDS_FOLDER}/{_hold_id(cut)}")


def _require_there(lake: Lake, name: str, folder: str, table: CutTable) -> None:
    if newest_floor(lake.storage, folder) >= table.version:
        raise CutLostError(
            f"Cut {name!r} can't be kept: the log of '{folder}' was trimmed past entry {table.version} while it was"
            " made. Make it again."
        )


def _tables(lake: Lake) -> list[str]:
    """The folders of all tables that a cut may name."""
    folders = [name for name in lake.storage.list_folders("") if name not in (layout.CLUSTER_TABLE, layout.CUTS_TABLE)]
    return tables_among(lake.storage, folders)


def _head(lake: Lake, folder: str) -> int:
    """The newest version of a table, whatever it is a table of: the floor's where no checkpoint or entry is past it."""
    listing = lake.storage.list_after(f"{folder}/{layout.LOG_FOLDER}")
    versions = (v for o in listing if (v := layout.version_of(o.path)) is not None)
    return max(versions, default=newest_floor(lake.storage, folder))


@dataclass(frozen=True, slots=True)
class HeldByCuts:
    """Files that left their tables after kept cuts, and stay for them: what the cuts cost.

    `by_cut`: {cut: bytes} of what each of them holds, which others may hold, too. `size`: bytes of all of it, once.
    """

    by_cut: Mapping[str, int]
    size: int


def held_files(lake: Lake, kept: Iterable[Cut]) -> HeldByCuts:
    """What kept cuts hold, by one look at each table. Raises `StorageError`, `CorruptLogError`."""
    versions: dict[str, dict[str, int]] = {}
    by_cut: dict[str, int] = {}
    for cut in kept:
        by_cut[cut.name] = 0
        for folder, table in cut.tables.items():
            versions.setdefault(folder, {})[cut.name] = table.version
    size = 0
    for folder, of_cuts in versions.items():
        oldest = min(of_cuts.values())
        for removed, file_size in _replaced_since(lake, folder, oldest):
            size += file_size
            for cut_name, version in of_cuts.items():
                by_cut[cut_name] += file_size if removed > version else 0
    return HeldByCuts(by_cut, size)


def _replaced_since(lake: Lake, folder: str, version: int) -> Iterator[tuple[int, int]]:
    """(entry, bytes) of the files that entries after a version took out of a table, and that are still there."""
    storage = lake.storage
    head = _head(lake, folder)
    if head <= version:
        return
    first = max(version + 1, newest_floor(storage, folder) + 2)
    removed = read_removed(storage, folder, range(first, head + 1))
    files = list_files(storage, folder).data if removed else {}
    yield from ((entry, files[path].size) for path, entry in removed.items() if path in files)
