"""Counting what a store would be asked if it were an object store: the calls of any store, as requests."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage.port import ObjectInfo, Storage
from tidelog.log.storage.ranged import Piece, RangedFile, first_range
from tidelog.log.storage.requests import PART_BYTES, PUT_AT_MOST_BYTES, PUT_PART_BYTES, RequestKind, Requests


class CountingStorage:
    """`inner`, a store that sends no requests, with the count of those that an object store would be sent.

    Files are read as an object store's are, by ranges. Whatever `inner` can do beyond the port is not offered.
    """

    is_shared = True  # as what it stands for

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.uri = inner.uri
        self.requests = Requests()

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises `ObjectNotFoundError`."""
        self.requests.note(RequestKind.GET, path)
        data = self._inner.get(path)
        self.requests.note_received(len(data))
        return data

    def head(self, path: str) -> ObjectInfo:
        """The object's size and time. Raises `ObjectNotFoundError`."""
        self.requests.note(RequestKind.HEAD, path)
        return self._inner.head(path)

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Create the object unless one is there."""
        self.requests.note(RequestKind.CONDITIONAL_PUT, path, sent=len(data))
        return self._inner.put_if_absent(path, data, before)

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Create or replace the object."""
        self.requests.note_written(path, len(data), PUT_AT_MOST_BYTES, PUT_PART_BYTES)
        self._inner.put(path, data)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file to write."""
        written = 0

        class Counted:
            """The file inside, whose bytes are counted."""

            def write(self, data: Any) -> int:
                nonlocal written
                written += memoryview(data).nbytes
                return file.write(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

        try:
            with self._inner.create(path) as file:
                yield Counted()  # type: ignore[misc]
        except BaseException:
            self.requests.note_aborted(path, written, PART_BYTES)
            raise
        self.requests.note_written(path, written, PART_BYTES - 1, PART_BYTES)

    def sync(self, paths: Iterable[str]) -> list[str]:
        """As the store inside; an object store is asked nothing."""
        return self._inner.sync(paths)

    def open(self, path: str, size: int | None = None) -> Any:
        """A file that is read by ranges. Raises `ObjectNotFoundError`."""
        start, end = first_range(size or None)
        try:
            file = self._inner.open(path, size)
        except ObjectNotFoundError:
            self.requests.note(RequestKind.RANGED_GET, path)
            raise
        source = _Ranges(file, self.requests)
        if start >= source.size:
            self.requests.note(RequestKind.RANGED_GET, path)
            self.requests.note(RequestKind.HEAD, path)
            return _File(source, path, Piece(0, b"", source.size, None))
        return _File(source, path, source.read_range(path, start, end, None))

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects in a folder; only they are counted, not the folders that a listing names beside them."""
        found = list(self._inner.list_after(folder, after))
        self.requests.note_listed(folder, len(found))
        return iter(found)

    def list_folders(self, folder: str) -> list[str]:
        """The folders in a folder; only they are counted, not the objects that a listing names beside them."""
        found = self._inner.list_folders(folder)
        self.requests.note_listed(folder, len(found))
        return found

    def delete(self, path: str) -> None:
        """Delete the object."""
        self.requests.note(RequestKind.DELETE, path)
        self._inner.delete(path)


class _Ranges:
    """An open file, read by ranges as an object is."""

    def __init__(self, file: Any, requests: Requests) -> None:
        self._file = file
        self._requests = requests
        self.size = int(file.seek(0, 2) or file.tell())

    def read_range(self, path: str, start: int, end: int, e_tag: str | None) -> Piece:  # noqa: ARG002 - it stays open
        """The bytes [start, end) of the file, or up to its end."""
        self._file.seek(start)
        data = self._file.read(end - start)
        self._requests.note(RequestKind.RANGED_GET, path, received=len(data))
        return Piece(start, data, self.size, None)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _File(RangedFile):
    """A file that is read by ranges, and holds another one open."""

    def __init__(self, source: _Ranges, path: str, first: Piece) -> None:
        super().__init__(source, path, first)
        self._inner = source

    def close(self) -> None:
        """Close both."""
        self._inner.close()
        super().close()
