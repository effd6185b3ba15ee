"""How far the log is read: the offset that is stored with each record, and what it says after a restart.

PostgreSQL sends whole transactions, in the order of their commits, and sends again from the start of a transaction
what is not confirmed to the slot. A position is therefore a transaction's commit and how many of its messages
are read.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidelog.connect.data.errors import ConnectError


class LogPosition(NamedTuple):
    """After a number of messages (Begin, its changes, Commit) of the transaction that commits at an LSN. In order."""

    commit_lsn: int = 0
    messages: int = 0


class SnapshotState(NamedTuple):
    """How far the first copy is. `tables`: those copied whole, by their names with their schemas'."""

    complete: bool = False
    tables: tuple[str, ...] = ()


class StoredState(NamedTuple):
    """What a stored offset says. `last_commit`: the end of the last whole transaction before the position."""

    position: LogPosition
    snapshot: SnapshotState
    last_commit: int | None = None


# The keys of an offset. Those that Debezium has, too, mean the same.
_COMMIT_LSN: Final = "transaction_lsn"
_MESSAGES: Final = "transaction_messages"
_LAST_COMMIT: Final = "lsn_commit"
_DEBEZIUM_COMMIT: Final = (_LAST_COMMIT, "lsn_proc")
_SNAPSHOT: Final = "snapshot"
_COMPLETE: Final = "snapshot_completed"
_TABLES: Final = "snapshot_tables"


def stream_offset(
    position: LogPosition, last_commit: int | None, lsn: int, transaction_id: int | None, commit_us: int
) -> dict[str, Any]:
    """The offset of a record of the stream."""
    return {
        "lsn": lsn,
        _LAST_COMMIT: last_commit,
        "txId": transaction_id,
        "ts_usec": commit_us,
        _COMMIT_LSN: position.commit_lsn,
        _MESSAGES: position.messages,
    }


def snapshot_offset(lsn: int, state: StoredState) -> dict[str, Any]:
    """The offset of a record of a copy, with the position that the stream goes on after. `lsn`: the slot's first."""
    offset: dict[str, Any] = {"lsn": lsn, _SNAPSHOT: "INITIAL", _COMPLETE: state.snapshot.complete}
    if not state.snapshot.complete:
        offset[_TABLES] = list(state.snapshot.tables)
    if state.position != LogPosition():
        offset |= {
            _COMMIT_LSN: state.position.commit_lsn,
            _MESSAGES: state.position.messages,
            _LAST_COMMIT: state.last_commit,
        }
    return offset


def read_offset(offset: Mapping[str, Any] | None) -> StoredState | None:
    """What an offset says, None of none. Debezium's are read, too: the transaction that it was amid is read again.

    Raises `ConnectError` for one that is neither.
    """
    if offset is None:
        return None
    try:
        if offset.get(_SNAPSHOT) is not None or _COMPLETE in offset:
            complete = offset.get(_COMPLETE) is True or offset.get("last_snapshot_record") is True
            tables = tuple(map(str, offset.get(_TABLES, ())))
            snapshot = SnapshotState(complete, () if complete else tables)
            return _stored(offset, snapshot) if _COMMIT_LSN in offset else StoredState(LogPosition(), snapshot)
        if _COMMIT_LSN in offset:
            return _stored(offset, SnapshotState(complete=True))
        for key in _DEBEZIUM_COMMIT:
            if key in offset:
                return StoredState(LogPosition(_whole(offset[key])), SnapshotState(complete=True), _whole(offset[key]))
    except (KeyError, TypeError, ValueError) as wrong:
        raise _unreadable(offset) from wrong
    raise _unreadable(offset)


def _stored(offset: Mapping[str, Any], snapshot: SnapshotState) -> StoredState:
    last_commit = offset.get(_LAST_COMMIT)
    position = LogPosition(_whole(offset[_COMMIT_LSN]), _whole(offset[_MESSAGES]))
    return StoredState(position, snapshot, last_commit and _whole(last_commit))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _unreadable(offset: Mapping[str, Any]) -> ConnectError:
    return ConnectError(
        f"The stored offset {dict(offset)} is none of this connector: it needs {_COMMIT_LSN} with {_MESSAGES},"
        f" both whole numbers, or Debezium's {_DEBEZIUM_COMMIT[0]}. Correct it with PATCH"
        " /connectors/NAME/offsets, or delete it to begin with a new snapshot."
    )


def lsn_text(lsn: int) -> str:
    """An LSN as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: str) -> int:
    """An LSN of PostgreSQL's text."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)
