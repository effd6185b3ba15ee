"""Writing a checkpoint: the checkpoint before it and the entries since, through the storage port.

Nothing is listed on the way while `_last_checkpoint` names a checkpoint that is there, entries are read by their
names, and rows pass through by batches: time goes with the table's files, memory does not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.errors import CorruptLogError, LogTrimmedError, ObjectNotFoundError
from tidelog.log.checkpoints.reading import Checkpoint, checkpoints_from, is_foreign, newest_floor
from tidelog.log.checkpoints.rows import RowWriter, read_rows, rows_of, since, without
from tidelog.log.delta import layout
from tidelog.log.delta.actions import decode_entry, entry_lines
from tidelog.log.state.txn_expiry import interval_ms, txn_expiry
from tidelog.log.storage.port import Storage

# Writes the checkpoint of a version of the log in a folder. The third is the wall clock, ms since the epoch.
Checkpointer = Callable[[str, int, int], None]

_GROUP_ROWS = 32_768
# What a base that is gone, torn or another engine's makes its reading raise.
_UNREADABLE = (ObjectNotFoundError, pa.ArrowException, OSError, KeyError, ValueError, TypeError)
# The key of each kind of row.
_KEYS = {"add": "path", "remove": "path", "txn": "appId"}
_DEFAULT_TOMBSTONES = "interval 1 week"


@dataclass(slots=True)
class _Tail:
    """What entries after a checkpoint leave behind, each action as JSON has it (Delta's "Action Reconciliation").

    `version`: the newest of them that may be a checkpoint's.
    """

    version: int
    files: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    txns: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    single: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def take(self, kind: str, body: Mapping[str, Any]) -> None:
        """Go on by one action."""
        if kind in ("add", "remove"):
            self.files[body["path"]] = (kind, body)
        elif kind == "txn":
            self.txns[body["appId"]] = body
        else:
            self.single[kind] = body

    def bodies(self, kind: str) -> list[Mapping[str, Any]]:
        """The actions of a kind."""
        if kind == "txn":
            return list(self.txns.values())
        if kind in self.single:
            return [self.single[kind]]
        return [body for found, body in self.files.values() if found == kind]


def write_checkpoint(storage: Storage, folder: str, version: int, now_ms: int) -> None:
    """Write the checkpoint of `version` of the log in `folder`, and name it in `_last_checkpoint`.

    Where tidelog did not write that entry, it is the version before: no checkpoint holds what is to be taken back.
    It survives a power loss before it is named. `now_ms`, the wall clock, tells which removed files are so old that
    they are forgotten (`delta.deletedFileRetentionDuration`). Transaction ids go by the newest time that one has.
    Raises `LogTrimmedError` when the log was trimmed past where it began, `CorruptLogError`, `StorageError`.
    """
    for base in _bases(storage, folder, version):
        tail = _read_tail(storage, folder, -1 if base is None else base.version, version)
        try:
            hint = _write(storage, folder, tail.version, base, tail, now_ms)
        except _BadBaseError:  # torn by a power loss, or another log's: what is before it serves as well
            continue
        storage.put(f"{folder}/{layout.LAST_CHECKPOINT}", orjson.dumps(hint))
        storage.sync([f"{folder}/{layout.LAST_CHECKPOINT}"])
        return


class _BadBaseError(Exception):
    """A checkpoint that nothing can be built on."""


def _bases(storage: Storage, folder: str, version: int) -> Iterator[Checkpoint | None]:
    """The checkpoints up to `version` to build on, newest first, and at last none: the entries from the first on."""
    for checkpoint in checkpoints_from(storage, folder, newest_floor(storage, folder) + 1):
        if checkpoint.version <= version and not is_foreign(storage, folder, checkpoint.version):
            yield checkpoint
    yield None


def _read_tail(storage: Storage, folder: str, base: int, version: int) -> _Tail:
    tail, foreign = _Tail(base), False
    for v in range(base + 1, version + 1):
        path = f"{folder}/{layout.entry_path(v)}"
        data = storage.get(path)
        lines = entry_lines(v, data, path)
        for _, kind, body in lines.actions if lines.own else ():
            tail.take(kind, body)
        foreign = not lines.own and (foreign or decode_entry(v, data, path).touched is not None)
        if not foreign:
            tail.version = v
    # Read after the entries: entries up to a floor may be of stale writers.
    if newest_floor(storage, folder) > base:
        raise LogTrimmedError(
            f"The log in {folder} was trimmed while its checkpoint {version} was made. Make a later one."
        )
    return tail


def _write(
    storage: Storage, folder: str, version: int, base: Checkpoint | None, tail: _Tail, now_ms: int
) -> dict[str, int]:
    """Write the checkpoint's file and return what `_last_checkpoint` says of it. Raises `_BadBaseError`."""
    singles = _singles(storage, folder, base, tail)
    keep = _expiry(singles["metaData"], now_ms, _newest_txn_ms(storage, folder, base, tail))
    path = f"{folder}/{layout.checkpoint_path(version)}"
    touched = {
        "add": pa.array(tail.files.keys(), pa.string()),
        "remove": pa.array(tail.files.keys(), pa.string()),
        "txn": pa.array(tail.txns.keys(), pa.string()),
    }
    with storage.create(path) as file, RowWriter(file, _GROUP_ROWS) as writer:
        for kind, rows in singles.items():
            writer.write(kind, rows)
        for kind, rows in _base_rows(storage, folder, base, tuple(touched)):
            writer.write(kind, keep(kind, without(rows, _KEYS[kind], touched[kind])))
        for kind in touched:
            writer.write(kind, keep(kind, rows_of(kind, tail.bodies(kind))))
    storage.sync([path])
    return {
        "version": version,
        "size": sum(writer.rows.values()),
        "sizeInBytes": writer.bytes,
        "numOfAddFiles": writer.rows["add"],
    }


def _singles(storage: Storage, folder: str, base: Checkpoint | None, tail: _Tail) -> dict[str, pa.StructArray]:
    """The `protocol` and the `metaData`, one row each."""
    singles = {kind: rows_of(kind, tail.bodies(kind)) for kind in ("protocol", "metaData")}
    missing = tuple(kind for kind, rows in singles.items() if not len(rows))
    if missing:
        singles |= dict(_base_rows(storage, folder, base, missing))
    named = singles["metaData"].field("name").to_pylist()
    if any(len(rows) != 1 for rows in singles.values()) or named != [folder]:
        if base is None:
            raise CorruptLogError(
                f"The log in {folder} has no protocol or metaData of its own. Run 'tidelog check' to see what it holds."
            )
        raise _BadBaseError(base)
    return singles


def _base_rows(
    storage: Storage, folder: str, base: Checkpoint | None, kinds: tuple[str, ...]
) -> Iterator[tuple[str, pa.StructArray]]:
    for name in () if base is None else base.files:
        try:
            with storage.open(f"{folder}/{layout.LOG_FOLDER}/{name}") as source:
                yield from read_rows(source, kinds, _GROUP_ROWS)
        except _UNREADABLE as e:
            raise _BadBaseError(base) from e


def _newest_txn_ms(storage: Storage, folder: str, base: Checkpoint | None, tail: _Tail) -> int:
    """The newest time of a transaction id, which is the time by which they expire; 0 when none has any."""
    times = [int(body["lastUpdated"]) for body in tail.txns.values() if body.get("lastUpdated") is not None]
    for _, rows in _base_rows(storage, folder, base, ("txn",)):
        times.append(pc.max(rows.field("lastUpdated")).as_py() or 0)
    return max(times, default=0)


def _expiry(
    metadata: pa.StructArray, now_ms: int, newest_txn_ms: int
) -> Callable[[str, pa.StructArray], pa.StructArray]:
    """What takes the rows of a kind that are too old out."""
    configuration = dict(metadata.field("configuration").to_pylist()[0] or ())
    tombstones = interval_ms(configuration.get("delta.deletedFileRetentionDuration", _DEFAULT_TOMBSTONES))
    expiry = txn_expiry(configuration)
    producers_ms, others_ms = expiry.producers_since_ms(newest_txn_ms), expiry.others_since_ms(newest_txn_ms)

    def keep(kind: str, rows: pa.StructArray) -> pa.StructArray:
        if kind == "remove" and tombstones is not None:
            return since(rows, "deletionTimestamp", now_ms - tombstones + 1, keep_null=False)
        if kind == "txn":
            of_producers = pc.starts_with(rows.field("appId"), layout.PRODUCER_PREFIX)
            return since(rows, "lastUpdated", pc.if_else(of_producers, producers_ms, others_ms), keep_null=True)
        return rows

    return keep
