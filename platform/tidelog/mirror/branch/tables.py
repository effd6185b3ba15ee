"""A table of the source as a branch takes it: its newest checkpoint up to a version, the entries since, their files.

Files are linked where the stores can, and copied else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidelog.log.base.errors import CorruptLogError, LogTrimmedError, ObjectNotFoundError
from tidelog.log.checkpoints.entry_ranges import read_entries
from tidelog.log.checkpoints.reading import Checkpoint, checkpoints_from, is_foreign, live_files, newest_floor
from tidelog.log.delta import layout
from tidelog.log.storage.port import Linked, LinksObjects, Storage
from tidelog.mirror.branch.plan import OutOfReachError, TableFiles, files_at
from tidelog.mirror.copying import Copier
from tidelog.mirror.plan import read_entry

_MOST_TRIES: Final = 5


def read_table(storage: Storage, table: str, version: int) -> TableFiles:
    """What a branch takes of a table at a version of its log, of which a hold keeps what there is.

    Raises `OutOfReachError`, `CorruptLogError`, `StorageError`.
    """
    for _ in range(_MOST_TRIES):
        try:
            return _read(storage, table, version)
        except (LogTrimmedError, ObjectNotFoundError):
            continue  # trimmed just before the hold was there: what is left is past another floor
    raise _out_of_reach(storage, table, version)


def _read(storage: Storage, table: str, version: int) -> TableFiles:
    floor = newest_floor(storage, table)
    base, files = _base(storage, table, floor, version)
    first = 0 if base is None else base.version
    versions = range(first if base is None else first + 1, version + 1)
    entries = [read_entry(table, v, data, decides=False) for v, data in read_entries(storage, table, versions)]
    below = -1 if base is None else first - 1
    if newest_floor(storage, table) > below:  # after the entries: those up to a floor may be of stale writers
        raise LogTrimmedError(f"The log in {table} was trimmed past its version {first} meanwhile.")
    checkpoint = () if base is None else tuple(f"{table}/{layout.LOG_FOLDER}/{name}" for name in base.files)
    log = (*checkpoint, *(f"{table}/{layout.entry_path(v)}" for v in range(first, version + 1)))
    everything, live = files_at(files, entries)
    return TableFiles(table, version, below, log, everything, live)


def _base(storage: Storage, table: str, floor: int, version: int) -> tuple[Checkpoint | None, Mapping[str, int]]:
    """The newest checkpoint up to a version that can be read, and its files; None for a log that is whole."""
    for checkpoint in checkpoints_from(storage, table, floor + 1):
        if checkpoint.version > version or is_foreign(storage, table, checkpoint.version):
            continue
        try:
            return checkpoint, {f"{table}/{path}": size for path, size in live_files(storage, table, checkpoint)}
        except (CorruptLogError, ObjectNotFoundError):  # torn, or gone: what is before it serves as well
            continue
    if floor >= 0:
        raise LogTrimmedError(f"The log in {table} has no checkpoint from its floor {floor} up to {version}.")
    return None, {}


def _out_of_reach(storage: Storage, table: str, version: int) -> OutOfReachError:
    floor = newest_floor(storage, table)
    return OutOfReachError(
        f"The log of '{table}' does not reach back to its version {version}: what is before it was trimmed, up to"
        f" {floor}, as it was older than log.min.age.ms. Branch a later cut, or the lake as it is now; a cut made with"
        " --keep stays within reach."
    )


@dataclass
class FileTaker:
    """Takes files of one store into another one, to the same paths.

    `linked` and `copied` count them, `copied_bytes` what passed this process. `again`: an earlier call may have taken
    some of them.
    """

    source: Storage
    target: Storage
    copier: Copier
    again: bool
    linked: int = 0
    copied: int = 0

    @property
    def copied_bytes(self) -> int:
        """The bytes that passed this process."""
        return self.copier.copied_bytes

    def take(self, sizes: Mapping[str, int]) -> list[str]:
        """Take files, by path with their bytes, so that they are as durable as at the source; those that it lacks.

        Raises `MissingSegmentError` for one of another size, `StorageError`.
        """
        done = self._link(list(sizes))
        copied = {path: sizes[path] for path in done.unlinked}
        missing = [*done.missing, *(self.copier.copy(copied, again=self.again) if copied else ())]
        self.copied += len(copied)
        return missing

    def take_log(self, paths: list[str]) -> None:
        """Take entries and checkpoints, durably. Raises `ObjectNotFoundError`, `StorageError`."""
        done = self._link(paths)
        if done.missing:
            raise ObjectNotFoundError(f"{done.missing[0]} is gone from {self.source.uri} meanwhile.")
        for path in done.unlinked:
            self.target.put(path, self.source.get(path))
        # Entries are durable at the source. Of a checkpoint the writer may still be at it, or have died amid it.
        checkpoints = [path for path in paths if layout.entry_version(path) is None]
        self.target.sync(dict.fromkeys([*done.unlinked, *checkpoints]))

    def _link(self, paths: list[str]) -> Linked:
        if not isinstance(self.target, LinksObjects) or not self.target.links_from(self.source):
            return Linked(unlinked=tuple(paths))
        done = self.target.link_in(self.source, paths)
        self.linked += len(paths) - len(done.missing) - len(done.unlinked)
        return done
