"""The process of one query: `python -I -m tidelog.console.sql.child`. It asks the console for all that it reads.

It gets the query on its standard input, and gives up the right to open anything before it looks at it: even where
DuckDB let a query out, there would be nothing to reach. It ends with its standard input.
"""

import os
import queue
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import duckdb
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from tidelog.console.sql.confinement import confine
from tidelog.console.sql.pipe import receive, send
from tidelog.console.sql.segment_files import SegmentFiles
from tidelog.log.base.parquet_checksums import parquet_dataset

# Bytes of the rows of a message, as JSON; characters of a value, and of a column's type.
_MESSAGE: Final = 1 << 20
_CHARACTERS: Final = 4_096
# Values that are taken from DuckDB at a time.
_FETCHED: Final = 100_000
# Address space that threads, buffers and the allocator take besides what DuckDB counts.
_BESIDES_BYTES: Final = 1 << 30
_MISSING: Final = re.compile(r"Catalog Error: Table with name (.*?) does not exist")
_EXPLAIN: Final = re.compile(r"\s*EXPLAIN\s+(?:ANALYZE\s+)?(.*)", re.IGNORECASE | re.DOTALL)
_SHOW_TABLES: Final = re.compile(r"\s*SHOW\s+(?:ALL\s+)?TABLES\s*;?\s*", re.IGNORECASE)


class RefusedQueryError(Exception):
    """A statement that is none of those that only read."""


class ParentConsole:
    """The other side. A thread reads what it says, and ends the process when it says no more."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(source,), daemon=True).start()

    def _listen(self, source: BinaryIO) -> None:
        try:
            while True:
                self._said.put(receive(source))
        except EOFError:
            os._exit(0)

    def heard(self) -> Any:
        """What it says next."""
        return orjson.loads(self._said.get())

    def say(self, message: Any) -> None:
        """Tell it something that has no answer."""
        with self._lock:
            send(self._sink, message)

    def ask(self, message: Any) -> bytes:
        """Ask it for something. Raises OSError with its reason where it has none."""
        with self._lock:
            send(self._sink, message)
            answer = self._said.get()
        if answer[:1] != b"+":
            raise OSError(answer[1:].decode())
        return answer[1:]

    def read(self, number: int, start: int, size: int) -> bytes:
        """Bytes of a segment."""
        return self.ask({"read": (number, start, size)})


def main(limits: str) -> None:
    """Run the one query. All that it loads is loaded, and all is given up, before it is heard."""
    console, most = _console(), orjson.loads(limits)
    pa.set_cpu_count(most["threads"])
    pa.set_io_thread_count(most["threads"])
    connection = connected(most["memory"], most["threads"])
    _warm(connection)
    confine(most["memory"] * 2 + _BESIDES_BYTES, most["seconds"], most["threads"])
    query = console.heard()
    console.say({"begun": True})
    try:
        run_query(console, connection, query["query"], query["rows"], most["result"])
    except (MemoryError, duckdb.OutOfMemoryException):
        console.say({"failed": "The query needs more memory than a query may take. Select less."})
    except (duckdb.Error, RefusedQueryError, pa.ArrowException, OSError, RuntimeError, ValueError) as e:
        console.say({"failed": str(e) or type(e).__name__})


def _console() -> ParentConsole:
    """The console on the standard streams; what else would be printed there goes nowhere."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    return ParentConsole(source, sink)


def connected(memory: int, threads: int) -> duckdb.DuckDBPyConnection:
    """DuckDB, in memory, without a way out. `memory`: bytes that it may take."""
    connection = duckdb.connect(":memory:")
    for name, value in {
        "memory_limit": f"'{memory}B'",
        "threads": threads,
        "temp_directory": "''",
        "TimeZone": "'UTC'",
        "python_enable_replacements": "false",
        "python_scan_all_frames": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "enable_external_access": "false",
        "lock_configuration": "true",  # from here on nothing changes any of these
    }.items():
        connection.execute(f"SET {name} = {value}")
    return connection


def _warm(connection: duckdb.DuckDBPyConnection) -> None:
    """Have all modules loaded that a query loads, from DuckDB's side and from Arrow's, and its threads begun."""
    nothing = fs.PyFileSystem(SegmentFiles(lambda *_: b"", {}))
    connection.register("warm", parquet_dataset([], pa.schema([("n", pa.int64())]), nothing))
    for _ in _rows(connection.sql("SELECT n, now() AS now, 'a'::BLOB AS bytes FROM warm WHERE n > 1"), 1):
        pass
    connection.unregister("warm")


def run_query(
    console: ParentConsole, connection: duckdb.DuckDBPyConnection, query: str, most: int, most_bytes: int = 8 << 20
) -> None:
    """Run a query; say its columns, and `most` rows or `most_bytes` of them as JSON, whichever is less.

    Raises `RefusedQueryError`, and DuckDB's errors.
    """
    if _SHOW_TABLES.fullmatch(query):
        names = orjson.loads(console.ask({"topics": True}))
        connection.register("topics of the lake", pa.table({"name": pa.array(names, pa.string())}))
        query = 'SELECT name FROM "topics of the lake" ORDER BY name'
    check_statement(connection, query)
    relation = _bound(console, connection, query)
    if relation is None:
        raise RefusedQueryError("The statement gives no rows.")
    named = zip(relation.columns, relation.types, strict=True)
    columns = [(name[:_CHARACTERS], str(kind)[:_CHARACTERS]) for name, kind in named]
    if len(orjson.dumps(columns)) > most_bytes:
        raise RefusedQueryError(f"The query has {len(columns)} columns, too many to be shown. Select less.")
    console.say({"columns": columns})
    truncated = False
    for rows, is_cut in _pieces(_rows(relation, most + 1), most, most_bytes):
        console.say({"rows": rows})
        truncated = is_cut
    console.say({"done": True, "truncated": truncated})


def _bound(console: ParentConsole, connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    """The query with its tables: each that DuckDB misses becomes a view of the topic, once."""
    seen: set[str] = set()
    while True:
        try:
            return connection.sql(query)
        except duckdb.CatalogException as e:
            match = _MISSING.match(str(e))
            if match is None:
                raise
            name = match[1]
            tables = [] if name in seen else orjson.loads(console.ask({"tables": [name]}))
            if not tables:
                quoted = name if name.startswith('"') else f'"{name}"'
                raise RefusedQueryError(
                    f"There is no topic {quoted} that you may read. SHOW TABLES lists those that you may; names with"
                    ' dots or hyphens are written in quotes: FROM "my-topic".'
                ) from None
            seen.add(name)
            _add_topics(console, connection, tables)


def check_statement(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Let one statement through that only reads. Raises `RefusedQueryError`, and DuckDB's error for what is no SQL."""
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise RefusedQueryError(f"Write one statement, not {len(statements)}.")
    kind = statements[0].type.name
    if kind == "EXPLAIN" and (match := _EXPLAIN.fullmatch(query)) is not None:
        kind = connection.extract_statements(match[1])[0].type.name
    if kind != "SELECT":
        raise RefusedQueryError(
            f"{kind} is not allowed here: queries only read. Write a SELECT (or FROM, WITH, DESCRIBE, SUMMARIZE,"
            " SHOW TABLES, EXPLAIN SELECT)."
        )


def _add_topics(console: ParentConsole, connection: duckdb.DuckDBPyConnection, tables: list[dict[str, Any]]) -> None:
    """A view for each topic, over its segments."""
    for table in tables:
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(table["schema"])))
        sizes = {table["first"] + n: size for n, (size, _, _) in enumerate(table["files"])}
        files = [
            (str(table["first"] + n), size, {"partition": partition, "base_offset": base})
            for n, (size, partition, base) in enumerate(table["files"])
        ]
        dataset = parquet_dataset(files, schema, fs.PyFileSystem(SegmentFiles(console.read, sizes)))
        offset = pc.field("base_offset") + pc.field("position")
        for partition, start in table["cuts"]:
            dataset = dataset.filter((pc.field("partition") != pa.scalar(partition, pa.int32())) | (offset >= start))
        # No topic has such a name.
        segments = f"segments of {table['name']}"
        connection.register(segments, dataset)
        connection.execute(f'CREATE VIEW "{table["name"]}" AS {_view(table["name"], segments, schema)}')


def _view(topic: str, segments: str, schema: pa.Schema) -> str:
    """The columns that readers of records get (`tidelog.log.delta.schema.RECORDS_WITH_HEADERS`), and typed ones."""
    more = "".join(f', "{name}"' for name in ("value_schema", "columns") if name in schema.names)
    columns = f"key, value, '{topic}' AS topic, partition, base_offset + position AS \"offset\", timestamp"
    return f'SELECT {columns}, timestamp_type AS "timestampType", headers{more} FROM "{segments}"'  # noqa: S608


def _rows(relation: Any, most: int) -> Iterator[list[str | None]]:
    """The rows as texts, of which long ones are cut. Bytes that are UTF-8 are shown as that."""
    shown = []
    for number, kind in enumerate(relation.types, start=1):
        column = f"#{number}"  # by its place: names may be alike
        text = f"CAST({column} AS VARCHAR)"
        if str(kind) == "BLOB":
            text = f"coalesce(try(decode({column})), {text})"
        shown.append(f"left({text}, {_CHARACTERS})")
    found = relation.limit(most).project(", ".join(shown))
    at_a_time = max(1, _FETCHED // len(shown))
    for batch in found.fetch_arrow_reader(at_a_time):
        yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _pieces(
    rows: Iterator[list[str | None]], most: int, most_bytes: int
) -> Iterator[tuple[list[list[str | None]], bool]]:
    """Rows by as many as a message shall hold, and whether there are more than may be said; the last may be none."""
    piece: list[list[str | None]] = []
    size, total, count, more = 0, 0, 0, False
    for row in rows:
        length = len(orjson.dumps(row)) + 1
        if count == most or total + length > most_bytes:
            more = True
            break
        piece.append(row)
        size, total, count = size + length, total + length, count + 1
        if size >= _MESSAGE:
            yield piece, False
            piece, size = [], 0
    yield piece, more


if __name__ == "__main__":
    main(sys.argv[1])
