"""How a follower begins a table: from a checkpoint with its files, while the source holds both."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Final
from urllib.parse import unquote

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import CorruptLogError, LogTrimmedError, MissingSegmentError, ObjectNotFoundError
from tidelog.log.checkpoints.reading import Checkpoint, checkpoints_from, newest_floor, read_checkpoint
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Metadata, decode_entry
from tidelog.log.storage.memory import MemoryStorage
from tidelog.log.storage.port import ObjectInfo, Storage
from tidelog.log.storage.proving import require_proof
from tidelog.log.upkeep.background import LAG
from tidelog.log.upkeep.holds import Holder
from tidelog.mirror.copying import Copier
from tidelog.mirror.follower_log import get_entry
from tidelog.mirror.source_logs import SourceLog

_MOST_TRIES: Final = 5


class _Apart:
    """A log that is read at one store, while what is written stays in memory."""

    def __init__(self, source: Storage) -> None:
        self._source = source
        self.written = MemoryStorage("checkpoint")

    def get(self, path: str) -> bytes:
        """As the source has it."""
        return self._source.get(path)

    def open(self, path: str, size: int | None = None) -> Any:
        """As the source has it."""
        return self._source.open(path, size)

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """As the source has it."""
        return self._source.list_after(folder, after)

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A file in memory."""
        return self.written.create(path)

    def put(self, path: str, data: bytes | memoryview) -> None:
        """An object in memory."""
        self.written.put(path, data)

    def sync(self, paths: Iterable[str]) -> list[str]:
        """Nothing to do in memory."""
        return self.written.sync(paths)


class CheckpointStart:
    """Begins tables at a follower from checkpoints of the source's log."""

    def __init__(self, source: Storage, follower: Storage, copier: Copier, clock: Clock, ids: Ids) -> None:
        self._source = source
        self._follower = follower
        self._copier = copier
        self._clock = clock
        self._ids = ids

    def begin(self, log: SourceLog, to: int, holder: Holder) -> int:
        """Bring the follower to a version, which is returned: -1 where all entries from 0 on are kept.

        It is up to `to` unless the source trimmed its log past that just now. `holder` holds the source's log from then
        on: the caller gives it back once what follows is shipped, too. `log` goes on after that version.
        Raises `CorruptLogError`, `MissingSegmentError`, `StorageError`.
        """
        # From the hold on nothing of the log past its newest floor goes. What went just before it, a look tells.
        holder.hold(log.folder, lambda: self._look(log))
        for _ in range(_MOST_TRIES):
            try:
                version = self._begin(log.folder, to)
                log.restart(version)
                return version
            except (LogTrimmedError, ObjectNotFoundError, MissingSegmentError) as e:
                missing: Exception = e
        raise missing

    def _look(self, log: SourceLog) -> int:
        """The oldest version that the follower may need: the newest checkpoint's past the floor."""
        floor = newest_floor(self._source, log.folder)
        found = next(iter(checkpoints_from(self._source, log.folder, floor + 1)), None)
        return floor + 1 if found is None else found.version

    def _begin(self, folder: str, to: int) -> int:
        floor = newest_floor(self._source, folder)
        versions = [c.version for c in checkpoints_from(self._source, folder, floor + 1)]
        if not versions and floor < 0:
            return -1
        if not versions:
            raise CorruptLogError(
                f"The log in {folder} at the source has a floor {floor} and no checkpoint past it. 'tidelog check' says"
                " what is left."
            )
        base = next((version for version in versions if version <= to), versions[0])
        apart = _Apart(self._source)
        write_checkpoint(apart, folder, max(base, to - LAG), self._clock.now_ms())  # type: ignore[arg-type]
        checkpoint = next(iter(checkpoints_from(apart.written, folder, 0)))
        self._copy_files(folder, apart.written, checkpoint)
        self._put(folder, apart.written, checkpoint)
        return checkpoint.version

    def _copy_files(self, folder: str, written: Storage, checkpoint: Checkpoint) -> None:
        actions = read_checkpoint(written, folder, checkpoint)
        sizes = {f"{folder}/{unquote(a.path)}": a.size for a in actions if isinstance(a, Add)}
        missing = self._copier.copy(sizes, again=True)
        if missing:
            raise MissingSegmentError(
                f"{missing[0]} is not at the source, and its log names it: it is lost there. 'tidelog check' says what"
                " else is; the mirror goes on when it is restored or given up."
            )

    def _put(self, folder: str, written: Storage, checkpoint: Checkpoint) -> None:
        """Put the checkpoint, and only then what says that nothing is before it."""
        follower, version = self._follower, checkpoint.version
        require_proof(follower, folder, self._ids)
        paths = [f"{folder}/{layout.LOG_FOLDER}/{name}" for name in checkpoint.files]
        for path in paths:
            follower.put(path, written.get(path))
        follower.sync(paths)
        if version:
            follower.put_if_absent(f"{folder}/{layout.floor_path(version - 1)}", b"")
        entry = get_entry(self._source, folder, version)
        if entry is not None:  # it gives the checkpoint an age
            follower.put_if_absent(f"{folder}/{layout.entry_path(version)}", entry)
        hint = f"{folder}/{layout.LAST_CHECKPOINT}"
        follower.put(hint, written.get(hint))
        follower.sync([hint])


def table_id(storage: Storage, folder: str) -> str | None:
    """The id of the Delta table in a folder, for its whole life; None where none can be read."""
    first = get_entry(storage, folder, 0)
    floor = newest_floor(storage, folder)
    if first is not None and floor < 0:
        actions: Iterable[Any] = decode_entry(0, first, folder).actions
    else:
        found = next(iter(checkpoints_from(storage, folder, floor + 1)), None)
        actions = () if found is None else read_checkpoint(storage, folder, found)
    return next((a.table_id for a in actions if isinstance(a, Metadata)), None)
