"""A PostgreSQL source's task, run as a worker would: what it gives is stored together with its offset, or not at all.

As a program (`python -m support.postgres_sources FILE CONFIG`) it stores each batch as a line of a file, until it is
killed; a line that lacks its end was not stored.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from support.debezium_runs import PREFIX, statements
from support.postgres import Postgres

from tidelog.connect.connectors.postgres.connector import PostgresTask
from tidelog.connect.converters.json_converter import JsonConverter
from tidelog.connect.data.packed import LazyRecord
from tidelog.connect.data.records import SourceRecord

_NUMBERS = itertools.count(1)


def config_of(server: Postgres, database: str, **others: str) -> dict[str, str]:
    """A connector's configuration; `others` with `_` for `.`, as they are in Python."""
    return {
        "topic.prefix": PREFIX,
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.dbname": database,
        "slot.name": f"slot_of_{database}",
        "retriable.restart.connector.wait.ms": "50",
        "slot.retry.delay.ms": "50",
        "slot.max.retries": "1000",
        "poll.interval.ms": "50",
        **{name.replace("_", "."): value for name, value in others.items()},
    }


@contextmanager
def fresh_database(server: Postgres, *statements: str) -> Iterator[str]:
    """A new database, in which the statements are run; gone at the end, with its slots."""
    name = f"db_{os.getpid()}_{next(_NUMBERS)}"
    server.run(f"CREATE DATABASE {name}")
    try:
        server.run("; ".join(statements), name)
        yield name
    finally:
        server.run(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';"
            f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = '{name}' AND active"
        )
        _drop_slots(server, name)
        server.run(f"DROP DATABASE {name} WITH (FORCE)")


def _drop_slots(server: Postgres, name: str) -> None:
    while server.run(f"SELECT 1 FROM pg_replication_slots WHERE database = '{name}'"):
        server.run(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            f" WHERE database = '{name}' AND NOT active"
        )


class SourceRun:
    """A task and what is stored of it. It is also the task's context."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self.configs = dict(config)
        self.records: list[SourceRecord] = []
        self.stored: Mapping[str, Any] | None = None
        self.task = PostgresTask()
        self.begin()

    @property
    def offset_storage_reader(self) -> "SourceRun":
        return self

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        assert partition == {"server": self.configs["topic.prefix"]}
        return json.loads(json.dumps(self.stored))

    def wait(self, seconds: float) -> bool:
        time.sleep(min(seconds, 0.2))
        return False

    def begin(self) -> None:
        """A new task, as after a restart of the worker."""
        self.task = PostgresTask()
        self.task.start(self.configs, self)

    def kill(self) -> None:
        """The task goes without a word, its connections with it."""
        self.task._close()

    def store(self, records: list[SourceRecord]) -> None:
        """A worker's transaction."""
        if records:
            self.records += records
            self.stored = records[-1].source_offset

    def step(self) -> list[SourceRecord]:
        """Ask once, and store."""
        records = self.ask()
        self.store(records)
        self.task.commit()
        return records

    def ask(self) -> list[SourceRecord]:
        """What `poll` gives; what may be tried again, is."""
        from tidelog.connect.data.errors import RetriableConnectError

        try:
            return list(self.task.poll())
        except RetriableConnectError:
            return []

    def until(self, holds: Callable[[], Any], what: str, patience_s: float = 120.0) -> None:
        """Step until something holds."""
        end = time.monotonic() + patience_s
        while not holds():
            assert time.monotonic() < end, f"{what}; so far {len(self.records)} records"
            self.step()

    @property
    def values(self) -> list[Any]:
        """(op, the new row) of each record of a row."""
        return [(one.value["op"], one.value["after"]) for one in self.records if one.value and "after" in one.value]

    def tables(self, key: str = "id") -> dict[str, dict[Any, Any]]:
        """{table: {key: row}}: what the records make of the tables."""
        return fold(((one.topic, one.key, one.value) for one in self.records), key)


def fold(records: Any, key: str = "id") -> dict[str, dict[Any, Any]]:
    """{table: {key: row}} of (topic, key, value) in order."""
    found: dict[str, dict[Any, Any]] = {}
    for topic, record_key, value in records:
        if record_key is None or key not in record_key:
            continue
        rows = found.setdefault(topic.rpartition(".")[2], {})
        if value is None or value["op"] == "d":
            rows.pop(record_key[key], None)
        else:
            rows[record_key[key]] = value["after"]
    return found


def as_json(record: SourceRecord) -> tuple[Any, Any]:
    """(key, value) of a record as JsonConverter writes them, with their schemas; packed ones as they are, too."""
    converter, topic = JsonConverter(schemas=True), record.topic
    pairs = ((record.key_schema, record.key), (record.value_schema, record.value))
    written = [None if one is None else converter.from_connect(topic, schema, one) for schema, one in pairs]
    if isinstance(record, LazyRecord):
        layouts = record.layout.key, record.layout.value
        packed = [None if one is None else converter.from_packed(topic, one, record.parts) for one in layouts]
        assert packed == written
    key, value = (orjson.loads(one or b"null") for one in written)
    return key, value


def envelopes_of_changes(server: Postgres, database: str) -> list[dict[str, Any]]:
    """What the connector makes of changes.sql in a new database, as `debezium_runs.captured` gives it."""
    before, after = statements()
    server.run(before, database)
    run = SourceRun(config_of(server, database, skipped_operations="none"))
    run.until(lambda: [one for one in run.values if one[0] == "r"][5:], "the copy is whole")
    server.run(after, database)
    run.until(lambda: [one for one in run.values if one[1] and one[1].get("name") == "end"], "all changes are read")
    run.task.stop()
    found: dict[str, list[dict[str, Any]]] = {}
    for one in run.records:
        key, value = as_json(one)
        found.setdefault(one.topic, []).append({"topic": one.topic, "key": key, "value": value})
    return [one for topic in sorted(found) for one in found[topic]]


# --- a process of its own ------------------------------------------------------------------------------------


def stored_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [orjson.loads(line) for line in lines]


class _FileRun(SourceRun):
    """Stores each batch as a line: the write is the transaction."""

    def __init__(self, path: Path, config: Mapping[str, str]) -> None:
        lines = stored_lines(path)
        whole = path.read_bytes().rpartition(b"\n") if path.exists() else (b"", b"", b"")
        path.write_bytes(whole[0] + whole[1])
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 until the process is killed
        super().__init__(config)
        self.stored = lines[-1]["offset"] if lines else None
        self.begin()

    def store(self, records: list[SourceRecord]) -> None:
        if records:
            rows = [(one.topic, one.key, one.value) for one in records]
            self._file.write(orjson.dumps({"records": rows, "offset": records[-1].source_offset}) + b"\n")


def main() -> None:
    run = _FileRun(Path(sys.argv[1]), json.loads(sys.argv[2]))
    while True:
        run.step()


if __name__ == "__main__":
    main()
