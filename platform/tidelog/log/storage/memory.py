"""A store in this process's memory: for tests, simulations and trying things out."""

import io
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from threading import Lock
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage.port import Linked, ObjectInfo, Storage, check_folder, check_path


class _Object(NamedTuple):
    data: bytes
    modified_ms: int


class MemoryStorage:
    """Objects in memory, gone with the process: `sync` does nothing for them.

    Deterministic: equal calls in equal order give equal answers, `modified_ms` comes from `clock`.

    >>> storage = MemoryStorage("example")
    >>> storage.put_if_absent("a", b"1"), storage.put_if_absent("a", b"2")
    (True, False)
    """

    is_shared = False

    def __init__(self, name: str, clock: Clock | None = None) -> None:
        self._name = name
        self.uri = f"memory://{name}"
        self._clock = clock or SystemClock()
        self._lock = Lock()
        self._objects: dict[str, _Object] = {}
        self._paths: list[str] = []  # the keys of _objects, sorted

    def __repr__(self) -> str:
        return f"MemoryStorage({self._name!r})"

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises `ObjectNotFoundError`."""
        return self._object(path).data

    def head(self, path: str) -> ObjectInfo:
        """The object's size and time. Raises `ObjectNotFoundError`."""
        found = self._object(path)
        return ObjectInfo(path, len(found.data), found.modified_ms)

    def open(self, path: str, size: int | None = None) -> Any:  # noqa: ARG002 - it is here
        """A `pyarrow.BufferReader`. Raises `ObjectNotFoundError`."""
        return pa.BufferReader(self.get(path))

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Create the object unless one is there."""
        check_path(path)
        if before:
            before()
        with self._lock:
            if path in self._objects:
                return False
            self._store(path, data)
        return True

    def create_run(self, objects: Iterable[tuple[str, bytes]]) -> int:
        """Create objects in order, up to the first that is there; how many."""
        return sum(1 for _ in takewhile(lambda one: MemoryStorage.put_if_absent(self, *one), objects))

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Create or replace the object."""
        check_path(path)
        with self._lock:
            self._store(path, data)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file in memory, stored at the end of the `with` block."""
        check_path(path)
        file = _NewFile()
        yield file
        file.close()
        self.put(path, file.data)

    def links_from(self, source: Storage) -> bool:
        """Whether the other store is in this process's memory, too."""
        return isinstance(source, MemoryStorage)

    def link_in(self, source: Storage, paths: Sequence[str]) -> Linked:
        """Share the bytes of the source's objects."""
        missing = []
        for path in paths:
            try:
                self.put(path, source.get(path))
            except ObjectNotFoundError:
                missing.append(path)
        return Linked(tuple(missing))

    def sync(self, paths: Iterable[str]) -> list[str]:
        """The paths without an object."""
        wanted = list(paths)
        for path in wanted:
            check_path(path)
        return [path for path in wanted if path not in self._objects]

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects directly in `folder` whose name sorts after `after`: a snapshot, in lexical order."""
        check_folder(folder)
        prefix = f"{folder}/" if folder else ""
        with self._lock:
            infos = [
                ObjectInfo(path, len(self._objects[path].data), self._objects[path].modified_ms)
                for path in self._below(prefix, after)
                if "/" not in path[len(prefix) :] and path[len(prefix) :] > after
            ]
        return iter(infos)

    def list_folders(self, folder: str) -> list[str]:
        """The names of the folders directly in `folder`, sorted."""
        check_folder(folder)
        prefix = f"{folder}/" if folder else ""
        with self._lock:
            below = [path[len(prefix) :] for path in self._below(prefix)]
        return sorted({name.split("/", 1)[0] for name in below if "/" in name})

    def delete(self, path: str) -> None:
        """Delete the object; one that is not there is no error."""
        check_path(path)
        with self._lock:
            if self._objects.pop(path, None) is not None:
                del self._paths[bisect_left(self._paths, path)]

    def _object(self, path: str) -> _Object:
        check_path(path)
        try:
            return self._objects[path]
        except KeyError:
            raise ObjectNotFoundError(
                f"There is no object {self.uri}/{path}. Check the path, or whether it was deleted."
            ) from None

    def _store(self, path: str, data: bytes | memoryview) -> None:
        if path not in self._objects:
            insort(self._paths, path)
        self._objects[path] = _Object(bytes(data), self._clock.now_ms())

    def _below(self, prefix: str, after: str = "") -> Iterator[str]:
        """The paths that start with `prefix`, from the one that follows it and `after`, sorted."""
        for i in range(bisect_left(self._paths, prefix + after), len(self._paths)):
            if not self._paths[i].startswith(prefix):
                return
            yield self._paths[i]


class _NewFile(io.BytesIO):
    """A buffer that keeps its bytes when it is closed."""

    data = b""

    def close(self) -> None:
        if not self.closed:
            self.data = self.getvalue()
        super().close()
