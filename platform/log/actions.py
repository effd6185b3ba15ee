"""Delta's log actions as values, and a log entry as bytes.

An entry is one JSON object a line (Delta protocol, "Actions"). tidelog's own entries end with a `commitInfo`
that carries the request's id and the number of actions before it; without that line an entry is torn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tidelog.log.errors import CorruptLogError, TornEntryError

ENGINE = "tidelog"
# The partition of a file whose partition values name none: every file of a table of rows, and what no topic has.
NO_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Add:
    """A segment enters the table; `partition` is `NO_PARTITION` in a table of rows.

    `path` is URL-encoded as the log has it, `stats` Delta's JSON text, `end` the end of the offsets it covers.
    """

    path: str
    partition: int
    base_offset: int
    size: int
    modification_ms: int
    data_change: bool
    stats: str | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """A segment leaves the table; its file is deleted later."""

    path: str
    partition: int
    base_offset: int
    size: int
    deletion_ms: int
    data_change: bool


@dataclass(frozen=True, slots=True)
class Txn:
    """The newest `version` of an application id. Without `last_updated_ms` it never expires."""

    app_id: str
    version: int
    last_updated_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """Delta's metaData: the table's id, name, schema and configuration."""

    table_id: str
    name: str
    schema: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    created_ms: int


@dataclass(frozen=True, slots=True)
class Protocol:
    """Delta's protocol versions and table features."""

    reader: int
    writer: int
    features: tuple[str, ...] = ()


Action = Add | Remove | Txn | Metadata | Protocol


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The last line of an entry.

    `durable` says that the entry's segments, and those of every entry before it, survive a power loss.
    `request_id` is None for an entry of another engine. `rows`: those that the entry's appended files hold, in
    their order, as JSON has them; a topic's entries have none.
    """

    timestamp_ms: int
    operation: str
    request_id: str | None = None
    durable: bool = False
    blind_append: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One Delta commit: the actions in their order, and who made it."""

    version: int
    actions: tuple[Action, ...]
    info: CommitInfo


# --- to bytes ----------------------------------------------------------------------------------------------


def partition_values(partition: int, base_offset: int) -> dict[str, str]:
    """Delta's partition values of a segment."""
    base = {"base_offset": str(base_offset)}
    return base if partition == NO_PARTITION else {"partition": str(partition), **base}


def _add_json(a: Add) -> dict[str, Any]:
    body: dict[str, Any] = {
        "path": a.path,
        "partitionValues": partition_values(a.partition, a.base_offset),
        "size": a.size,
        "modificationTime": a.modification_ms,
        "dataChange": a.data_change,
    }
    if a.stats is not None:
        body["stats"] = a.stats
    if a.end is not None:
        body["tags"] = {"tidelog.end": str(a.end)}
    return {"add": body}


def _remove_json(r: Remove) -> dict[str, Any]:
    return {
        "remove": {
            "path": r.path,
            "deletionTimestamp": r.deletion_ms,
            "dataChange": r.data_change,
            "extendedFileMetadata": True,
            "partitionValues": partition_values(r.partition, r.base_offset),
            "size": r.size,
        }
    }


def _txn_json(t: Txn) -> dict[str, Any]:
    # What no reader takes back must not be written: the topic would be stuck behind it.
    body: dict[str, Any] = {"appId": t.app_id, "version": _int(t.version)}
    if t.last_updated_ms is not None:
        body["lastUpdated"] = t.last_updated_ms
    return {"txn": body}


def _metadata_json(m: Metadata) -> dict[str, Any]:
    return {
        "metaData": {
            "id": m.table_id,
            "name": m.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": m.schema,
            "partitionColumns": list(m.partition_columns),
            "configuration": dict(m.configuration),
            "createdTime": m.created_ms,
        }
    }


def _protocol_json(p: Protocol) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": p.reader, "minWriterVersion": p.writer}}


_TO_JSON: dict[type, Any] = {
    Add: _add_json,
    Remove: _remove_json,
    Txn: _txn_json,
    Metadata: _metadata_json,
    Protocol: _protocol_json,
}


def encode_entry(actions: Sequence[Action], info: CommitInfo) -> bytes:
    """The bytes of a log entry: one line an action, `commitInfo` last."""
    own: dict[str, Any] = {"request": info.request_id, "actions": len(actions), "durable": info.durable}
    if info.rows:
        own["rows"] = info.rows
    last = {
        "commitInfo": {
            "timestamp": info.timestamp_ms,
            "operation": info.operation,
            "operationParameters": dict(info.parameters),
            "isBlindAppend": info.blind_append,
            "engineInfo": ENGINE,
            "tidelog": own,
        }
    }
    lines = [orjson.dumps(_TO_JSON[type(a)](a)) for a in actions]
    lines.append(orjson.dumps(last))
    return b"\n".join(lines) + b"\n"


# --- from bytes --------------------------------------------------------------------------------------------


def _int(value: object) -> int:
    """A LONG of Delta's."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is no LONG")
    return value


def partition_value(text: str | None) -> int:
    """A partition value; `NO_PARTITION` where it is missing or no number."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else NO_PARTITION


def parse_add(body: Mapping[str, Any]) -> Add:
    """An `add` of an entry."""
    values = body.get("partitionValues") or {}
    end = (body.get("tags") or {}).get("tidelog.end")
    return Add(
        body["path"],
        partition_value(values.get("partition")),
        partition_value(values.get("base_offset")),
        _int(body["size"]),
        _int(body["modificationTime"]),
        body["dataChange"],
        body.get("stats"),
        None if end is None else _int(int(end)),
    )


def _parse_remove(body: Mapping[str, Any]) -> Remove:
    values = body.get("partitionValues") or {}
    return Remove(
        body["path"],
        partition_value(values.get("partition")),
        partition_value(values.get("base_offset")),
        body.get("size") or 0,
        body.get("deletionTimestamp") or 0,
        body.get("dataChange", True),
    )


def _parse_txn(body: Mapping[str, Any]) -> Txn:
    return Txn(body["appId"], _int(body["version"]), body.get("lastUpdated"))


def parse_metadata(body: Mapping[str, Any]) -> Metadata:
    """A `metaData` of an entry or of a checkpoint's row."""
    return Metadata(
        body["id"],
        body.get("name") or "",
        body["schemaString"],
        tuple(body.get("partitionColumns") or ()),
        dict(body.get("configuration") or {}),
        body.get("createdTime") or 0,
    )


def parse_protocol(body: Mapping[str, Any]) -> Protocol:
    """A `protocol` of an entry or of a checkpoint's row."""
    features = [*(body.get("readerFeatures") or ()), *(body.get("writerFeatures") or ())]
    return Protocol(_int(body["minReaderVersion"]), _int(body["minWriterVersion"]), tuple(sorted(set(features))))


_FROM_JSON: dict[str, Callable[[Mapping[str, Any]], Action]] = {
    "add": parse_add,
    "remove": _parse_remove,
    "txn": _parse_txn,
    "metaData": parse_metadata,
    "protocol": parse_protocol,
}
# Actions of other engines that change no state of a topic.
_IGNORED = frozenset({"cdc", "domainMetadata"})


def _parse_info(body: Mapping[str, Any]) -> CommitInfo:
    own = body.get("tidelog") or {}
    return CommitInfo(
        body.get("timestamp") or 0,
        body.get("operation") or "",
        own.get("request"),
        bool(own.get("durable")),
        bool(body.get("isBlindAppend")),
        body.get("operationParameters") or {},
        tuple(own.get("rows") or ()),
    )


def decode_entry(version: int, data: bytes, where: str) -> Entry:
    """Read an entry's bytes. `where` is its path, for messages.

    Raises `TornEntryError` when its end is missing, `CorruptLogError` when it is not an entry at all.
    """
    lines, info = entry_lines(version, data, where)
    number = 0
    try:
        actions = []
        for number, kind, body in lines:  # noqa: B007 - the error below names the line
            actions.append(_FROM_JSON[kind](body))
        number = len(lines) + 1
        return Entry(version, tuple(actions), _parse_info(info))
    except (KeyError, ValueError, TypeError, AttributeError) as e:
        raise _broken(version, where, number, e) from e


def entry_lines(version: int, data: bytes, where: str) -> tuple[list[tuple[int, str, Any]], Any]:
    """An entry's actions, (line, kind, body as JSON has it) each, and the body of its `commitInfo`.

    Actions that change no state of a topic are left out. Raises as `decode_entry`, but doesn't look into bodies.
    """
    lines = data.splitlines()
    actions: list[tuple[int, str, Any]] = []
    info: Any = None
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            ((kind, body),) = orjson.loads(line).items()
            if kind in _FROM_JSON:
                actions.append((number, kind, body))
            elif kind == "commitInfo":
                info = body
            elif kind not in _IGNORED:
                raise CorruptLogError(f"Log entry {where} holds an action '{kind}' that is not known.", version=version)
        own_count = None if info is None else (info.get("tidelog") or {}).get("actions")
    except orjson.JSONDecodeError as e:
        raise _torn(version, where, f"line {number} is not whole ({e})") from e
    except (ValueError, TypeError, AttributeError) as e:
        raise _broken(version, where, number, e) from e
    if info is None:
        raise _torn(version, where, "it has no commitInfo")
    if own_count is not None and own_count != len(lines) - 1:
        raise _torn(version, where, f"it has {len(lines) - 1} actions of {own_count}")
    return actions, info


def _broken(version: int, where: str, line: int, why: Exception) -> CorruptLogError:
    return CorruptLogError(f"Log entry {where} breaks the format: {why!r} in line {line}.", version=version)


def _torn(version: int, where: str, why: str) -> TornEntryError:
    return TornEntryError(
        f"Log entry {where} is torn: {why}. An entry is complete or absent, so its end was lost after it was"
        " written. Nothing goes on from here; run 'tidelog check --repair' to see what it holds and mend it.",
        version=version,
    )
