"""Tables of other libraries: records that come as pandas, Polars or dicts, and records shown as text or JSON.

Neither pandas nor Polars is imported before a caller hands in, or asks for, one of its tables.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import orjson
import pyarrow as pa

from tidelog.log.base.errors import InvalidConfigError, InvalidRecordError, MissingPackageError
from tidelog.log.delta import schema

# How keys and values may be shown: as they are stored, as UTF-8, or as what their JSON says.
FORMS: Final = ("bytes", "text", "json")


# --- in ----------------------------------------------------------------------------------------------------


def as_table(given: Any, topic: str) -> pa.Table:
    """Return records as an Arrow table: Arrow's own tables, a pandas or Polars DataFrame, or a sequence of dicts.

    A dict's missing fields are null. In dicts a value that is a dict or a list is written as JSON, and headers may be
    a dict. Raises `InvalidRecordError` for anything else.
    """
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    try:
        if _is_of(given, "pandas", "DataFrame"):
            return _from_pandas(given)
        if _is_of(given, "polars", "DataFrame"):
            return given.to_arrow()
        if isinstance(given, Sequence) and all(isinstance(row, Mapping) for row in given):
            return _from_dicts(given)
    except (pa.ArrowException, TypeError, ValueError) as e:
        raise InvalidRecordError(f"These records for topic '{topic}' can't be taken as a table: {e}") from e
    hint = " Call collect() first." if _is_of(given, "polars", "LazyFrame") else ""
    raise InvalidRecordError(
        "append takes a pyarrow Table or RecordBatch, a pandas or Polars DataFrame, or a list of dicts, not "
        f"{type(given).__name__}.{hint}"
    )


def _is_of(given: Any, library: str, name: str) -> bool:
    """Whether it is an object of a library's class; a library that is not imported has none."""
    module = sys.modules.get(library)
    return module is not None and isinstance(given, getattr(module, name))


def _from_pandas(frame: Any) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if "partition" in table.schema.names and pa.types.is_floating(table.schema.field("partition").type):
        at = table.schema.get_field_index("partition")  # pandas makes floats of integers with gaps
        table = table.set_column(at, "partition", table.column("partition").cast(pa.int32()))
    return table


def _from_dicts(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["value"]
    columns = {name: [row.get(name) for row in rows] for name in names}
    types: dict[str, pa.DataType] = {"key": pa.binary(), "value": pa.binary(), "headers": schema.HEADERS}
    for name in {"key", "value"} & set(names):
        columns[name] = [_as_bytes(one) for one in columns[name]]
    if "headers" in columns:
        columns["headers"] = [_as_headers(one) for one in columns["headers"]]
    return pa.table({name: pa.array(column, types.get(name)) for name, column in columns.items()})


def _as_bytes(given: Any) -> Any:
    if isinstance(given, str):
        return given.encode()
    return orjson.dumps(given) if isinstance(given, dict | list) else given


def _as_headers(given: Any) -> Any:
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else given or ()
    found = [one if isinstance(one, Mapping) else {"key": one[0], "value": _as_bytes(one[1])} for one in pairs]
    return found or None


# --- out ---------------------------------------------------------------------------------------------------


def check_forms(**forms: str) -> None:
    """Refuse what is none of FORMS, with `InvalidConfigError`."""
    for name, form in forms.items():
        if form not in FORMS:
            raise InvalidConfigError(f"Invalid value {form!r} for {name}: give one of {', '.join(FORMS)}.")


def shown(table: pa.Table, key_as: str, value_as: str) -> pa.Table:
    """Return records with keys and values as text, or as the structs and lists that Arrow makes of their JSON.

    Raises `InvalidRecordError` naming the first record that is none, or for JSON of which Arrow makes no column.
    """
    for name, form in (("key", key_as), ("value", value_as)):
        if form == "bytes":
            continue
        try:
            column = pa.array(objects(table, name)) if form == "json" else _as_text(table, name)
        except pa.ArrowException as e:
            raise InvalidRecordError(
                f"The records' {name}s are JSON of different kinds, of which Arrow makes no column: {e}. Read them by"
                f" to_pandas, or with {name}_as='text'."
            ) from e
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _as_text(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        _refuse_first(table, name, bytes.decode, "no text in UTF-8", "bytes")
        raise


def objects(table: pa.Table, name: str) -> list[Any]:
    """Return what the JSON of each record's key or value says, None for null. Raises `InvalidRecordError`."""
    column = table.column(name).to_pylist()
    try:
        return [None if one is None else orjson.loads(one) for one in column]
    except orjson.JSONDecodeError:
        _refuse_first(table, name, orjson.loads, "no JSON", "text")
        raise


def _refuse_first(table: pa.Table, name: str, read: Any, what: str, instead: str) -> None:
    """Raise for the first record that can't be read."""
    for row, value in enumerate(table.column(name).to_pylist()):
        try:
            if value is not None:
                read(value)
        except ValueError as e:
            topic, partition, offset = (table.column(c)[row].as_py() for c in ("topic", "partition", "offset"))
            raise InvalidRecordError(
                f"The {name} of the record at offset {offset} of topic '{topic}', partition {partition}, is {what}:"
                f" {e}. Read it with {name}_as='{instead}'."
            ) from e


def as_pandas(table: pa.Table, key_as: str, value_as: str) -> Any:
    """Return records as a pandas DataFrame; what JSON says is held as Python's objects."""
    _library("pandas")
    told = {name: objects(table, name) for name, form in (("key", key_as), ("value", value_as)) if form == "json"}
    text = shown(table, *("bytes" if form == "json" else form for form in (key_as, value_as)))
    frame = text.to_pandas()
    for name, column in told.items():
        frame[name] = column
        frame[name] = frame[name].astype(object)
    return frame


def as_polars(table: pa.Table) -> Any:
    """Return a table as a Polars DataFrame."""
    return _library("polars").from_arrow(table)


def as_duckdb(table: pa.Table, connection: Any) -> Any:
    """Return a table as a DuckDB relation."""
    return (connection or _library("duckdb")).from_arrow(table)


def delta_table(uri: str, version: int, options: Mapping[str, str] | None) -> Any:
    """Return a table at a version as deltalake opens it."""
    return _library("deltalake").DeltaTable(uri, version=version, storage_options=dict(options or {}) or None)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as e:
        raise MissingPackageError(
            f"This needs {name}, which tidelog does not bring. Install it: pip install {name}"
        ) from e
