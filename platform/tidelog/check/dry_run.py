"""A store seen through changes that stay in memory: repair tries its steps there before it takes them."""

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage.port import HoldsStrangers, LeavesUnfinished, ObjectInfo, Storage


class Overlay:
    """Reads from `below`, keeps every change to itself. What it stores is as of `now_ms`. For one thread."""

    def __init__(self, below: Storage, now_ms: int) -> None:
        self._below = below
        self._now_ms = now_ms
        self._changed: dict[str, bytes | None] = {}  # None: deleted
        self._discarded: set[str] = set()

    @property
    def uri(self) -> str:
        """The address of the store below."""
        return self._below.uri

    @property
    def is_shared(self) -> bool:
        """False: what is written here is seen here only."""
        return False

    def get(self, path: str) -> bytes:
        """The object's bytes, the change's if there is one."""
        if path not in self._changed:
            return self._below.get(path)
        data = self._changed[path]
        if data is None:
            raise ObjectNotFoundError(f"{self.uri}/{path} would be deleted by an earlier step.")
        return data

    def head(self, path: str) -> ObjectInfo:
        """The object's size and time, the change's if there is one."""
        if path not in self._changed:
            return self._below.head(path)
        return ObjectInfo(path, len(self.get(path)), self._now_ms)

    def open(self, path: str, size: int | None = None) -> Any:
        """A file to read."""
        return pa.BufferReader(self.get(path)) if path in self._changed else self._below.open(path, size)

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Store in memory."""
        self._changed[path] = bytes(data)

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Store in memory unless an object is there, here or below."""
        if before:
            before()
        try:
            self.get(path)
        except ObjectNotFoundError:
            self._changed[path] = data
            return True
        return False

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file in memory."""
        file = io.BytesIO()
        yield file
        self._changed[path] = file.getvalue()

    def sync(self, paths: Iterable[str]) -> list[str]:  # noqa: ARG002 - nothing is looked at
        """Nothing lasts here."""
        return []

    def delete(self, path: str) -> None:
        """Hide the object."""
        self._changed[path] = None

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects in a folder, changes included."""
        prefix = f"{folder}/" if folder else ""
        infos = {o.path: o for o in self._below.list_after(folder, after)}
        for path, data in self._changed.items():
            name = path.removeprefix(prefix)
            if data is None:
                infos.pop(path, None)
            elif path.startswith(prefix) and "/" not in name and name > after:
                infos[path] = ObjectInfo(path, len(data), self._now_ms)
        return iter(sorted(infos.values(), key=lambda o: o.path))

    def list_folders(self, folder: str) -> list[str]:
        """The folders in a folder, changes included."""
        prefix = f"{folder}/" if folder else ""
        added = {
            path.removeprefix(prefix).split("/", 1)[0]
            for path, data in self._changed.items()
            if data is not None and path.startswith(prefix) and "/" in path.removeprefix(prefix)
        }
        return sorted({*self._below.list_folders(folder), *added})

    def strangers(self, folder: str) -> list[str]:
        """What is no object in the store below."""
        return self._below.strangers(folder) if isinstance(self._below, HoldsStrangers) else []

    def unfinished(self, folder: str) -> list[ObjectInfo]:
        """The unfinished files of the store below that were not discarded here."""
        below = self._below.unfinished(folder) if isinstance(self._below, LeavesUnfinished) else []
        return [o for o in below if o.path not in self._discarded]

    def discard_unfinished(self, path: str) -> None:
        """Hide an unfinished file."""
        self._discarded.add(path)
