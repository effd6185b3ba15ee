"""A range of a log's entries: one after another, or many at once where the store is far away."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Entry, decode_entry
from tidelog.log.storage.port import Distant, Storage

# Entries that are asked for, and held, at once.
AT_ONCE: Final = 256


def find_entries(storage: Storage, folder: str, versions: range) -> Iterator[tuple[int, bytes | None]]:
    """(version, bytes) of entries of the log in a folder, in their order; None for one that is not there.

    Not for the threads that a distant store's `helpers` are. Raises `StorageError`.
    """
    get = partial(_get, storage, folder)
    for first in range(0, len(versions), AT_ONCE):
        part = versions[first : first + AT_ONCE]
        at_once = storage.helpers().map if isinstance(storage, Distant) and len(part) > 1 else map
        yield from zip(part, at_once(get, part), strict=True)


def read_entries(storage: Storage, folder: str, versions: range) -> Iterator[tuple[int, bytes]]:
    """The same of entries that are all there. Raises `ObjectNotFoundError`, `StorageError`."""
    for version, data in find_entries(storage, folder, versions):
        if data is None:
            raise ObjectNotFoundError(f"There is no entry {folder}/{layout.entry_path(version)}.")
        yield version, data


def decoded_entries(storage: Storage, folder: str, versions: range) -> Iterator[Entry]:
    """What they say. Raises also `CorruptLogError`."""
    for version, data in read_entries(storage, folder, versions):
        yield decode_entry(version, data, f"{folder}/{layout.entry_path(version)}")


def _get(storage: Storage, folder: str, version: int) -> bytes | None:
    try:
        return storage.get(f"{folder}/{layout.entry_path(version)}")
    except ObjectNotFoundError:
        return None
