"""The journal of a round: entries of several tables that reach the follower all, or none.

A transaction's decision, its records and its offsets are entries of several tables. A round that ships decisions is
written down first, in one object; what goes on after a crash, the next mirror or a promotion of the follower,
puts the rest of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import CorruptLogError, ObjectNotFoundError
from tidelog.log.delta.layout import MIRROR_FOLDER
from tidelog.log.storage.port import Storage
from tidelog.mirror.follower_log import put_entry

JOURNALS: Final = f"{MIRROR_FOLDER}/rounds"


def journal_path(number: int) -> str:
    """The journal of the mirror whose lease has this number."""
    return f"{JOURNALS}/{number:010d}"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An entry of a round: the bytes of entry `version` of a table."""

    table: str
    version: int
    data: bytes


def encode(entries: Sequence[JournalEntry]) -> bytes:
    """A journal's bytes: a line of JSON, [[table, version, bytes] of each], and then the entries' bytes.

    >>> decode(encode([JournalEntry("orders", 7, b"a"), JournalEntry("t", 1, b"bc")]))[1]
    JournalEntry(table='t', version=1, data=b'bc')
    """
    head = orjson.dumps([[e.table, e.version, len(e.data)] for e in entries])
    return b"\n".join([head, b"".join(e.data for e in entries)])


def decode(data: bytes, path: str = JOURNALS) -> list[JournalEntry]:
    """The entries of the journal at `path`. Raises `CorruptLogError`."""
    head, _, rest = data.partition(b"\n")
    entries, at = [], 0
    try:
        for table, version, size in orjson.loads(head):
            entries.append(JournalEntry(table, version, rest[at : at + size]))
            at += size
    except (ValueError, TypeError) as e:
        raise CorruptLogError(f"{path} is no journal of a mirror: {e}. Delete it.") from e
    if at != len(rest):
        raise CorruptLogError(f"{path} is torn: a round of the mirror is not whole. Restore it from a copy.")
    return entries


def begin(follower: Storage, entries: Sequence[JournalEntry], number: int) -> None:
    """Write a round down, so that it survives a power loss. The files that its entries name are there."""
    path = journal_path(number)
    follower.put(path, encode(entries))
    follower.sync([path])


def end(follower: Storage, number: int) -> None:
    """A round's entries are put."""
    follower.delete(journal_path(number))


def finish(follower: Storage, ids: Ids) -> list[JournalEntry]:
    """Put the entries of the rounds that were begun; those are returned, none without one.

    Raises `DivergedError`, `StorageError`.
    """
    finished: list[JournalEntry] = []
    for info in list(follower.list_after(JOURNALS)):
        try:
            entries = decode(follower.get(info.path), info.path)
        except ObjectNotFoundError:
            continue
        except CorruptLogError:  # a power loss tore it before it lasted, and so before the first of its entries was put
            entries = []
        for entry in entries:
            put_entry(follower, entry.table, entry.version, entry.data, ids)
        follower.delete(info.path)
        finished.extend(entries)
    return finished
