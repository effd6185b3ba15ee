"""Checkpoints of the in-memory store, where `deltalake` has nothing to open.

The same Parquet columns as Delta's classic checkpoint, written through the storage port. Removed files are left
out: nothing is vacuumed in memory.
"""

from collections.abc import Iterable
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.log import layout
from tidelog.log.actions import Action, Add, Metadata, Protocol, Remove, Txn, decode_entry, partition_values
from tidelog.log.checkpoints import Checkpointer, checkpoints_from, read_checkpoint
from tidelog.log.errors import CorruptLogError, LogTrimmedError, ObjectNotFoundError
from tidelog.log.storage.port import Storage

_TEXTS = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
                "tags": _TEXTS,
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
    }
)


def port_checkpointer(storage: Storage) -> Checkpointer:
    """A checkpointer that works through the storage port alone."""

    def write(table_uri: str, version: int) -> None:
        folder = table_uri.removeprefix(f"{storage.uri}/")
        live = _replay(_actions_up_to(storage, folder, version))
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist([_row(a) for a in live], schema=_SCHEMA), sink)
        storage.put(f"{folder}/{layout.checkpoint_path(version)}", sink.getvalue().to_pybytes())
        body = orjson.dumps({"version": version, "size": len(live)})
        storage.put(f"{folder}/{layout.LAST_CHECKPOINT}", body)

    return write


def _actions_up_to(storage: Storage, folder: str, version: int) -> list[Action]:
    """The actions that make up the table at `version`, in order. Raises `LogTrimmedError`."""
    base, actions = _newest_checkpoint(storage, folder, version)
    for v in range(base + 1, version + 1):
        path = f"{folder}/{layout.entry_path(v)}"
        actions.extend(decode_entry(v, storage.get(path), path).actions)
    # Looked at after the entries: what lies up to a floor may be strays.
    if _newest_floor(storage, folder) > base:
        raise LogTrimmedError(
            f"The log in {folder} was trimmed while its checkpoint {version} was made. Make a later one."
        )
    return actions


def _newest_checkpoint(storage: Storage, folder: str, version: int) -> tuple[int, list[Action]]:
    """The newest checkpoint up to `version` that is past the floor and can be read: its version and actions."""
    for checkpoint in checkpoints_from(storage, folder, _newest_floor(storage, folder) + 1):
        if checkpoint.version <= version:
            try:
                return checkpoint.version, list(read_checkpoint(storage, folder, checkpoint))
            except (ObjectNotFoundError, CorruptLogError):  # a stale `_last_checkpoint`, or torn by a power loss
                continue
    return -1, []


def _newest_floor(storage: Storage, folder: str) -> int:
    floors = (layout.version_of(o.path) for o in storage.list_after(f"{folder}/{layout.FLOOR_FOLDER}"))
    return max((f for f in floors if f is not None), default=-1)


def _replay(actions: Iterable[Action]) -> list[Action]:
    """What is left of actions in order (Delta's "Action Reconciliation")."""
    newest: dict[tuple[str, str], Action] = {}
    for action in actions:
        if isinstance(action, Add):
            newest[("add", action.path)] = action
        elif isinstance(action, Remove):
            newest.pop(("add", action.path), None)
        elif isinstance(action, Txn):
            newest[("txn", action.app_id)] = action
        else:
            newest[(type(action).__name__, "")] = action
    return list(newest.values())


def _row(action: Action) -> dict[str, Any]:
    if isinstance(action, Txn):
        return {"txn": {"appId": action.app_id, "version": action.version, "lastUpdated": action.last_updated_ms}}
    if isinstance(action, Add):
        values = partition_values(action.partition, action.base_offset)
        return {
            "add": {
                "path": action.path,
                "partitionValues": list(values.items()),
                "size": action.size,
                "modificationTime": action.modification_ms,
                "dataChange": action.data_change,
                "stats": action.stats,
                "tags": None if action.end is None else [(layout.END_TAG, str(action.end))],
            }
        }
    if isinstance(action, Metadata):
        return {
            "metaData": {
                "id": action.table_id,
                "name": action.name,
                "schemaString": action.schema,
                "partitionColumns": list(action.partition_columns),
                "configuration": list(action.configuration.items()),
                "createdTime": action.created_ms,
            }
        }
    if isinstance(action, Protocol):
        return {"protocol": {"minReaderVersion": action.reader, "minWriterVersion": action.writer}}
    raise TypeError(f"{type(action).__name__} has no place in a checkpoint")
