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
from tidelog.log.actions import Action, Add, Metadata, Protocol, Remove, Txn, decode_entry
from tidelog.log.checkpoints import Checkpointer, checkpoints_from, read_checkpoint
from tidelog.log.errors import CorruptLogError, ObjectNotFoundError
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


def _actions_up_to(storage: Storage, folder: str, version: int) -> Iterable[Action]:
    first = 0
    for base in checkpoints_from(storage, folder, 0):
        if base.version > version:
            continue
        try:
            actions = read_checkpoint(storage, folder, base)
        except (ObjectNotFoundError, CorruptLogError):  # a stale `_last_checkpoint`, or torn by a power loss
            continue
        yield from actions
        first = base.version + 1
        break
    for v in range(first, version + 1):
        path = f"{folder}/{layout.entry_path(v)}"
        yield from decode_entry(v, storage.get(path), path).actions


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
        values = {"partition": str(action.partition), "base_offset": str(action.base_offset)}
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
