"""The objects that a commit brings besides its entry: they are there, and durable, before an entry names them.

What this process has written, the store has confirmed to it, and a sync finds it on a local disk. What another process
has written (a Spark task) is looked up: that process may see another place under the lake's address.
"""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence

from tidelog.log.base.errors import MissingSegmentError, ObjectNotFoundError
from tidelog.log.checkpoints.reading import newest_checkpoint_version
from tidelog.log.delta.actions import Action, Add, Entry
from tidelog.log.storage.orphans import discard
from tidelog.log.storage.port import Distant, Storage


def require_stored(storage: Storage, sizes: Mapping[str, int]) -> None:
    """Look each object up, by path, and compare its size in bytes: one `head` an object, many at once behind a network.

    Raises `MissingSegmentError` that names those that are not there, or not as large, and `StorageError`.
    """

    def problem(path: str) -> str | None:
        try:
            size = storage.head(path).size
        except ObjectNotFoundError:
            return f"{path} is not there"
        return None if size == sizes[path] else f"{path} has {size} bytes, and was written with {sizes[path]}"

    look_up = storage.helpers().map if len(sizes) > 1 and isinstance(storage, Distant) else map
    _refuse([found for found in look_up(problem, sizes) if found is not None])


def make_durable(storage: Storage, own: Collection[str], earlier: Iterable[str] = ()) -> None:
    """Sync the objects that a commit brings, by path, and with them those of `earlier` ones, which may be gone by now.

    Raises `MissingSegmentError` that names those of its own that are not there, and `StorageError`.
    """
    missing = storage.sync([*earlier, *own])
    _refuse([f"{path} is not there" for path in missing if path in own])


class SegmentLookup:
    """Looks up the segments of one commit that another process has staged: once, however many races it loses."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._seen: set[str] = set()

    def require(self, actions: Iterable[Action]) -> None:
        """Look up what these actions add. Raises as `require_stored`."""
        adds = {f"{self._folder}/{a.path}": a.size for a in actions if isinstance(a, Add)}
        require_stored(self._storage, {path: size for path, size in adds.items() if path not in self._seen})
        self._seen.update(adds)


class AttachedFiles:
    """The files of one commit: stored before its entry, deleted when the entry was not committed."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._stored: frozenset[str] = frozenset()

    def store(self, files: Mapping[str, bytes]) -> None:
        """Store the files of the next attempt, by path below the log's folder, and delete those of a lost one."""
        for path in files.keys() - self._stored:
            self._storage.put(f"{self._folder}/{path}", files[path])
        left, self._stored = self._stored - files.keys(), frozenset(files)
        discard(self._storage, (f"{self._folder}/{path}" for path in left))


# Past this many unsynced segments a durable commit first asks up to which entry the checkpointer has synced.
MANY_UNSYNCED = 512


class UnsyncedSegments:
    """The segments of a log's entries that may not survive a power loss yet.

    `lock` is held for all but `up_to` and `drop`, which any thread may call.
    """

    def __init__(self, storage: Storage, folder: str, lock: threading.RLock) -> None:
        self._lock = lock
        self._storage = storage
        self._folder = folder
        self._paths: list[tuple[int, str]] = []  # (entry's version, path below the folder)
        self._most = 16 * MANY_UNSYNCED

    def __bool__(self) -> bool:
        return bool(self._paths)

    def saw(self, entry: Entry) -> None:
        """The log's next entry was applied. A durable one was put after all segments before it were synced."""
        if entry.info.durable:
            self.clear()
        else:
            self._paths.extend((entry.version, a.path) for a in entry.actions if isinstance(a, Add))

    def clear(self) -> None:
        """All are synced: a checkpoint, or a durable entry, rests on them."""
        self._paths = []

    def up_to(self, version: int) -> list[str]:
        """Those of the entries up to `version`, by path below the folder."""
        with self._lock:
            return [path for v, path in self._paths if v <= version]

    def drop(self, version: int) -> None:
        """Those of the entries up to `version` are synced: a checkpoint is written only after that."""
        with self._lock:
            self._paths = [(v, path) for v, path in self._paths if v > version]

    def sync(self, brought: Sequence[str]) -> None:
        """Make the objects that an entry brings, and the segments of all earlier entries, survive a power loss.

        An earlier entry's may be gone: lost, or purged. Raises `MissingSegmentError` for one that it brings.
        """
        if len(self._paths) > MANY_UNSYNCED:
            self._drop_checkpointed()
        make_durable(self._storage, brought, [f"{self._folder}/{path}" for _, path in self._paths])

    def shorten(self) -> None:
        """Keep the list short in a process that only reads, however long it runs."""
        if len(self._paths) > self._most:
            self._drop_checkpointed()
            self._most = len(self._paths) + 16 * MANY_UNSYNCED

    def _drop_checkpointed(self) -> None:
        self.drop(newest_checkpoint_version(self._storage, self._folder))


def _refuse(problems: list[str]) -> None:
    if problems:
        more = f", and {len(problems) - 1} more like it" if len(problems) > 1 else ""
        raise MissingSegmentError(
            f"A segment of this commit is not in storage: {problems[0]}{more}. Nothing was committed. All processes"
            " that stage for a lake and commit to it must see the same place: a folder that each machine of a cluster"
            " has for itself is none. And nothing but tidelog may delete files below it. Write the records again."
        )
