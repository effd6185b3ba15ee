"""The JDBC source: rows of tables or of a query, all of them or the new ones at each poll."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tidelog.connect.config.definition import ConfigDef, ConfigValue, Importance
from tidelog.connect.config.values import FLAG, TEXT, TEXTS
from tidelog.connect.connectors.jdbc.databases import (
    checked_connection,
    engine_of,
    failure_of,
    same_names,
    time_zone,
    with_connection_keys,
    written_name,
)
from tidelog.connect.connectors.jdbc.queries import NewRows, RowOffset, chosen_tables
from tidelog.connect.connectors.jdbc.sql_types import NUMERIC_MAPPINGS, Reader, column_schema, row_schemas
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.data.records import SourceRecord
from tidelog.connect.data.schema import ConnectSchema, SchemaField, SchemaType
from tidelog.connect.spi.connectors import ConnectorContext, ExactlyOnceSupport, RawConfig, SourceConnector
from tidelog.connect.spi.sources import SourceTask, SourceTaskContext
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import names
from tidelog.log.config.key_type import int_of, long_of

logger = logging.getLogger(__name__)

VERSION: Final = "1.0"
_TABLES: Final = "tables"
_WAIT_S: Final = 1.0
TableName = tuple[str | None, str]
MODES: Final = ("bulk", "timestamp", "incrementing", "timestamp+incrementing")
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
SOURCE_KEYS: Final = (
    with_connection_keys(ConfigDef())
    .define("mode", names(*MODES), REQUIRED, _HIGH,
            "bulk: whole tables at each poll. The others give what is new by columns.", group="Mode")
    .define("incrementing.column.name", TEXT, "", _MEDIUM,
            "The column whose values only grow; empty for the primary key's, of one whole number.", group="Mode")
    .define("timestamp.column.name", TEXTS, [], _MEDIUM,
            "Columns with the time of the last change, the first that is not null counts.", group="Mode")
    .define("timestamp.initial", long_of(), None, _LOW, "Where the first poll begins, in ms since 1970; -1 for now.",
            group="Mode")
    .define("validate.non.null", FLAG, True, _LOW,
            "Whether the columns of the mode must be NOT NULL: rows with null in them are never given.", group="Mode")
    .define("query", TEXT, "", _MEDIUM, "A SELECT in place of tables; the mode's condition is put around it.",
            group="Mode")
    .define("table.whitelist", TEXTS, [], _MEDIUM, "The tables to read, as table or schema.table.", group="Tables")
    .define("table.include.list", TEXTS, [], _MEDIUM, "The same under its newer name.", group="Tables")
    .define("table.blacklist", TEXTS, [], _MEDIUM, "The tables not to read; all others are.", group="Tables")
    .define("table.exclude.list", TEXTS, [], _MEDIUM, "The same under its newer name.", group="Tables")
    .define("schema.pattern", TEXT, None, _HIGH, "The database's schema to list tables of.", group="Tables")
    .define("topic.prefix", TEXT, REQUIRED, _HIGH, "What topics' names begin with; the whole name for a query.",
            group="Connector")
    .define("poll.interval.ms", int_of(0), 5000, _HIGH, "How long after a poll the same table is polled again.",
            group="Connector")
    .define("table.poll.interval.ms", long_of(1), 60_000, _LOW,
            "How often tables are listed, so that tasks read new ones, too.", group="Connector")
    .define("batch.max.rows", int_of(1), 100, _LOW, "How many rows are given at a time.", group="Connector")
    .define("timestamp.delay.interval.ms", long_of(0), 0, _HIGH,
            "How old a change must be to be given, so that transactions with earlier times end before.",
            group="Connector")
    .define("numeric.mapping", names(*NUMERIC_MAPPINGS), "none", _LOW,
            "How numeric columns of small precision are given: none (decimals), precision_only (whole numbers), "
            "best_fit (whole numbers and doubles), best_fit_eager_double.",
            group="Connector")
)  # fmt: skip


@dataclass
class _Polled:
    """A table, or the query, of a task: how far it is read, when it is due, and the rows that are being read."""

    topic: str
    partition: Mapping[str, Any]
    statement: Any
    new_rows: NewRows
    offset: RowOffset
    schema: ConnectSchema | None = None
    readers: Sequence[Reader] = ()
    due_s: float = 0.0
    rows: Iterator[SourceRecord] | None = None
    connection: Connection | None = field(default=None, repr=False)


class JdbcSourceTask(SourceTask):
    """Polls its tables in turn; a poll's rows are given in batches from one open statement."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._polled: list[_Polled] = []

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Find the columns of the tables. Raises `ConnectError` for one that the mode can't read."""
        self._values: Mapping[str, Any] = SOURCE_KEYS.parse(config)
        self._context = context
        self._zone = time_zone(self._values["db.timezone"])
        self._engine = engine_of(self._values)
        checked_connection(self._engine, self._values["connection.attempts"])
        if self._values["query"]:
            self._polled = [self._query()]
        else:
            names = [table for table in config.get(_TABLES, "").split(",") if table]
            self._polled = [self._table(_split(name)) for name in names]

    def poll(self) -> Sequence[SourceRecord]:
        """Return the next batch of the table that is due."""
        now_s = self._clock.elapsed_s()
        for polled in self._polled:
            if polled.rows is None and polled.due_s > now_s:
                continue
            try:
                batch = self._batch(polled)
            except sa.exc.DBAPIError as error:
                self._close(polled)
                raise failure_of(error, f"to read {polled.topic}") from error
            if batch:
                return batch
        waiting = min((polled.due_s - self._clock.elapsed_s() for polled in self._polled), default=_WAIT_S)
        self._context.wait(min(max(waiting, 0.0), _WAIT_S))
        return []

    def stop(self) -> None:
        """Close connections."""
        for polled in self._polled:
            self._close(polled)
        if hasattr(self, "_engine"):
            self._engine.dispose()

    def _batch(self, polled: _Polled) -> list[SourceRecord]:
        if polled.rows is None:
            polled.rows = self._rows(polled)
        batch: list[SourceRecord] = []
        for record in polled.rows:
            batch.append(record)
            if len(batch) == self._values["batch.max.rows"]:
                return batch
        self._close(polled)
        polled.due_s = self._clock.elapsed_s() + self._values["poll.interval.ms"] / 1000
        return batch

    def _close(self, polled: _Polled) -> None:
        polled.rows = None
        if polled.connection is not None:
            polled.connection.close()
            polled.connection = None

    def _rows(self, polled: _Polled) -> Iterator[SourceRecord]:
        connection = polled.connection = self._engine.connect()
        until = None
        if polled.new_rows.times:
            now = connection.execute(sa.select(sa.func.current_timestamp())).scalar_one()
            now = now if now.tzinfo else now.replace(tzinfo=UTC)
            until = now - timedelta(milliseconds=self._values["timestamp.delay.interval.ms"])
        statement = polled.new_rows.select(polled.statement, polled.offset, until)
        streamed = connection.execution_options(yield_per=self._values["batch.max.rows"]).execute(statement)
        if polled.schema is None:
            yield from self._query_rows(polled, streamed)
            return
        names = [one.name for one in polled.schema.fields]
        for row, offset in polled.new_rows.offsets(_mappings(streamed), polled.offset):
            values = {name: read(row[name]) for name, read in zip(names, polled.readers, strict=True)}
            yield self._record(polled, values, polled.schema, offset)

    def _query_rows(self, polled: _Polled, result: Any) -> Iterator[SourceRecord]:
        """Rows of a query, whose columns' types are known with the first part of them."""
        description = result.cursor.description
        names = [column[0] for column in description]
        parts = result.partitions()
        first: Sequence[Any] = next(parts, [])
        column_types = row_schemas(first, description, self._zone)
        fields = tuple(SchemaField(name, schema) for name, (schema, _) in zip(names, column_types, strict=True))
        schema = ConnectSchema(SchemaType.STRUCT, fields=fields)
        rows = chain(first, chain.from_iterable(parts))
        mapped = (dict(zip(names, row, strict=True)) for row in rows)
        for row, offset in polled.new_rows.offsets(mapped, polled.offset):
            values = {name: read(row[name]) for name, (_, read) in zip(names, column_types, strict=True)}
            yield self._record(polled, values, schema, offset)

    def _record(
        self, polled: _Polled, values: Mapping[str, Any], schema: ConnectSchema, offset: RowOffset
    ) -> SourceRecord:
        polled.offset = offset
        return SourceRecord(
            topic=polled.topic,
            value=values,
            value_schema=schema,
            source_partition=polled.partition,
            source_offset=offset.stored(),
        )

    def _table(self, name: TableName) -> _Polled:
        try:
            table = sa.Table(name[1], sa.MetaData(), schema=name[0], autoload_with=self._engine)
        except sa.exc.NoSuchTableError as error:
            raise ConnectError(
                f"The table {_joined(name)} is gone. Tables are listed again at the next interval."
            ) from error
        mode, mapping = self._values["mode"], self._values["numeric.mapping"]
        times = [self._column(table, one) for one in self._values["timestamp.column.name"]] if "time" in mode else []
        number = self._number_column(table) if mode.endswith("incrementing") else None
        nullable = [one.name for one in (number,) if one is not None and one.nullable and not one.primary_key]
        if times and all(one.nullable for one in times):
            nullable += [one.name for one in times]
        if nullable and self._values["validate.non.null"]:
            raise ConnectError(
                f"{', '.join(nullable)} of {_joined(name)} may be null, and rows with null in them would "
                "never be given. "
                "Make one of them NOT NULL, or set validate.non.null=false."
            )
        dialect = self._engine.dialect.name
        columns = [(one, *column_schema(one.type, dialect, mapping, self._zone)) for one in table.columns]
        # Plain texts: SQLAlchemy's names are of a class of their own, which JSON does not take.
        fields = tuple(
            SchemaField(str(one.name), kind.as_optional() if one.nullable else kind) for one, kind, _ in columns
        )
        partition = {"protocol": "1", "table": _joined(name)}
        return _Polled(
            self._values["topic.prefix"] + name[1],
            partition,
            sa.select(table),
            NewRows(tuple(times), number, self._zone),
            self._stored(partition, timed=bool(times)),
            ConnectSchema(SchemaType.STRUCT, name=name[1], fields=fields),
            [read for _, _, read in columns],
        )

    def _query(self) -> _Polled:
        mode, partition = self._values["mode"], {"query": "query"}
        names = self._values["timestamp.column.name"] if "timestamp" in mode else []
        number = self._values["incrementing.column.name"] if mode.endswith("incrementing") else ""
        inner = sa.text(f"({self._values['query']}) AS tidelog_query")

        def column(name: str) -> Any:
            return sa.column(written_name(name, self._values, self._engine.dialect.name))

        return _Polled(
            self._values["topic.prefix"],
            partition,
            sa.select(sa.text("*")).select_from(inner),
            NewRows(tuple(map(column, names)), column(number) if number else None, self._zone),
            self._stored(partition, timed=bool(names)),
        )

    def _stored(self, partition: Mapping[str, Any], *, timed: bool) -> RowOffset:
        stored = self._context.offset_storage_reader.offset(partition)
        initial = self._values["timestamp.initial"]
        if stored or not timed or initial is None:
            return RowOffset.of(stored)
        milliseconds = self._clock.now_ms() if initial == -1 else initial
        return RowOffset(datetime.fromtimestamp(milliseconds / 1000, UTC))

    def _number_column(self, table: sa.Table) -> sa.Column[Any]:
        name = self._values["incrementing.column.name"]
        if name:
            return self._column(table, name)
        keys = [one for one in table.primary_key.columns if isinstance(one.type, sa.Integer)]
        if len(keys) != 1:
            raise ConnectError(
                f"{table.name} has {len(keys)} whole numbers in its primary key, so that "
                "incrementing.column.name must say "
                "which column grows."
            )
        return keys[0]

    def _column(self, table: sa.Table, name: str) -> sa.Column[Any]:
        same = same_names(self._values)
        column = next((one for one in table.columns if same(one.name, name)), None)
        if column is None:
            raise ConnectError(f"{table.name} has no column {name!r}, which the mode needs. Correct the column's key.")
        return column


def _mappings(result: Any) -> Iterator[Mapping[str, Any]]:
    """Rows as {column: value}."""
    yield from result.mappings()


def _joined(name: TableName) -> str:
    return name[1] if name[0] is None else f"{name[0]}.{name[1]}"


def _split(name: str) -> TableName:
    schema, separator, table = name.rpartition(".")
    return (schema if separator else None, table)


class JdbcSource(SourceConnector):
    """Confluent's JdbcSourceConnector."""

    names = ("io.confluent.connect.jdbc.JdbcSourceConnector", "JdbcSourceConnector", "JdbcSource")
    version = VERSION
    guarantee = (
        "Modes incrementing and timestamp+incrementing: exactly once of the rows that a poll sees. Mode "
        "timestamp: at least "
        "once, rows of one time again after a stop among them. Mode bulk: every row at every poll. Rows "
        "that are committed "
        "after younger ones were read are lost, unless timestamp.delay.interval.ms covers that; "
        "deletions are never seen."
    )
    task_class = JdbcSourceTask
    keys = SOURCE_KEYS

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._watching: threading.Thread | None = None

    @classmethod
    def check_together(cls, values: Mapping[str, ConfigValue]) -> None:
        """As of `Connector`."""
        parsed: Mapping[str, Any] = {name: value.value for name, value in values.items()}
        mode = parsed["mode"] if parsed["mode"] in MODES else "bulk"
        if "timestamp" in mode and not parsed["timestamp.column.name"]:
            values["timestamp.column.name"].errors.append(f"mode {mode} needs timestamp.column.name: give its columns.")
        if parsed["query"] and mode.endswith("incrementing") and not parsed["incrementing.column.name"]:
            values["incrementing.column.name"].errors.append(
                "A query has no primary key: give incrementing.column.name."
            )
        lists = [name for name in ("table.whitelist", "table.include.list") if parsed[name]]
        excluded = [name for name in ("table.blacklist", "table.exclude.list") if parsed[name]]
        if lists and excluded:
            values[excluded[0]].errors.append(f"{excluded[0]} and {lists[0]} contradict each other: give one of them.")
        if parsed["query"] and (lists or excluded):
            values["query"].errors.append(f"A query takes no tables: leave out {(lists + excluded)[0]}, or the query.")

    @classmethod
    def exactly_once_support(cls, config: RawConfig) -> ExactlyOnceSupport:
        """Where every row has a number of its own."""
        numbered = config.get("mode", "").endswith("incrementing")
        return ExactlyOnceSupport.SUPPORTED if numbered else ExactlyOnceSupport.UNSUPPORTED

    def start(self, config: RawConfig, context: Any) -> None:
        """List the tables. Raises `ConnectError` where the database doesn't answer or has none of them."""
        super().start(config, context)
        values = SOURCE_KEYS.parse(config)
        self._tables = list[str]()
        if values["query"]:
            return
        include = values["table.whitelist"] or values["table.include.list"]
        engine = engine_of(values)
        try:
            checked_connection(engine, values["connection.attempts"])
            self._tables = _chosen(engine, values)
        finally:
            engine.dispose()
        same = same_names(values)
        named = [one for table in self._tables for one in (table, table.rpartition(".")[2])]
        missing = [name for name in include if not any(same(one, name) for one in named)]
        if missing or not self._tables:
            raise ConnectError(
                f"The database has no table {', '.join(missing) or 'at all'}. Create it, or correct the list."
            )
        if context is not None:
            self._watching = threading.Thread(
                target=self._watch, args=(values, context), name="jdbc-tables", daemon=True
            )
            self._watching.start()

    def stop(self) -> None:
        """Watch the tables no more."""
        self._stopping.set()
        if self._watching is not None:
            self._watching.join()

    def _watch(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        """Have the tasks shared out again whenever there are other tables to read than before."""
        engine = engine_of(values)
        try:
            while not self._stopping.wait(values["table.poll.interval.ms"] / 1000):
                try:
                    tables = _chosen(engine, values)
                except sa.exc.DBAPIError as error:
                    logger.warning("Tables are listed again later: error=%s", error.orig)
                    continue
                if tables and tables != self._tables:
                    logger.info("Other tables than before: tables=%d before=%d", len(tables), len(self._tables))
                    self._tables = tables
                    context.request_task_reconfiguration()
        finally:
            engine.dispose()

    def task_configs(self, max_tasks: int) -> Sequence[RawConfig]:
        """Share the tables among the tasks."""
        tables = self._tables
        if not tables:
            return [self.config]
        shares = [tables[number::max_tasks] for number in range(min(max_tasks, len(tables)))]
        return [{**self.config, _TABLES: ",".join(share)} for share in shares]


def _listed(engine: sa.Engine, values: Mapping[str, Any], include: Sequence[str]) -> list[TableName]:
    inspector = sa.inspect(engine)
    dialect = engine.dialect.name
    named = (_split(written_name(name, values, dialect))[0] for name in include)
    schemas = {values["schema.pattern"], *named}
    return [(schema, table) for schema in schemas for table in inspector.get_table_names(schema=schema)]


def _chosen(engine: sa.Engine, values: Mapping[str, Any]) -> list[str]:
    """The names of the tables to read, as the database has them now."""
    include = values["table.whitelist"] or values["table.include.list"]
    exclude = values["table.blacklist"] or values["table.exclude.list"]
    found = chosen_tables(_listed(engine, values, include), include, exclude, same_names(values))
    return [_joined(name) for name in found]
