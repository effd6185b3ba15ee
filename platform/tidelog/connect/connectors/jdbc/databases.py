"""Databases by Connect's keys: addresses in JDBC's form or SQLAlchemy's, engines in UTC, and names of tables."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine, make_url

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FILLED, SECRET, TEXT, ConnectConfigError, as_written, read_as
from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import names
from tidelog.log.config.key_type import int_of

# SQLAlchemy's names of the databases that JDBC addresses name.
_DRIVERS: Final[Mapping[str, str]] = {
    "postgresql": "postgresql+psycopg2", "sqlite": "sqlite", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql",
    "redshift": "postgresql+psycopg2",
}  # fmt: skip
# The same by the names of Confluent's dialects.
_DIALECTS: Final[Mapping[str, str]] = {
    "PostgreSqlDatabaseDialect": "postgresql+psycopg2", "SqliteDatabaseDialect": "sqlite",
    "MySqlDatabaseDialect": "mysql+pymysql",
}  # fmt: skip
_NEVER: Final = "never"


def database_url(text: str) -> URL:
    """The address of a database, of `jdbc:postgresql://host:5432/db?user=u`, `jdbc:sqlite:file` or SQLAlchemy's form.

    Raises `ValueError` for one that is neither.
    """
    try:
        if not text.startswith("jdbc:"):
            return make_url(text)
        kind, separator, rest = text.removeprefix("jdbc:").partition(":")
        if not separator or kind not in _DRIVERS:
            raise ValueError(
                f"no driver for {text!r}: give one of jdbc:{', jdbc:'.join(_DRIVERS)}, or SQLAlchemy's form"
            )
        if kind == "sqlite":
            return URL.create("sqlite", database=rest or None)
        url = make_url(f"{_DRIVERS[kind]}:{rest}")
        user, password = (url.query.get(name) for name in ("user", "password"))
        url = url.difference_update_query(["user", "password"])
        return url.set(username=_one(user) or url.username, password=_one(password) or url.password)
    except sa.exc.ArgumentError as error:
        raise ValueError(str(error)) from None


def _one(value: tuple[str, ...] | str | None) -> str | None:
    return value[0] if isinstance(value, tuple) else value


def with_connection_keys(definition: ConfigDef) -> ConfigDef:
    """Add the keys that source and sink have in common."""
    return (
        definition.define(
            "connection.url", read_as(database_url, FILLED), REQUIRED, Importance.HIGH,
            "jdbc:postgresql://host:port/database, jdbc:sqlite:path, or an address of SQLAlchemy's.",
            group="Database",
        )
        .define("connection.user", TEXT, None, Importance.HIGH, "The user.", group="Database")
        .define("connection.password", SECRET, None, Importance.HIGH, "The password.", group="Database")
        .define(
            "connection.attempts", int_of(1), 3, Importance.LOW,
            "How often a connection is tried before the worker waits.", group="Database",
        )
        .define(
            "dialect.name", names("", *_DIALECTS), "", Importance.LOW,
            "Which database it is, where connection.url doesn't say it: " + ", ".join(_DIALECTS) + ".",
            group="Database",
        )
        .define(
            "db.timezone", read_as(time_zone), "UTC", Importance.MEDIUM,
            "The time zone of columns with times that have none, such as Europe/Berlin.", group="Database",
        )
        .define(
            "quote.sql.identifiers", as_written("always", _NEVER), "always", Importance.MEDIUM,
            "Whether names of tables and columns are quoted: always, or never, so that case says nothing.",
            group="Database",
        )
    )  # fmt: skip


def time_zone(name: str) -> ZoneInfo:
    """The time zone of a name. Raises `ValueError` for one that is not known here."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"no time zone is called {name}: {error}") from None


def _unquoted(values: Mapping[str, Any]) -> bool:
    """Whether names are as SQL has them without quotes: their case says nothing."""
    return str(values["quote.sql.identifiers"]).lower() == _NEVER


def same_names(values: Mapping[str, Any]) -> Callable[[str, str], bool]:
    """Whether two names are one."""
    return (lambda one, other: one.lower() == other.lower()) if _unquoted(values) else operator.eq


def written_name(name: str, values: Mapping[str, Any], dialect: str) -> str:
    """A name as a database has it: PostgreSQL has those without quotes in small letters."""
    return name.lower() if _unquoted(values) and dialect == "postgresql" else name


def engine_of(values: Mapping[str, Any]) -> Engine:
    """An engine whose sessions have UTC as their time zone. Raises `ConnectConfigError` where a driver is missing."""
    url = database_url(values["connection.url"])
    if values["connection.user"] is not None:
        url = url.set(username=values["connection.user"])
    if values["connection.password"] is not None:
        url = url.set(password=values["connection.password"].text)
    if values["dialect.name"]:
        url = url.set(drivername=_DIALECTS[values["dialect.name"]])
    options: dict[str, Any] = {"pool_pre_ping": True}
    if url.get_backend_name() == "postgresql":
        options["connect_args"] = {"options": "-c timezone=UTC"}
    try:
        engine = sa.create_engine(url, **options)
    except (ImportError, sa.exc.ArgumentError) as error:
        raise ConnectConfigError(
            f"connection.url names a database without a driver here: {error}. Install it."
        ) from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _without_own_transactions)
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _without_own_transactions(connection: Any, _: Any) -> None:
    """Python's driver begins transactions late, so that savepoints would commit; the engine begins them instead."""
    connection.isolation_level = None


def checked_connection(engine: Engine, attempts: int) -> None:
    """Connect once. Raises `ConnectError` where the last of that number of attempts fails."""
    for attempt in range(attempts):
        try:
            with engine.connect():
                return
        except sa.exc.DBAPIError as error:
            if attempt == attempts - 1:
                raise ConnectError(
                    f"The database {engine.url.render_as_string()} doesn't answer: {error.orig}. Correct "
                    "connection.url, "
                    "connection.user and connection.password, or start it."
                ) from error


# Of a statement, in an error.
_MOST_SHOWN: Final = 500


def failure_of(error: sa.exc.DBAPIError, doing: str) -> ConnectError:
    """What a failed statement means: lost connections and conflicts are worth another try, others are not."""
    kind = RetriableConnectError if is_passing(error) else ConnectError
    return kind(f"The database refused {doing}: {refusal_of(error)}")


def refusal_of(error: sa.exc.DBAPIError) -> str:
    """What the driver says, the table and column where the server names them, and the statement without its values."""
    found = getattr(error.orig, "diag", None)
    parts = (getattr(found, name, None) for name in ("schema_name", "table_name", "column_name"))
    where = ".".join(one for one in parts if one)
    statement = " ".join((error.statement or "").split())[:_MOST_SHOWN]
    return (
        f"{str(error.orig).strip().rstrip('.')}.{f' It is about {where}.' if where else ''}"
        f"{f' Statement: {statement}' if statement else ''}"
    )


def is_passing(error: sa.exc.DBAPIError) -> bool:
    """Whether the same statement may succeed later: connections, locks, deadlocks, serialization."""
    code = str(getattr(error.orig, "pgcode", None) or "")
    if code:
        return code[:2] in ("08", "40", "53", "55", "57")
    return error.connection_invalidated or isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
