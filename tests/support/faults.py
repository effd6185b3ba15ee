"""A store that fails when a test says so."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, BinaryIO

from tidelog.log.storage import ObjectInfo, Storage
from tidelog.log.storage.port import CreatesRuns, Linked, LinksObjects

Hook = Callable[[str, str, str], None]


def of_this_thread(hook: Hook) -> Hook:
    """`hook` for the calls of the thread that asks for it: a log's upkeep in the background goes on undisturbed.

    For hooks that use what is the test's alone, such as its random numbers or `storage.hook` itself.
    """
    owner = threading.get_ident()

    def called(method: str, path: str, phase: str) -> None:
        if threading.get_ident() == owner:
            hook(method, path, phase)

    return called


class FaultyStorage:
    """`inner`, with `hook(method, path, phase)` called around every call; what the hook raises, the caller gets.

    - `method` is the port's method name: "get", "head", "put_if_absent", "put", "create", "write", "sync", "open",
      "list_after", "list_folders", "delete", "link_in". "write" is each `write` to a file of `create`.
    - `path` is the object's path; for listings the folder; for "sync" it is called once per path.
    - `phase` is "before" (raising: the call never reached the store) or "after" (raising: it was executed
      and its answer was lost). "after" isn't called when the inner call fails. For "create", "before" is the
      start of the `with` block and "after" its end, with the object in place.

    `shared`: other machines write there too, as to an object store.

    A hook may also wait (a frozen writer), count, or act on `inner` itself (another writer's write in between).

    >>> def disk_full(method, path, phase):                      # ENOSPC at the first write of a segment
    ...     if (method, phase) == ("create", "before"):
    ...         raise StorageFullError("no space")
    >>> def lost_answer(method, path, phase):                    # stored, but the writer gets no answer
    ...     if (method, phase) == ("put_if_absent", "after") and "_delta_log" in path:
    ...         raise StorageUnavailableError("timed out")
    >>> storage = FaultyStorage(MemoryStorage("t"), lost_answer)
    >>> storage.hook = lambda *call: None                        # the store is well again
    """

    def __init__(self, inner: Storage, hook: Hook, *, shared: bool = False) -> None:
        self.inner = inner
        self.hook = hook
        self.shared = shared

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def is_shared(self) -> bool:
        return self.shared or self.inner.is_shared

    def get(self, path: str) -> bytes:
        return self._around("get", path, lambda: self.inner.get(path))

    def head(self, path: str) -> ObjectInfo:
        return self._around("head", path, lambda: self.inner.head(path))

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        if before:
            before()
        return self._around("put_if_absent", path, lambda: self.inner.put_if_absent(path, data))

    def create_run(self, objects: Iterable[tuple[str, bytes]]) -> int:
        """The hook is called around each object, as of `put_if_absent`."""

        def each() -> Iterator[tuple[str, bytes]]:
            for path, data in objects:
                self.hook("put_if_absent", path, "before")
                yield path, data
                self.hook("put_if_absent", path, "after")

        if isinstance(self.inner, CreatesRuns):
            return self.inner.create_run(each())
        return sum(1 for _ in takewhile(lambda one: self.inner.put_if_absent(*one), each()))

    def put(self, path: str, data: bytes) -> None:
        self._around("put", path, lambda: self.inner.put(path, data))

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        self.hook("create", path, "before")
        with self.inner.create(path) as file:
            yield _FaultyFile(file, path, self)  # type: ignore[misc]
        self.hook("create", path, "after")

    def links_from(self, source: Storage) -> bool:
        return isinstance(self.inner, LinksObjects) and self.inner.links_from(_inner(source))

    def link_in(self, source: Storage, paths: Sequence[str]) -> Linked:
        """The hook is called around each object."""
        assert isinstance(self.inner, LinksObjects)
        inner, done = self.inner, Linked()
        for path in paths:
            one = self._around("link_in", path, lambda path=path: inner.link_in(_inner(source), [path]))
            done = Linked((*done.missing, *one.missing), (*done.unlinked, *one.unlinked))
        return done

    def sync(self, paths: Iterable[str]) -> list[str]:
        missing = (self._around("sync", path, lambda path=path: self.inner.sync([path])) for path in paths)
        return [path for found in missing for path in found]

    def open(self, path: str, size: int | None = None) -> Any:
        return self._around("open", path, lambda: self.inner.open(path, size))

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        return self._around("list_after", folder, lambda: self.inner.list_after(folder, after))

    def list_folders(self, folder: str) -> list[str]:
        return self._around("list_folders", folder, lambda: self.inner.list_folders(folder))

    def delete(self, path: str) -> None:
        self._around("delete", path, lambda: self.inner.delete(path))

    def _around(self, method: str, path: str, call: Callable[[], Any]) -> Any:
        self.hook(method, path, "before")
        answer = call()
        self.hook(method, path, "after")
        return answer


def _inner(source: Storage) -> Storage:
    return source.inner if isinstance(source, FaultyStorage) else source


class _FaultyFile:
    """A file of `create`, with the hook around each write."""

    def __init__(self, file: BinaryIO, path: str, storage: FaultyStorage) -> None:
        self._file = file
        self._path = path
        self._storage = storage

    def write(self, data: Any) -> int:
        return self._storage._around("write", self._path, lambda: self._file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
