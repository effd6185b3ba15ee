"""The logs of a source's tables, read entry by entry ahead of what the follower has, and their heads at one time."""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

import orjson

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import CorruptLogError, ObjectNotFoundError
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.delta import layout
from tidelog.log.delta.actions import decode_entry
from tidelog.log.door.commit_loop import FLOORS_EVERY_S, SMALLEST_MIN_AGE_S
from tidelog.log.door.reading_ahead import ReadingAhead
from tidelog.log.storage.port import Distant, Storage
from tidelog.log.storage.store_time import StoreTime
from tidelog.mirror.copying import Copier
from tidelog.mirror.plan import SourceHead
from tidelog.mirror.tables import Rank, rank

# The bytes of entries that a log keeps in memory; those after them are read again when they are shipped.
MOST_KEPT_BYTES: Final = 8 * 1024 * 1024
# A table that is further behind is shipped in several rounds, so that a mirror that is killed again and again gets on.
MOST_AT_ONCE: Final = 200
_ADD: Final = b'{"add":'
# A look at all heads counts when no transaction was decided meanwhile; it is made again at most this often.
MOST_LOOKS: Final = 20


class PassedEntryError(ObjectNotFoundError):
    """An entry that a look found is gone from the source: its log was trimmed meanwhile."""


class SourceLog:
    """The entries of one log after version `after`, which the follower has. Not for several threads.

    `head`: the newest entry, and the floor. Where the floor is above `after`, entries that the follower needs may be
    gone, and those that were read mean nothing (docs/format.md, rule W6). Memory is bounded by `MOST_KEPT_BYTES`.
    """

    def __init__(self, storage: Storage, folder: str, clock: Clock, after: int) -> None:
        self.folder = folder
        self._storage = storage
        self._clock = clock
        self._reading = ReadingAhead(storage, self._path, StoreTime(clock))
        # The oldest of them in one piece; `_newest` may be later than the last of them.
        self._entries: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._newest = -1
        self._unkept_bytes = 0
        self._floor = -1
        self._seen_s = self._floors_seen_s = float("-inf")
        self.after = after

    def _path(self, version: int) -> str:
        return f"{self.folder}/{layout.entry_path(version)}"

    @property
    def head(self) -> SourceHead:
        """The log as of the last look."""
        return SourceHead(max(self._newest, self.after, self._floor), self._floor)

    @property
    def next_head(self) -> SourceHead | None:
        """How far one round may ship, where that is not up to the head."""
        to = max(self.after, self._floor) + MOST_AT_ONCE
        return SourceHead(to, self._floor) if to < self._newest else None

    @property
    def kept_bytes(self) -> int:
        """The bytes of the entries that are in memory."""
        return self._kept_bytes

    def bytes_ahead(self) -> int:
        """The bytes that the follower lacks, as the last look found them: of entries, and of the files they add."""
        return self._unkept_bytes + sum(_brought(data) for _, data in self._entries)

    def look(self) -> bool:
        """Read up to the head of the log; whether there was a new entry. Raises `StorageError`."""
        began_s = self._clock.elapsed_s()
        before = self.head.version
        self._read()
        now_s = self._clock.elapsed_s()
        # Entries may have been created and trimmed meanwhile, so that what is missing, or there, proves nothing.
        late = now_s - self._seen_s > SMALLEST_MIN_AGE_S / 2
        if late or now_s - self._floors_seen_s > FLOORS_EVERY_S:
            self._floor = newest_floor(self._storage, self.folder, self._floor)
            self._floors_seen_s = now_s
            if self._floor > self.after and not (self._entries and self._entries[0][0] > self._floor):
                self._forget()  # the follower begins again, at a checkpoint past the floor
                self._read()
        self._seen_s = began_s
        return self.head.version != before

    def _read(self) -> None:
        version = self.head.version
        self._reading.begin()
        try:
            while True:
                data = self._reading.get(version + 1)
                version += 1
                if self._kept_bytes < MOST_KEPT_BYTES and not self._unkept_bytes:
                    self._entries.append((version, data))
                    self._kept_bytes += len(data)
                else:
                    self._unkept_bytes += _brought(data)
                self._newest = version
        except ObjectNotFoundError:
            pass

    def _forget(self) -> None:
        self._entries.clear()
        self._kept_bytes = self._unkept_bytes = 0
        self._newest = -1

    def look_at_floors(self) -> int:
        """The floor as it is now."""
        self._floor = newest_floor(self._storage, self.folder, self._floor)
        return self._floor

    def entries(self, to: int) -> Iterator[tuple[int, bytes]]:
        """The entries up to `to` that the follower lacks. Raises `PassedEntryError`, `StorageError`."""
        last = max(self.after, self._floor)
        for version, data in self._entries:
            if version > to:
                return
            yield version, data
            last = version
        self._reading.begin()
        for version in range(last + 1, min(to, self._newest) + 1):
            try:
                yield version, self._reading.get(version)
            except ObjectNotFoundError as e:
                raise PassedEntryError(f"Entry {version} of '{self.folder}' is gone from the source.") from e

    def shipped(self, to: int) -> None:
        """The follower has the entries up to `to`."""
        while self._entries and self._entries[0][0] <= to:
            self._kept_bytes -= len(self._entries.popleft()[1])
        self.after = max(self.after, to)
        if self.after >= self._newest:
            self._unkept_bytes = 0

    def restart(self, after: int) -> None:
        """Go on after another version, which a checkpoint has brought the follower to."""
        self._forget()
        self.after = after
        self._seen_s = float("-inf")

    def oldest_ahead_ms(self) -> int | None:
        """When the oldest entry was committed that the follower lacks, by its writer's clock; None without one."""
        if not self._entries:
            return None
        try:
            return int(decode_entry(*self._entries[0], self.folder).info.timestamp_ms)
        except CorruptLogError:
            return None


def _brought(data: bytes) -> int:
    """The bytes of an entry and of the files that it adds; of one that is torn its own.

    >>> _brought(b'{"add":{"path":"x","size":90}}')
    120
    """
    try:
        return len(data) + sum(
            int(orjson.loads(line)["add"]["size"]) for line in data.splitlines() if line.startswith(_ADD)
        )
    except (ValueError, KeyError, TypeError):
        return len(data)


class SourceTables:
    """The tables of a source that are shipped, each with its log. For one thread.

    `opened` is called for a table that is new there; it gives the table's log. `wanted` as in `rank`.
    """

    def __init__(
        self,
        storage: Storage,
        copier: Copier,
        wanted: re.Pattern[str] | None,
        opened: Callable[[str, Rank], SourceLog],
    ) -> None:
        self._storage = storage
        self._copier = copier
        self._wanted = wanted
        self._opened = opened
        self._others: set[str] = set()
        self.logs: dict[str, SourceLog] = {}
        self.ranks: dict[str, Rank] = {}

    def ships(self, path: str) -> bool:
        """Whether a file, by its path below the lake's root, is of a table that is shipped."""
        return rank(path.partition("/")[0], self._wanted) is not None

    def look(self, spared: Collection[str]) -> bool:
        """Read the heads of all tables but the `spared` ones; whether no transaction was decided meanwhile.

        Cuts come first, then transactions, then groups, then the others: what an entry of the former rests on is in the
        latter by then. Where a transaction was decided meanwhile, its records may be among what was read and its
        decision not.
        """
        self._look_at(Rank.CUTS, spared)
        self._look_at(Rank.TRANSACTIONS, spared)
        for _ in range(MOST_LOOKS):
            self._look_at(Rank.GROUPS, spared)
            new_ranks = self._find()
            for other in (Rank.ACCESS, Rank.TOPICS, Rank.SCHEMAS):
                self._look_at(other, spared)
            decided = self._look_at(Rank.TRANSACTIONS, spared)
            if not decided and not new_ranks & {Rank.GROUPS, Rank.TRANSACTIONS, Rank.CUTS}:
                return True
        return False

    def _look_at(self, which: Rank, spared: Collection[str]) -> bool:
        logs = [log for name, log in self.logs.items() if self.ranks[name] is which and name not in spared]
        if len(logs) > 1 and isinstance(self._storage, Distant):
            return _any(self._copier.run(SourceLog.look, logs))
        return _any(log.look() for log in logs)

    def _find(self) -> set[Rank]:
        """Open the tables that are new; their ranks."""
        ranks = set()
        for name in self._storage.list_folders(""):
            if name in self.logs or name in self._others:
                continue
            table_rank = rank(name, self._wanted)
            if table_rank is None:
                self._others.add(name)
            elif layout.LOG_FOLDER in self._storage.list_folders(name):
                self.ranks[name] = table_rank
                self.logs[name] = self._opened(name, table_rank)
                ranks.add(table_rank)
        return ranks


def _any(answers: Iterable[bool]) -> bool:
    """Whether one of them is true; all of them are asked."""
    return any(list(answers))
