"""The messages of PostgreSQL's output plugin `pgoutput`, protocol version 1, and what decodes them.

The source of the layout is PostgreSQL's manual, "Logical Replication Message Formats". All numbers are big endian,
texts are UTF-8 (the connection's client encoding) and end with a zero byte, times count microseconds since 2000.
"""

from collections.abc import Callable
from enum import StrEnum
from struct import Struct, error
from typing import Final, NamedTuple

from tidelog.connect.data.errors import DataError

# Microseconds between 1970 and 2000, where PostgreSQL's times begin.
POSTGRES_EPOCH_US: Final = 946_684_800_000_000


class Unchanged:
    """The value of a column that an update left as it is, and that is too large to be in the log (TOAST)."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
# A column's value in its type's text form, None for null; bytes in its binary form, which protocol 1 sends on request.
Cell = str | bytes | Unchanged | None
Cells = list[Cell]


class ReplicaIdentity(StrEnum):
    """What of an old row is in the log, by the letters of `pg_class.relreplident`."""

    DEFAULT = "d"
    NOTHING = "n"
    FULL = "f"
    INDEX = "i"


class Begin(NamedTuple):
    """A transaction begins. `final_lsn`: where its commit is in the log; `xid`: its id, 32 bits."""

    final_lsn: int
    commit_us: int
    xid: int


class Commit(NamedTuple):
    """The transaction of the last Begin ends. `lsn`: its Begin's `final_lsn`; `end_lsn`: after its commit."""

    lsn: int
    end_lsn: int
    commit_us: int


class TransactionOrigin(NamedTuple):
    """The transaction came by replication from another server."""

    lsn: int
    name: str


class RelationColumn(NamedTuple):
    """A column of a relation. `is_key`: part of the replica identity; `typmod`: -1 where the type has none."""

    is_key: bool
    name: str
    type_oid: int
    typmod: int


class Relation(NamedTuple):
    """A table, sent before its first change and after each alteration. Generated columns are not among its columns."""

    relation_id: int
    schema: str
    table: str
    replica_identity: ReplicaIdentity
    columns: tuple[RelationColumn, ...]


class TypeName(NamedTuple):
    """A type that isn't PostgreSQL's own."""

    oid: int
    schema: str
    name: str


class Insert(NamedTuple):
    """A new row."""

    relation_id: int
    new: Cells


class Update(NamedTuple):
    """A changed row. `key`: the replica identity's old columns where one changed, other cells None; `old`: the whole
    old row under REPLICA IDENTITY FULL; else both None.
    """

    relation_id: int
    key: Cells | None
    old: Cells | None
    new: Cells


class Delete(NamedTuple):
    """A removed row: its replica identity's columns in `key`, or the whole row in `old`."""

    relation_id: int
    key: Cells | None
    old: Cells | None


class Truncate(NamedTuple):
    """Tables emptied by one statement."""

    relation_ids: tuple[int, ...]
    cascade: bool
    restart_identity: bool


class LogicalMessage(NamedTuple):
    """What `pg_logical_emit_message` wrote."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


Message = (
    Begin | Commit | TransactionOrigin | Relation | TypeName | Insert | Update | Delete | Truncate | LogicalMessage
)
Change = Insert | Update | Delete | Truncate | LogicalMessage

_BEGIN: Final = Struct("!QqI")
_COMMIT: Final = Struct("!BQQq")
_LSN: Final = Struct("!Q")
_OID: Final = Struct("!I")
_COUNT: Final = Struct("!H")
_COLUMN: Final = Struct("!Ii")
_TRUNCATE: Final = Struct("!IB")
_MESSAGE: Final = Struct("!BQ")
_oid_at: Final = _OID.unpack_from
_count_at: Final = _COUNT.unpack_from

_NULL, _UNCHANGED, _TEXT, _BINARY = b"nutb"
_KEY, _OLD, _NEW = b"KON"


def decode(data: bytes) -> Message:
    """A message, without the streaming protocol's header. Raises `DataError` for what isn't one of protocol 1."""
    decoder = _DECODERS.get(data[:1])
    if decoder is None:
        raise DataError(
            f"PostgreSQL sent a message of the kind {data[:1]!r}, which pgoutput's protocol 1 does not have."
            " Check that the replication slot's plugin is pgoutput."
        )
    try:
        return decoder(data)
    except (error, IndexError, ValueError) as wrong:
        raise DataError(
            f"PostgreSQL's message of the kind {data[:1]!r} with {len(data)} bytes can't be decoded: {wrong}."
            " Its layout is not that of pgoutput's protocol 1."
        ) from wrong


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A text that ends with a zero byte, and the place after it."""
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _cells(data: bytes, at: int) -> tuple[Cells, int]:
    """A row, and the place after it. This is called for each change, and so has no calls of its own."""
    (count,) = _count_at(data, at)
    at += 2
    cells: Cells = []
    add = cells.append
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            start = at + 5
            at = start + _oid_at(data, at + 1)[0]
            add(data[start:at].decode())
        elif kind == _NULL:
            add(None)
            at += 1
        elif kind == _UNCHANGED:
            add(UNCHANGED)
            at += 1
        elif kind == _BINARY:
            start = at + 5
            at = start + _oid_at(data, at + 1)[0]
            add(data[start:at])
        else:
            raise ValueError(f"a column of the kind {chr(kind)!r}")
    if at > len(data):
        raise ValueError("a column goes beyond the message")
    return cells, at


def _begin(data: bytes) -> Begin:
    final_lsn, commit_us, xid = _BEGIN.unpack_from(data, 1)
    return Begin(final_lsn, commit_us + POSTGRES_EPOCH_US, xid)


def _commit(data: bytes) -> Commit:
    _, lsn, end_lsn, commit_us = _COMMIT.unpack_from(data, 1)
    return Commit(lsn, end_lsn, commit_us + POSTGRES_EPOCH_US)


def _origin(data: bytes) -> TransactionOrigin:
    return TransactionOrigin(_LSN.unpack_from(data, 1)[0], _text(data, 9)[0])


def _relation(data: bytes) -> Relation:
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity = ReplicaIdentity(chr(data[at]))
    (count,) = _count_at(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _text(data, at + 1)
        type_oid, typmod = _COLUMN.unpack_from(data, at)
        at += 8
        columns.append(RelationColumn(bool(flags & 1), name, type_oid, typmod))
    # An empty schema stands for pg_catalog.
    return Relation(_oid_at(data, 1)[0], schema or "pg_catalog", table, identity, tuple(columns))


def _type(data: bytes) -> TypeName:
    schema, at = _text(data, 5)
    return TypeName(_oid_at(data, 1)[0], schema or "pg_catalog", _text(data, at)[0])


def _insert(data: bytes) -> Insert:
    if data[5] != _NEW:
        raise ValueError(f"a row of the kind {chr(data[5])!r}")
    return Insert(_oid_at(data, 1)[0], _cells(data, 6)[0])


def _update(data: bytes) -> Update:
    key = old = None
    at = 5
    if data[at] == _KEY:
        key, at = _cells(data, at + 1)
    elif data[at] == _OLD:
        old, at = _cells(data, at + 1)
    if data[at] != _NEW:
        raise ValueError(f"a row of the kind {chr(data[at])!r}")
    return Update(_oid_at(data, 1)[0], key, old, _cells(data, at + 1)[0])


def _delete(data: bytes) -> Delete:
    if data[5] not in (_KEY, _OLD):
        raise ValueError(f"a row of the kind {chr(data[5])!r}")
    row, _ = _cells(data, 6)
    return Delete(_oid_at(data, 1)[0], *((row, None) if data[5] == _KEY else (None, row)))


def _truncate(data: bytes) -> Truncate:
    count, options = _TRUNCATE.unpack_from(data, 1)
    ids = tuple(_oid_at(data, 6 + 4 * number)[0] for number in range(count))
    return Truncate(ids, bool(options & 1), bool(options & 2))


def _message(data: bytes) -> LogicalMessage:
    flags, lsn = _MESSAGE.unpack_from(data, 1)
    prefix, at = _text(data, 10)
    (size,) = _oid_at(data, at)
    content = data[at + 4 : at + 4 + size]
    if len(content) != size:
        raise ValueError("its content goes beyond the message")
    return LogicalMessage(bool(flags & 1), lsn, prefix, content)


_DECODERS: Final[dict[bytes, Callable[[bytes], Message]]] = {
    b"B": _begin,
    b"C": _commit,
    b"O": _origin,
    b"R": _relation,
    b"Y": _type,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
    b"M": _message,
}
