"""The JDBC sink: records as rows, written once with their offsets in the same transaction."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from tidelog.connect.config.definition import ConfigDef, ConfigValue, Importance
from tidelog.connect.config.values import FILLED, FLAG, TEXT, TEXTS
from tidelog.connect.connectors.jdbc.databases import (
    checked_connection,
    engine_of,
    failure_of,
    is_passing,
    refusal_of,
    time_zone,
    with_connection_keys,
    written_name,
)
from tidelog.connect.connectors.jdbc.sink_rows import RowRule, SinkRow, newest, runs_of
from tidelog.connect.connectors.jdbc.sql_types import sql_type
from tidelog.connect.data.errors import ConnectError, DataError, RetriableConnectError
from tidelog.connect.data.records import Partition, SinkRecord
from tidelog.connect.data.schema import ConnectSchema
from tidelog.connect.spi.connectors import SinkConnector
from tidelog.connect.spi.sinks import SinkTask, SinkTaskContext
from tidelog.log.base.typed_values import names
from tidelog.log.config.key_type import int_of

_UPSERTS: Final[Mapping[str, Callable[..., Any]]] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
_SINK_VERSION: Final = "1.0"
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
PK_MODES: Final = ("none", "kafka", "record_key", "record_value")
SINK_KEYS: Final = (
    with_connection_keys(ConfigDef())
    .define("insert.mode", names("insert", "upsert", "update"), "insert", _HIGH,
            "insert, upsert or update.", group="Writes")
    .define("batch.size", int_of(1), 3000, _MEDIUM, "How many rows a statement has at most.", group="Writes")
    .define("delete.enabled", FLAG, False, _MEDIUM,
            "Whether a null value deletes the row of its key; needs pk.mode=record_key.", group="Writes")
    .define("max.retries", int_of(0), 10, _MEDIUM, "How often a batch is tried again before the task fails.",
            group="Writes")
    .define("retry.backoff.ms", int_of(0), 3000, _MEDIUM, "How long after a failure.", group="Writes")
    .define("offsets.table.name", TEXT, "tidelog_connect_offsets", _LOW, "The table for offsets, written in the rows' "
            "transaction, so that every record is written once; empty for at least once.", group="Writes")
    .define("table.name.format", FILLED, "${topic}", _MEDIUM, "The table of a topic; schema.table where it has a dot.",
            group="Mapping")
    .define("pk.mode", names(*PK_MODES), "none", _HIGH,
            "What the primary key is: none, kafka (topic, partition, offset), record_key or record_value.",
            group="Mapping")
    .define("pk.fields", TEXTS, [], _MEDIUM,
            "The primary key's columns: names for kafka's three or for a key that is no struct, else fields, all of "
            "them when empty.", group="Mapping")
    .define("fields.whitelist", TEXTS, [], _MEDIUM, "The value's fields to write; all when empty.", group="Mapping")
    .define("auto.create", FLAG, False, _MEDIUM, "Whether a missing table is created.", group="Tables")
    .define("auto.evolve", FLAG, False, _MEDIUM, "Whether missing columns are added.", group="Tables")
)  # fmt: skip


class JdbcSinkTask(SinkTask):
    """Writes each batch of records in one transaction, with the offsets behind it."""

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Connect. Raises `ConnectError`."""
        self._values: Mapping[str, Any] = SINK_KEYS.parse(config)
        self._context, self._connector = context, config.get("name", "")
        self._engine = engine_of(self._values)
        dialect, given = self._engine.dialect.name, self._values
        self._rule = RowRule(
            given["table.name.format"], given["pk.mode"], given["pk.fields"], given["fields.whitelist"],
            given["delete.enabled"], time_zone(given["db.timezone"]), lambda name: written_name(name, given, dialect),
        )  # fmt: skip
        checked_connection(self._engine, self._values["connection.attempts"])
        self._tables: dict[str, sa.Table] = {}
        self._next: dict[Partition, int] = {}
        self._failures = 0
        self._offsets = self._offsets_table()

    def open(self, partitions: Collection[Partition]) -> None:
        """Go on at the offsets that the database has, whatever was committed."""
        if self._offsets is None:
            return
        table = self._offsets
        with self._engine.connect() as connection:
            for topic, partition in partitions:
                next_offset = connection.execute(
                    sa.select(table.c.next_offset).where(self._offset_row(table, (topic, partition)))
                ).scalar()
                if next_offset is not None:
                    self._next[topic, partition] = next_offset
                    self._context.seek((topic, partition), next_offset)

    def close(self, partitions: Collection[Partition]) -> None:
        """Forget the partitions' offsets."""
        for partition in partitions:
            self._next.pop(partition, None)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write the records. Raises `RetriableConnectError` up to max.retries times, for what may pass."""
        fresh = [one for one in records if one.offset >= self._next.get(one.original, 0)]
        if not fresh:
            return
        try:
            self._write(fresh)
        except sa.exc.DBAPIError as error:
            self._tables.clear()
            self._failures += 1
            if is_passing(error) and self._failures <= self._values["max.retries"]:
                self._context.retry_after(self._values["retry.backoff.ms"] / 1000)
                raise RetriableConnectError(
                    f"The database refused a batch: {refusal_of(error)} It is tried again."
                ) from error
            raise ConnectError(
                f"The database refused a batch: {refusal_of(error)} Correct it, and restart the task."
            ) from error
        self._failures = 0

    def stop(self) -> None:
        """Close connections."""
        if hasattr(self, "_engine"):
            self._engine.dispose()

    def _write(self, records: Sequence[SinkRecord]) -> None:
        rows: list[tuple[SinkRecord, SinkRow]] = []
        refused: list[tuple[SinkRecord, Exception]] = []
        for record in records:
            try:
                rows.append((record, self._rule.row(record)))
            except DataError as failure:
                refused.append((record, failure))
        try:
            with self._engine.begin() as connection:
                self._write_rows(connection, [row for _, row in rows])
                offsets = self._advance(connection, records)
        except (sa.exc.DataError, sa.exc.IntegrityError, DataError):
            self._tables.clear()  # changes of tables are undone with the rows
            with self._engine.begin() as connection:
                refused += self._write_singly(connection, rows)
                self._report(refused)
                offsets = self._advance(connection, records)
        else:
            self._report(refused)
        self._next |= offsets

    def _report(self, refused: Sequence[tuple[SinkRecord, Exception]]) -> None:
        for record, why in refused:
            self._context.errant_record_reporter.report(record, why)

    def _write_rows(self, connection: Connection, rows: Sequence[SinkRow]) -> None:
        for run in runs_of(rows, self._values["batch.size"]):
            table = self._ready_table(connection, run[0])
            _execute(connection, table, run, self._values["insert.mode"])

    def _write_singly(
        self, connection: Connection, rows: Sequence[tuple[SinkRecord, SinkRow]]
    ) -> list[tuple[SinkRecord, Exception]]:
        """Write row by row, and return those that the database refuses."""
        refused: list[tuple[SinkRecord, Exception]] = []
        for record, row in rows:
            try:
                with connection.begin_nested():
                    self._write_rows(connection, [row])
            except (sa.exc.DataError, sa.exc.IntegrityError) as error:
                self._tables.clear()
                refused.append((record, failure_of(error, f"a row of {row.table}")))
            except DataError as error:
                self._tables.clear()
                refused.append((record, error))
        return refused

    # --- offsets -------------------------------------------------------------------------------------------

    def _offsets_table(self) -> sa.Table | None:
        name = self._values["offsets.table.name"]
        if not name:
            return None
        schema, _, table_name = name.rpartition(".")
        table = sa.Table(
            table_name, sa.MetaData(),
            sa.Column("connector", sa.String(255), primary_key=True),
            sa.Column("topic", sa.String(255), primary_key=True),
            sa.Column("partition_number", sa.Integer, primary_key=True), sa.Column("next_offset", sa.BigInteger),
            schema=schema or None,
        )  # fmt: skip
        try:
            table.create(self._engine, checkfirst=True)
        except sa.exc.DBAPIError:  # another task made it at the same time
            if not sa.inspect(self._engine).has_table(table_name, schema=schema or None):
                raise
        return table

    def _offset_row(self, table: sa.Table, partition: Partition) -> Any:
        return sa.and_(
            table.c.connector == self._connector,
            table.c.topic == partition[0],
            table.c.partition_number == partition[1],
        )

    def _advance(self, connection: Connection, records: Sequence[SinkRecord]) -> dict[Partition, int]:
        """Move the offsets behind the records. Raises `ConnectError` where another task has moved them."""
        offsets: dict[Partition, int] = {}
        for record in records:
            offsets[record.original] = record.offset + 1
        table = self._offsets
        if table is None:
            return offsets
        for (topic, number), offset in offsets.items():
            before = self._next.get((topic, number))
            row = {"connector": self._connector, "topic": topic, "partition_number": number, "next_offset": offset}
            if before is None:
                connection.execute(sa.insert(table).values(row))
                continue
            mine = sa.and_(self._offset_row(table, (topic, number)), table.c.next_offset == before)
            if connection.execute(sa.update(table).where(mine).values(next_offset=offset)).rowcount != 1:
                raise ConnectError(
                    f"Another task of {self._connector} has written {topic}-{number} since this one "
                    "began: this one's batch "
                    "is undone. Restart the task if that one is gone."
                )
        return offsets

    # --- tables --------------------------------------------------------------------------------------------

    def _ready_table(self, connection: Connection, row: SinkRow) -> sa.Table:
        """The table with every column of a row. Raises `ConnectError` where it lacks one and must not get it."""
        table = self._tables.get(row.table)
        if table is None:
            table = self._tables[row.table] = self._found_table(connection, row)
        missing = [name for name in row.columns if name not in table.columns]
        if missing:
            if not self._values["auto.evolve"]:
                raise ConnectError(
                    f"The table {row.table} has no column {missing[0]!r}. Add it, set auto.evolve=true, "
                    "or leave the field "
                    "out by fields.whitelist."
                )
            for name in missing:
                _add_column(connection, table, name, row.columns[name])
            table = self._tables[row.table] = self._found_table(connection, row)
        return table

    def _found_table(self, connection: Connection, row: SinkRow) -> sa.Table:
        found = _reflected(connection, row.table)
        if found is not None:
            return found
        if not self._values["auto.create"]:
            raise ConnectError(f"The table {row.table} is missing. Create it, or set auto.create=true.")
        schema, _, name = row.table.rpartition(".")
        columns = [
            sa.Column(
                column, _key_type(connection, kind, column) if column in row.keys else sql_type(kind, column),
                primary_key=column in row.keys, autoincrement=False, nullable=kind.optional and column not in row.keys,
            )
            for column, kind in row.columns.items()
        ]  # fmt: skip
        table = sa.Table(name, sa.MetaData(), *columns, schema=schema or None)
        table.create(connection)
        return table


def _key_type(connection: Connection, kind: ConnectSchema, name: str) -> Any:
    """A type that may be in a key; MySQL's texts without a length may not."""
    found = sql_type(kind, name)
    return sa.String(255) if isinstance(found, sa.Text) and connection.dialect.name in ("mysql", "mariadb") else found


def _reflected(connection: Connection, table: str) -> sa.Table | None:
    schema, _, name = table.rpartition(".")
    try:
        return sa.Table(name, sa.MetaData(), schema=schema or None, autoload_with=connection)
    except sa.exc.NoSuchTableError:
        return None


def _add_column(connection: Connection, table: sa.Table, name: str, schema: ConnectSchema) -> None:
    if not schema.optional and schema.default is None:
        raise ConnectError(
            f"The column {name!r} can't be added to {table.name}: its field is required and has no "
            "default for the rows "
            "that are there. Make the field optional, or add the column."
        )
    preparer = connection.dialect.identifier_preparer
    kind = sql_type(schema, name).compile(dialect=connection.dialect)
    connection.execute(sa.text(f"ALTER TABLE {preparer.format_table(table)} ADD COLUMN {preparer.quote(name)} {kind}"))


def _execute(connection: Connection, table: sa.Table, run: Sequence[SinkRow], mode: str) -> None:
    """Write a run of rows by one statement."""
    keys = run[0].keys
    if run[0].values is None:
        _by_keys(connection, sa.delete(table), table, keys, newest(run))
        return
    values = [row.values for row in (run if mode == "insert" else newest(run)) if row.values is not None]
    if mode == "insert":
        connection.execute(sa.insert(table), values)
        return
    others = [name for name in run[0].columns if name not in keys]
    if mode == "update":
        statement = sa.update(table).values({name: sa.bindparam(f"v_{name}") for name in others})
        _by_keys(connection, statement, table, keys, newest(run), others)
        return
    upsert = _UPSERTS.get(connection.dialect.name)
    if upsert is None:
        raise ConnectError(f"insert.mode=upsert is for PostgreSQL and SQLite, not for {connection.dialect.name}.")
    statement = upsert(table)
    changed = {name: statement.excluded[name] for name in others}
    elements = [table.c[name] for name in keys]
    connection.execute(
        statement.on_conflict_do_update(index_elements=elements, set_=changed)
        if changed
        else statement.on_conflict_do_nothing(index_elements=elements),
        values,
    )


def _by_keys(
    connection: Connection,
    statement: Any,
    table: sa.Table,
    keys: Sequence[str],
    rows: Sequence[SinkRow],
    others: Sequence[str] = (),
) -> None:
    """Execute a statement for the row of each key."""
    statement = statement.where(sa.and_(*(table.c[name] == sa.bindparam(f"k_{name}") for name in keys)))
    parameters = [
        {f"k_{name}": one for name, one in zip(keys, row.key, strict=True)}
        | {f"v_{name}": (row.values or {}).get(name) for name in others}
        for row in rows
    ]
    connection.execute(statement, parameters)


class JdbcSinkConnector(SinkConnector):
    """Confluent's JdbcSinkConnector."""

    names = ("io.confluent.connect.jdbc.JdbcSinkConnector", "JdbcSinkConnector", "JdbcSink")
    version = _SINK_VERSION
    guarantee = (
        "Exactly once: offsets are in a table of the same database, written in the rows' transaction. With "
        "offsets.table.name empty at least once, which insert.mode=upsert makes idempotent."
    )
    task_class = JdbcSinkTask
    keys = SINK_KEYS

    @classmethod
    def check_together(cls, values: Mapping[str, ConfigValue]) -> None:
        """As of `Connector`."""
        mode, fields = values["pk.mode"].value, values["pk.fields"].value or []
        if values["delete.enabled"].value is True and mode != "record_key":
            values["delete.enabled"].errors.append(
                "delete.enabled needs pk.mode=record_key: a tombstone has a key only."
            )
        if values["insert.mode"].value in ("upsert", "update") and mode == "none":
            values["pk.mode"].errors.append(
                f"insert.mode={values['insert.mode'].value} needs a primary key: give pk.mode."
            )
        if mode == "kafka" and len(fields) not in (0, 3):
            values["pk.fields"].errors.append(
                "pk.mode=kafka takes three names, of topic, partition and offset, or none."
            )
        if mode == "none" and fields:
            values["pk.fields"].errors.append("pk.mode=none takes no pk.fields: give pk.mode, or leave pk.fields out.")
