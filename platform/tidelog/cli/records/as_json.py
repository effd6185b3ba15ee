"""Records as JSON, one object a line, in the shape of `kcat -J`; what `consume` writes, `produce --json` reads.

    {"topic":"orders","partition":0,"offset":7,"tstype":"create","ts":1700000000000,
     "headers":["source","web"],"key":"ann","payload":"{\"sum\":3}"}

`key`, `payload` and header values are strings, null, or {"base64":"/w=="} where the bytes are not UTF-8. `ts` is in
ms since the epoch; "us" (1 to 999) is there as well when a record's timestamp is finer. `headers` is left out where
a record has none. `tstype` is "create" or "logappend". kcat's "broker" is left out: there is none.
"""

from base64 import b64decode, b64encode
from typing import Any

import orjson
import pyarrow as pa

from tidelog.cli.records.from_input import Headers, Record

_TIMESTAMP_TYPES = {0: "create", 1: "logappend"}
_KNOWN = frozenset(
    {"topic", "partition", "offset", "tstype", "ts", "timestamp", "us", "broker", "headers", "key", "payload", "value"}
)
_MAX_MS = (1 << 63) // 1000 - 1


def to_json_lines(batch: pa.RecordBatch) -> bytes:
    """The batch's records (columns `tidelog.log.delta.schema.RECORDS_WITH_HEADERS`) as lines of JSON."""
    columns = (
        batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "timestampType", "key", "value")
    )
    stamps = batch.column("timestamp").cast(pa.int64()).to_pylist()
    headers = batch.column("headers").to_pylist()
    lines = []
    for topic, partition, offset, kind, key, value, us, pairs in zip(*columns, stamps, headers, strict=True):
        body: dict[str, Any] = {"topic": topic, "partition": partition, "offset": offset}
        body["tstype"] = _TIMESTAMP_TYPES.get(kind, "unknown")
        body["ts"], fine = divmod(us, 1000)
        if fine:
            body["us"] = fine
        if pairs is not None:
            body["headers"] = [part for pair in pairs for part in (pair["key"], _to_text(pair["value"]))]
        body["key"], body["payload"] = _to_text(key), _to_text(value)
        lines.append(orjson.dumps(body))
    lines.append(b"")
    return b"\n".join(lines)


def from_json(line: bytes) -> Record:
    """The record that a line of JSON stands for. Raises ValueError saying what is wrong with it."""
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError as e:
        raise ValueError(f"not JSON ({e})") from None
    if not isinstance(body, dict):
        raise ValueError("a record is a JSON object")
    unknown = sorted(body.keys() - _KNOWN)
    if unknown:
        raise ValueError(f"a record has no field {unknown[0]!r}, so it would be lost; put it into the payload")
    for name, other in (("payload", "value"), ("ts", "timestamp")):
        if name in body and other in body:
            raise ValueError(f"{name!r} and {other!r} are two names of one field; give one of them")
    if "payload" not in body and "value" not in body:
        raise ValueError("there is no field 'payload' (null for a tombstone)")
    return Record(
        _to_bytes(body, "key"),
        _to_bytes(body, "payload" if "payload" in body else "value"),
        _to_headers(body.get("headers")),
        _to_timestamp(body),
        _integer(body, "partition", 0, (1 << 31) - 1),
    )


def _to_text(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def _to_bytes(body: dict[str, Any], name: str) -> bytes | None:
    return _bytes_of(body.get(name), f"field {name!r}")


def _bytes_of(value: Any, what: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return b64decode(value["base64"], validate=True)
        except ValueError as e:
            raise ValueError(f'{what} holds {{"base64": …}} that is no base64 ({e})') from None
    raise ValueError(f'{what} is a string, null, or {{"base64": "…"}}; write JSON inside a record as a string')


def _to_headers(flat: Any) -> Headers | None:
    if flat is None:
        return None
    if not isinstance(flat, list) or len(flat) % 2 or not all(isinstance(name, str) for name in flat[::2]):
        raise ValueError("field 'headers' is a flat list: name, value, name, value …, the names strings")
    return [(name, _bytes_of(value, f"header {name!r}")) for name, value in zip(flat[::2], flat[1::2], strict=True)]


def _to_timestamp(body: dict[str, Any]) -> int | None:
    ms = _integer(body, "ts" if "ts" in body else "timestamp", 0, _MAX_MS)
    fine = _integer(body, "us", 0, 999)
    if ms is None and fine is not None:
        raise ValueError("field 'us' is the rest of 'ts', which is missing")
    return None if ms is None else ms * 1000 + (fine or 0)


def _integer(body: dict[str, Any], name: str, low: int, high: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"field {name!r} is a whole number from {low} to {high}")
    return value
