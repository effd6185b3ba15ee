"""Delta's log actions as values, and a log entry as bytes.

An entry is one JSON object a line (Delta protocol, "Actions"). tidelog's own entries end with a `commitInfo`
that carries the request's id and the number of actions before it; without that line an entry is torn.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from tidelog.log.base.errors import CorruptLogError, TornEntryError

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
    """A segment leaves the table; its file is deleted later.

    `vector`: JSON of the deletion vector with which another engine put the file into the table, None for none.
    """

    path: str
    partition: int
    base_offset: int
    size: int
    deletion_ms: int
    data_change: bool
    vector: str | None = None


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
    """Delta's protocol versions and table features; None where there is no such list, which an empty one is not."""

    reader: int
    writer: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


Action = Add | Remove | Txn | Metadata | Protocol


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The last line of an entry.

    `durable` says that the entry's segments, and those of every entry before it, survive a power loss.
    `request_id` is None for an entry that tidelog did not write. `rows`: those that the entry's appended files hold, in
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
class Touched:
    """What an entry that tidelog did not write changed, and an entry of tidelog's must take back.

    `by`: the operation and the engine, as they call themselves. `files`: those that it added or removed, as what takes
    them out of the table. `txns`: application ids. `metadata`, `protocol`: whether it set them.
    """

    by: str
    files: tuple[Remove, ...]
    txns: tuple[str, ...]
    metadata: bool
    protocol: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One Delta commit: the actions in their order, and its origin.

    An entry that tidelog did not write has no actions that count; `touched` says what it changed for other engines,
    None when that is nothing.
    """

    version: int
    actions: tuple[Action, ...]
    info: CommitInfo
    touched: Touched | None = None


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
    body: dict[str, Any] = {
        "path": r.path,
        "deletionTimestamp": r.deletion_ms,
        "dataChange": r.data_change,
        "extendedFileMetadata": True,
        "partitionValues": partition_values(r.partition, r.base_offset),
        "size": r.size,
    }
    if r.vector is not None:
        body["deletionVector"] = orjson.Fragment(r.vector)
    return {"remove": body}


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
    features = {"readerFeatures": p.reader_features, "writerFeatures": p.writer_features}
    named = {name: names for name, names in features.items() if names is not None}
    return {"protocol": {"minReaderVersion": p.reader, "minWriterVersion": p.writer, **named}}


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
    vector = body.get("deletionVector")
    return Remove(
        body["path"],
        partition_value(values.get("partition")),
        partition_value(values.get("base_offset")),
        body.get("size") or 0,
        body.get("deletionTimestamp") or 0,
        body.get("dataChange", True),
        None if vector is None else orjson.dumps(vector, option=orjson.OPT_SORT_KEYS).decode(),
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
    features = (body.get(name) for name in ("readerFeatures", "writerFeatures"))
    return Protocol(
        _int(body["minReaderVersion"]),
        _int(body["minWriterVersion"]),
        *(None if names is None else tuple(sorted(names)) for names in features),
    )


_FROM_JSON: dict[str, Callable[[Mapping[str, Any]], Action]] = {
    "add": parse_add,
    "remove": _parse_remove,
    "txn": _parse_txn,
    "metaData": parse_metadata,
    "protocol": parse_protocol,
}


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
    lines, info, own = entry_lines(version, data, where)
    number = 0
    try:
        if not own:
            return Entry(version, (), CommitInfo(0, str(info.get("operation") or "")), _touched(lines, info))
        actions = []
        for number, kind, body in lines:  # noqa: B007 - the error below names the line
            actions.append(_FROM_JSON[kind](body))
        number = len(lines) + 1
        return Entry(version, tuple(actions), _parse_info(info))
    except (KeyError, ValueError, TypeError, AttributeError) as e:
        raise _broken(version, where, number, e) from e


class EntryLines(NamedTuple):
    """An entry's actions, (line, kind, body as JSON has it) each; the body of its `commitInfo`; whether it is ours."""

    actions: list[tuple[int, str, Any]]
    info: Mapping[str, Any]
    own: bool


def entry_lines(version: int, data: bytes, where: str) -> EntryLines:
    """Read an entry's lines. Raises as `decode_entry`, but doesn't look into the bodies of actions."""
    lines = data.splitlines()
    actions: list[tuple[int, str, Any]] = []
    info: Any = None
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            ((kind, body),) = orjson.loads(line).items()
            if kind == "commitInfo":
                info = body
            else:
                actions.append((number, kind, body))
        own = {} if info is None else info.get("tidelog") or {}
        is_own = own.get("request") is not None
    except orjson.JSONDecodeError as e:
        raise _torn(version, where, f"line {number} is not whole ({e})") from e
    except (ValueError, TypeError, AttributeError) as e:
        raise _broken(version, where, number, e) from e
    if info is None and _are_ours(lines, actions):
        raise _torn(version, where, "it has no commitInfo")
    if is_own and own.get("actions") != len(lines) - 1:
        raise _torn(version, where, f"it has {len(lines) - 1} actions of {own.get('actions')}")
    unknown = next((kind for _, kind, _ in actions if kind not in _FROM_JSON), None) if is_own else None
    if unknown is not None:
        raise CorruptLogError(f"Log entry {where} holds an action '{unknown}' that is not known.", version=version)
    return EntryLines(actions, info or {}, is_own)


def _are_ours(lines: Sequence[bytes], actions: Sequence[tuple[int, str, Any]]) -> bool:
    """Whether the lines are byte for byte what tidelog writes, so that they may be what is left of an entry of its."""
    try:
        written = [_FROM_JSON[kind](body) for _, kind, body in actions]
        return [orjson.dumps(_TO_JSON[type(a)](a)) for a in written] == list(lines)
    except (KeyError, ValueError, TypeError, AttributeError):
        return False


# --- entries that tidelog did not write --------------------------------------------------------------------


def _touched(lines: Iterable[tuple[int, str, Any]], info: Mapping[str, Any]) -> Touched | None:
    """What such an entry changed. What can't be read in it, other engines can't read either."""
    bodies = [(kind, body) for _, kind, body in lines if isinstance(body, dict)]
    files = [_leaving(body) for kind, body in bodies if kind in ("add", "remove") and isinstance(body.get("path"), str)]
    txns = dict.fromkeys(str(body["appId"]) for kind, body in bodies if kind == "txn" and "appId" in body)
    kinds = {kind for kind, _ in bodies}
    if not (files or txns or kinds & {"metaData", "protocol"}):
        return None
    by = f"{info.get('operation') or 'no operation'} by {info.get('engineInfo') or 'an engine without a name'}"
    return Touched(by, tuple(files), tuple(txns), "metaData" in kinds, "protocol" in kinds)


def _leaving(body: Mapping[str, Any]) -> Remove:
    """What takes a file that another engine added or removed out of the table."""
    given = body.get("partitionValues")
    values = {k: v for k, v in given.items() if isinstance(v, str)} if isinstance(given, dict) else {}
    size = body.get("size")
    kept = {"path": body["path"], "partitionValues": values, "deletionVector": body.get("deletionVector")}
    return _parse_remove({**kept, "size": size if isinstance(size, int) else 0, "dataChange": False})


def _broken(version: int, where: str, line: int, why: Exception) -> CorruptLogError:
    return CorruptLogError(f"Log entry {where} breaks the format: {why!r} in line {line}.", version=version)


def _torn(version: int, where: str, why: str) -> TornEntryError:
    return TornEntryError(
        f"Log entry {where} is torn: {why}. An entry is complete or absent, so its end was lost after it was"
        " written. Nothing goes on from here; run 'tidelog check --repair' to see what it holds and mend it.",
        version=version,
    )
