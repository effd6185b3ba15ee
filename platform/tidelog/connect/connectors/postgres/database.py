"""What the connector asks of PostgreSQL beside the stream: types, tables, publications, slots."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tidelog.connect.connectors.postgres.column_types import PostgresType
from tidelog.connect.connectors.postgres.pgoutput import RelationColumn
from tidelog.connect.connectors.postgres.positions import lsn_number
from tidelog.connect.connectors.postgres.settings import PostgresSettings, PublicationMode
from tidelog.connect.connectors.postgres.tables import TableFacts
from tidelog.connect.data.errors import ConnectError, RetriableConnectError

# The forms that the decoders of text read: of this session, and so of its walsender.
_OPTIONS: Final = (
    "-c DateStyle=ISO,YMD -c IntervalStyle=postgres -c TimeZone=UTC -c extra_float_digits=3 -c bytea_output=hex"
    " -c lc_monetary=C -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0"
)
_CONNECT_TIMEOUT_S: Final = 10
# Of a statement, in an error.
_MOST_SHOWN: Final = 500
# psycopg2 comes without types.
Connection = Any
# A session lasts for a moment longer than its connection: it is looked for this many times, 50 ms apart.
_LOOKS_AT_READER: Final = 100
_READ_BY: Final = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s AND active"
# The first oid that PostgreSQL gives to what users make.
_FIRST_OF_USERS: Final = 16_384


def psycopg2() -> Any:
    """The module psycopg2, with its part for replication. Raises `ConnectError` where it is not installed."""
    try:
        import psycopg2.extras
    except ImportError as missing:
        raise ConnectError(
            "The PostgreSQL connector needs psycopg2, which is not installed. Run `pip install 'tidelog[connect]'`"
            " (or `pip install psycopg2-binary`), and restart the worker."
        ) from missing
    return psycopg2


def connect(settings: PostgresSettings, *, replication: bool = False) -> Connection:
    """A connection; `replication`: that of a walsender. Raises `RetriableConnectError` where the server is away."""
    module = psycopg2()
    extra = {"connection_factory": module.extras.LogicalReplicationConnection} if replication else {}
    try:
        made: Connection = module.connect(
            host=settings.host,
            port=settings.port,
            user=settings.user,
            password=settings.password,
            dbname=settings.database,
            client_encoding="utf8",
            application_name=f"tidelog connect {settings.slot}",
            connect_timeout=_CONNECT_TIMEOUT_S,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            options=_OPTIONS,
            **settings.ssl,
            **extra,
        )
    except module.OperationalError as error:
        raise RetriableConnectError(
            f"PostgreSQL does not take a connection to {settings.shown} as {settings.user}: {str(error).strip()}."
            " Check that the server runs, and database.hostname, database.port, database.user and database.password."
        ) from error
    if not replication:
        made.autocommit = True
    return made


def lost(error: Exception) -> RetriableConnectError:
    """The error of a connection that broke."""
    return RetriableConnectError(f"The connection to PostgreSQL was lost: {str(error).strip()}.")


# Connection exceptions, and what an operator or a crash does to sessions.
_OF_LOST_SESSIONS: Final = ("08", "57")


def is_lost(error: Any, connection: Connection) -> bool:
    """Whether a statement failed because its session ended; else the server has refused it."""
    code = error.pgcode
    return bool(connection.closed) or code is None or code[:2] in _OF_LOST_SESSIONS


def refused(error: Any, query: str, settings: PostgresSettings) -> ConnectError:
    """What a refused statement means, with the statement, the table and the column that the server names."""
    found = error.diag
    where = ".".join(one for one in (found.schema_name, found.table_name, found.column_name) if one)
    do = ""
    if error.pgcode == _REFUSED_RIGHT:
        do = f" Give the right to {settings.user}: GRANT USAGE ON SCHEMA …, GRANT SELECT ON …, or make it the owner."
    return ConnectError(
        f"PostgreSQL refuses a statement of the connector in {settings.shown}: {str(error).strip()}."
        f"{f' It is about {where}.' if where else ''} Statement: {query[:_MOST_SHOWN]}{do}"
    )


# undefined_object, insufficient_privilege
_UNDEFINED_OBJECT: Final = "42704"
_REFUSED_RIGHT: Final = "42501"


def stream_failure(error: Any, connection: Connection, settings: PostgresSettings) -> ConnectError:
    """What an error of the stream means: a connection that broke is made again, what the server refuses is not.

    PostgreSQL looks for the publication only when it decodes a change: its error then comes from the stream.
    """
    said = str(error).strip()
    publication = settings.publication
    missing = error.pgcode == _UNDEFINED_OBJECT and publication in said
    if missing or f'publication "{publication}" does not exist' in said:
        wanted = ", ".join(settings.records.selection.tables) or "…"
        return ConnectError(
            f"Publication {publication} is not in database {settings.shown}: {said}. Statement: START_REPLICATION SLOT"
            f" {settings.slot} … publication_names {publication}. Run CREATE PUBLICATION {quoted(publication)} FOR"
            f" TABLE {wanted}. It counts from its creation on: to read changes before it, too, drop the slot"
            " and delete the connector's offsets."
        )
    if error.pgcode is None or is_lost(error, connection):
        return lost(error)
    return ConnectError(
        f"PostgreSQL refuses the stream of slot {settings.slot} in {settings.shown}: {said}. Statement:"
        f" START_REPLICATION SLOT {settings.slot}."
    )


class SlotFacts(NamedTuple):
    """A replication slot as `pg_replication_slots` shows it."""

    plugin: str
    database: str | None
    active_pid: int | None
    confirmed_flush_lsn: int


class Database:
    """The connector's questions, over one connection."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self.connection = connect(settings)
        self._types: dict[int, PostgresType] = {}

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def ask(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        module = psycopg2()
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(query, values or None)
                return list(cursor.fetchall()) if cursor.description is not None else []
        except (module.OperationalError, module.InterfaceError) as error:
            raise lost(error) from error
        except module.Error as error:
            if self.connection.closed:
                raise lost(error) from error
            raise refused(error, query, self._settings) from error

    # --- what pgoutput leaves out ----------------------------------------------------------------------------

    def type(self, oid: int) -> PostgresType:
        """A type, kept from then on: an oid is not used again while a column has it."""
        if oid not in self._types:
            self._types[oid] = self._read_type(oid)
        return self._types[oid]

    def _read_type(self, oid: int) -> PostgresType:
        rows = self.ask(
            "SELECT typname, typtype, typcategory, typelem, typbasetype, typtypmod,"
            " ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder)"
            " FROM pg_type t WHERE oid = %s",
            (oid,),
        )
        if not rows:
            return PostgresType(oid, f"oid {oid}")
        name, kind, category, element, base, typmod, labels = rows[0]
        return PostgresType(
            oid,
            name,
            kind,
            self.type(int(element)) if category == "A" else None,
            self.type(int(base)) if kind == "d" else None,
            typmod,
            tuple(labels),
        )

    def table(self, schema: str, table: str) -> TableFacts:
        """A table's constraints, as they are now. Types of users are read again: an enumeration may have new labels."""
        self._types = {oid: found for oid, found in self._types.items() if oid < _FIRST_OF_USERS}
        columns = self.ask(
            "SELECT a.attname, a.attnotnull, pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a"
            " JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
            " LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = ''"
            " WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped",
            (schema, table),
        )
        keys = (
            self.ask(
                "SELECT i.indisprimary, i.indexrelid, a.attname FROM pg_index i"
                " JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace,"
                " unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)"
                " JOIN pg_attribute a ON a.attrelid = %s::regclass AND a.attnum = k.attnum"
                " WHERE n.nspname = %s AND c.relname = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL"
                " AND i.indexprs IS NULL AND k.place <= i.indnkeyatts"
                " ORDER BY i.indisprimary DESC, i.indexrelid, k.place",
                (f"{quoted(schema)}.{quoted(table)}", schema, table),
            )
            if columns
            else []
        )
        first = keys[0][1] if keys else None
        constants = [(name, constant) for name, _, expression in columns if (constant := constant_of(expression))]
        return TableFacts(
            frozenset(name for name, not_null, _ in columns if not_null),
            tuple(name for _, index, name in keys if index == first),
            tuple(constants),
        )

    # --- publications and slots ------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, str]]:
        """(schema, table) of every table whose changes can be published, in order; of partitioned ones, the parts."""
        rows = self.ask(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname NOT LIKE 'pg\\_%%'"
            " AND n.nspname <> 'information_schema' ORDER BY 1, 2"
        )
        return [(schema, table) for schema, table in rows]

    def selected_tables(self) -> list[tuple[str, str]]:
        """Those that the connector is to read."""
        takes = self._settings.records.selection.takes_table
        return [(schema, table) for schema, table in self.tables() if takes(schema, table)]

    def columns(self, schema: str, table: str) -> list[RelationColumn]:
        """A table's columns as pgoutput describes them."""
        rows = self.ask(
            "SELECT attname, atttypid, atttypmod FROM pg_attribute WHERE attrelid = %s::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
            (f"{quoted(schema)}.{quoted(table)}",),
        )
        return [RelationColumn(False, name, int(oid), typmod) for name, oid, typmod in rows]

    def ensure_publication(self) -> None:
        """The publication, made or brought up to date as `publication.autocreate.mode` says."""
        name, mode = self._settings.publication, self._settings.publication_mode
        exists = self.ask("SELECT puballtables FROM pg_publication WHERE pubname = %s", (name,))
        if mode is PublicationMode.DISABLED:
            if not exists:
                raise ConnectError(
                    f"Publication {name} is not in database {self._settings.shown}, and"
                    f" publication.autocreate.mode is disabled. Run CREATE PUBLICATION {quoted(name)} FOR TABLE …"
                )
            return
        if mode is PublicationMode.FILTERED:
            tables = ", ".join(f"{quoted(schema)}.{quoted(table)}" for schema, table in self.selected_tables())
            if not tables:
                raise ConnectError(
                    "No table matches table.include.list, so that there is nothing to publish. Correct the list, or"
                    " make the tables first."
                )
            if not exists:
                self.ask(f"CREATE PUBLICATION {quoted(name)} FOR TABLE {tables}")
            elif not exists[0][0]:
                self.ask(f"ALTER PUBLICATION {quoted(name)} SET TABLE {tables}")
            return
        if not exists:
            whole = "" if mode is PublicationMode.NO_TABLES else " FOR ALL TABLES"
            self.ask(f"CREATE PUBLICATION {quoted(name)}{whole}")

    def slot(self) -> SlotFacts | None:
        """The connector's slot, None where it is not there. Raises `ConnectError` for another plugin's."""
        rows = self.ask(
            "SELECT plugin, database, active_pid, confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s",
            (self._settings.slot,),
        )
        if not rows:
            return None
        plugin, database, pid, flushed = rows[0]
        if plugin != "pgoutput" or database != self._settings.database:
            raise ConnectError(
                f"Replication slot {self._settings.slot} is of plugin {plugin} in database {database},"
                f" not of pgoutput in {self._settings.database}. Name another one with slot.name."
            )
        return SlotFacts(plugin, database, pid, lsn_number(flushed) if flushed else 0)

    def drop_slot(self) -> None:
        """Remove the slot, if it is there. A session that ends is waited for; a slot that one goes on reading stays."""
        for _ in range(_LOOKS_AT_READER):
            if not self.ask(_READ_BY, (self._settings.slot,)):
                break
            self.ask("SELECT pg_sleep(0.05)")
        self.ask(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active",
            (self._settings.slot,),
        )

    def end_reader(self) -> bool:
        """End the session of a worker that is gone, which still holds the slot: whether there was one."""
        return bool(
            self.ask(
                "SELECT pg_terminate_backend(a.pid) FROM pg_replication_slots s JOIN pg_stat_activity a"
                " ON a.pid = s.active_pid WHERE s.slot_name = %s AND a.application_name = %s"
                " AND a.usename = current_user",
                (self._settings.slot, f"tidelog connect {self._settings.slot}"),
            )
        )

    def check(self) -> None:
        """Raise `ConnectError` unless the server can replicate logically."""
        ((level,),) = self.ask("SHOW wal_level")
        if level != "logical":
            raise ConnectError(
                f"wal_level of the server of {self._settings.shown} is {level}: only with logical does its log"
                " hold rows. Run ALTER SYSTEM SET wal_level = logical, and restart the server."
            )


_LITERAL: Final = re.compile(r"'((?:[^']|'')*)'(?:::[\w\s.\"()\[\],]+)?$", re.DOTALL)
_NUMBER: Final = re.compile(r"\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w\s.()]+)?$")


def constant_of(expression: str | None) -> str | None:
    """The text of a default that is a constant; "0" of a sequence's next value, as Debezium has it; else None."""
    if not expression:
        return None
    if expression in ("true", "false"):
        return expression[0]
    if expression.startswith("nextval("):
        return "0"
    if match := _NUMBER.match(expression):
        return match[1]
    if match := _LITERAL.match(expression):
        return match[1].replace("''", "'")
    return None


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'
