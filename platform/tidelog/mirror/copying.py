"""Copying files between two stores, as they are: many at once, and no faster than a limit allows."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tidelog.log.base.clock import machine_started_ms
from tidelog.log.base.errors import MissingSegmentError, ObjectNotFoundError, StorageError
from tidelog.log.base.rate import Rate
from tidelog.log.storage.port import CopiesFiles, Distant, OnThisMachine, Storage

T = TypeVar("T")
R = TypeVar("R")

# Up to this size a file is read at once; a larger one goes through by pieces.
PIECE_BYTES: Final = 4 * 1024 * 1024


@dataclass
class Copier:
    """Copies files from one store to another, to the same paths. `copied_bytes` counts them."""

    source: Storage
    follower: Storage
    rate: Rate
    copied_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        distant = isinstance(self.source, Distant) or isinstance(self.follower, Distant)
        self._pool = ThreadPoolExecutor(16 if distant else 3, thread_name_prefix="tidelog-mirror")
        # An object is stored whole or not at all. What a local disk has of one may not have survived a power loss: what
        # was written there since this machine started is whole, and lasts once it is synced.
        self._trusted_since_ms = 0.0 if isinstance(self.follower, Distant) else started_ms(self.follower)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Do work on each item beside one another; the results in the items' order."""
        return self._pool.map(work, items)

    def copy(self, sizes: Mapping[str, int], *, again: bool = False) -> list[str]:
        """Copy files, by path with their bytes, so that they survive a power loss; those that are not at the source.

        `again`: some may have been copied before. Raises `MissingSegmentError` for one of another size, `StorageError`.
        """
        paths = list(sizes)
        if len(paths) > 1:
            copied = list(self._pool.map(lambda path: self._copy(path, sizes[path], again), paths))
        else:
            copied = [self._copy(path, sizes[path], again) for path in paths]
        there = [path for path, is_there in zip(paths, copied, strict=True) if is_there]
        try:
            self._require(self.follower.sync(there))
        except StorageError:
            self._trusted_since_ms = float("inf")  # what could not be synced may be lost, whatever a later sync says
            raise
        return [path for path, is_there in zip(paths, copied, strict=True) if not is_there]

    def _copy(self, path: str, size: int, again: bool) -> bool:
        if again and self._has(path, size):
            return True
        try:
            if isinstance(self.source, OnThisMachine) and isinstance(self.follower, CopiesFiles):
                self._copy_inside(self.source, self.follower, path, size)
                return True
            self.rate.take(min(size, PIECE_BYTES))
            if size <= PIECE_BYTES:
                data = self.source.get(path)
                if len(data) != size:
                    raise _other_size(path, len(data), size)
                self.follower.put(path, data)
            else:
                self._stream(path, size)
        except ObjectNotFoundError:
            return False
        self._count(size)
        return True

    def _copy_inside(self, source: OnThisMachine, follower: CopiesFiles, path: str, size: int) -> None:
        """Have the kernel copy a file: its bytes don't come into this process."""
        folder, _, name = path.rpartition("/")
        piece = min(size, PIECE_BYTES)
        copied = follower.copy_in(
            path, f"{source.local_path(folder)}/{name}", PIECE_BYTES, lambda: self.rate.take(piece)
        )
        if copied != size:
            raise _other_size(path, copied, size)
        self._count(size)

    def _count(self, size: int) -> None:
        with self._lock:
            self.copied_bytes += size

    def _stream(self, path: str, size: int) -> None:
        with self.source.open(path, size) as source, self.follower.create(path) as target:
            copied = 0
            while piece := source.read(PIECE_BYTES):
                if copied:
                    self.rate.take(len(piece))
                target.write(piece)
                copied += len(piece)
            if copied != size:
                raise _other_size(path, copied, size)

    def _has(self, path: str, size: int) -> bool:
        try:
            info = self.follower.head(path)
        except ObjectNotFoundError:
            return False
        return info.size == size and info.modified_ms >= self._trusted_since_ms

    def _require(self, missing: Sequence[str]) -> None:
        if missing:
            raise MissingSegmentError(
                f"{missing[0]} is gone from the follower although it was just copied there: another program deletes"
                " files below it. Nothing but a lake's own programs may."
            )


def _other_size(path: str, found: int, size: int) -> MissingSegmentError:
    return MissingSegmentError(
        f"{path} has {found} bytes at the source, and its log says {size}: the file is damaged there. 'tidelog check'"
        " finds what else is. The mirror goes on when it is mended."
    )


def started_ms(storage: Storage) -> float:
    """When the machine whose disk a store is on was started, ms since the epoch; infinity where that is not known."""
    on_this = isinstance(storage, OnThisMachine) and not storage.is_shared
    return machine_started_ms() if on_this else float("inf")
