"""How rows of any shape become records: rules over names and types, as SQL expressions. Pure.

Types are as Spark's `DataType.simpleString` writes them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.jobs.transfer.options import expression, quoted

# Columns of Spark's Kafka source: rows that have no others, and a value, are records already.
RECORD_COLUMNS = frozenset({"key", "value", "headers", "timestamp", "topic", "partition", "offset", "timestampType"})

_BYTES = ("string", "binary")
_AS_TEXT = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz")
_AS_JSON = ("struct<", "array<", "map<")
_HEADER_MAPS = ("map<string,string>", "map<string,binary>")
_HEADER_LISTS = ("array<struct<key:string,value:string>>", "array<struct<key:string,value:binary>>")

# The type of an expression of an option: `(option, SQL) -> type`; raises `UsageProblemError` for what is none.
TypeOf = Callable[[str, str], str]


@dataclass(frozen=True, kw_only=True)
class RecordExpressions:
    """What the options ask for, each a column's name or an SQL expression; `header` has NAME=SQL for each header."""

    panel: ClassVar[str] = "What a record is: each a column's name or an SQL expression"

    key: Annotated[str | None, typer.Option(metavar="SQL", help="The key; none unless given.")] = None
    value: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="The value; the columns that no other option names, as JSON, unless given. Rows that are records"
            " already (columns value, and key, headers, timestamp …, as Kafka's) stay as they are.",
        ),
    ] = None
    headers: Annotated[
        str | None, typer.Option(metavar="SQL", help="All headers: a map, or an array of structs of key and value.")
    ] = None
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SQL", help="One header, such as \"source='shop'\". Repeatable.")
    ] = None
    timestamp: Annotated[str | None, typer.Option(metavar="SQL", help="The record's time; now unless given.")] = None
    partition: Annotated[
        str | None, typer.Option(metavar="SQL", help="The partition; chosen by the key unless given.")
    ] = None


def record_columns(
    columns: Mapping[str, str], wanted: RecordExpressions, header: Mapping[str, str], type_of: TypeOf
) -> dict[str, str]:
    """{the sink's column: SQL over the rows}. `columns` are the rows' names and types, in order; `header` is by name.

    Rows that are records already keep key, headers and timestamp unless the options say otherwise; of others the
    columns that no option names become the value, as JSON. Raises `UsageProblemError`.
    """
    if wanted.headers is not None and header:
        raise UsageProblemError(
            "--headers and --header both say what the headers are: --headers takes a column that holds them all,"
            " --header makes one. Keep one kind."
        )
    given = _defaults(columns, wanted) if is_record(columns) and wanted.value is None else wanted
    expressions: dict[str, str] = {}
    if given.key is not None:
        expressions["key"] = _to_bytes("--key", expression(given.key, columns), type_of)
    if given.value is not None:
        expressions["value"] = _to_bytes("--value", expression(given.value, columns), type_of)
    else:
        expressions["value"] = _rest_as_json(columns, given, header)
    if given.headers is not None:
        expressions["headers"] = _headers(expression(given.headers, columns), type_of)
    if header:
        expressions["headers"] = _header_list(header, columns, type_of)
    if given.timestamp is not None:
        expressions["timestamp"] = _timestamp(expression(given.timestamp, columns), type_of)
    if given.partition is not None:
        expressions["partition"] = _partition(expression(given.partition, columns), type_of)
    return expressions


def is_record(columns: Mapping[str, str]) -> bool:
    """Whether rows are records already: a value of bytes, and no column that a record has not."""
    return columns.get("value") in _BYTES and columns.keys() <= RECORD_COLUMNS


def _defaults(columns: Mapping[str, str], wanted: RecordExpressions) -> RecordExpressions:
    """What the options ask for, completed by what records have; the partition is chosen again."""
    headers = "headers" if columns.get("headers") in (*_HEADER_MAPS, *_HEADER_LISTS) else None
    return replace(
        wanted,
        key=wanted.key or ("key" if "key" in columns else None),
        value="value",
        headers=wanted.headers or (None if wanted.header else headers),
        timestamp=wanted.timestamp or ("timestamp" if columns.get("timestamp") == "timestamp" else None),
    )


def _to_bytes(option: str, sql: str, type_of: TypeOf) -> str:
    """Bytes and text as they are, numbers and times as text, structures as JSON."""
    kind = type_of(option, sql)
    if kind in _BYTES:
        return sql
    if kind in _AS_TEXT or kind.startswith("decimal("):
        return f"CAST({sql} AS STRING)"
    if kind.startswith(_AS_JSON):
        return _json(sql)
    raise UsageProblemError(
        f"{option} {sql} is of type {kind}, which has no form in bytes of its own. Say which: cast it to string or"
        f" binary, such as {option} 'CAST({sql} AS STRING)'."
    )


def _rest_as_json(columns: Mapping[str, str], wanted: RecordExpressions, header: Mapping[str, str]) -> str:
    """The columns that no option names, as one JSON object; a null stays in it as null."""
    named = {wanted.key, wanted.headers, wanted.timestamp, wanted.partition, *header.values()}
    rest = [name for name in columns if name not in named]
    if not rest:
        raise UsageProblemError(
            "Nothing is left for the value: the other options name every column, and a record's value is the other"
            " columns as JSON. Say with --value what it is; 'to_json(struct(*))' is all columns."
        )
    return _json(f"struct({', '.join(map(quoted, rest))})")


def _json(sql: str) -> str:
    return f"to_json({sql}, map('ignoreNullFields', 'false'))"


def _headers(sql: str, type_of: TypeOf) -> str:
    kind = type_of("--headers", sql)
    pair = "h -> named_struct('key', h.key, 'value', CAST(h.value AS BINARY))"
    if kind in _HEADER_MAPS:
        return f"transform(map_entries({sql}), {pair})"
    if kind in _HEADER_LISTS:
        return f"transform({sql}, {pair})"
    raise UsageProblemError(
        f"--headers {sql} is of type {kind}. Headers are names with values: a map from string to string or binary, or"
        " an array of structs of key and value, such as --headers \"map('source', source)\"; or make them one by one:"
        " --header source=source."
    )


def _header_list(header: Mapping[str, str], columns: Mapping[str, str], type_of: TypeOf) -> str:
    made = []
    for name, text in header.items():
        value = _to_bytes(f"--header {name}", expression(text, columns), type_of)
        made.append(f"named_struct('key', {_literal(name)}, 'value', CAST({value} AS BINARY))")
    return f"array({', '.join(made)})"


def _timestamp(sql: str, type_of: TypeOf) -> str:
    kind = type_of("--timestamp", sql)
    if kind == "timestamp":
        return sql
    if kind in ("date", "timestamp_ntz"):
        return f"CAST({sql} AS TIMESTAMP)"
    raise UsageProblemError(
        f"--timestamp {sql} is of type {kind}, and a record's timestamp is a time. Make it one:"
        f" 'to_timestamp({sql})' for text, 'timestamp_millis({sql})' for milliseconds since the epoch."
    )


def _partition(sql: str, type_of: TypeOf) -> str:
    kind = type_of("--partition", sql)
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f"CAST({sql} AS INT)"
    raise UsageProblemError(
        f"--partition {sql} is of type {kind}, and a partition is a whole number from 0 on. Cast it, or leave"
        " --partition out: then the key chooses."
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
