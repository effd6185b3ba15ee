"""Databases by Connect's keys: addresses in JDBC's form or SQLAlchemy's, and engines in UTC."""

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine, make_url

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance
from tidelog.connect.config.validators import all_of, between, non_empty, read_by
from tidelog.connect.config.values import ConfigKind, ConnectConfigError
from tidelog.connect.data.errors import ConnectError, RetriableConnectError

# SQLAlchemy's names of the databases that JDBC addresses name.
_DRIVERS: Final[Mapping[str, str]] = {
    "postgresql": "postgresql+psycopg2", "sqlite": "sqlite", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql",
    "redshift": "postgresql+psycopg2",
}  # fmt: skip


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
            "connection.url", ConfigKind.STRING, REQUIRED, Importance.HIGH,
            "jdbc:postgresql://host:port/database, jdbc:sqlite:path, or an address of SQLAlchemy's.",
            group="Database", validator=all_of(non_empty, read_by(database_url)),
        )
        .define("connection.user", ConfigKind.STRING, None, Importance.HIGH, "The user.", group="Database")
        .define("connection.password", ConfigKind.PASSWORD, None, Importance.HIGH, "The password.", group="Database")
        .define(
            "connection.attempts", ConfigKind.INT, 3, Importance.LOW,
            "How often a connection is tried before the worker waits.", group="Database", validator=between(1),
        )
    )  # fmt: skip


def engine_of(values: Mapping[str, Any]) -> Engine:
    """An engine whose sessions have UTC as their time zone. Raises `ConnectConfigError` where a driver is missing."""
    url = database_url(values["connection.url"])
    if values["connection.user"] is not None:
        url = url.set(username=values["connection.user"])
    if values["connection.password"] is not None:
        url = url.set(password=values["connection.password"].text)
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


def failure_of(error: sa.exc.DBAPIError, doing: str) -> ConnectError:
    """What a failed statement means: lost connections and conflicts are worth another try, others are not."""
    kind = RetriableConnectError if is_passing(error) else ConnectError
    return kind(f"The database refused {doing}: {error.orig}.")


def is_passing(error: sa.exc.DBAPIError) -> bool:
    """Whether the same statement may succeed later: connections, locks, deadlocks, serialization."""
    code = str(getattr(error.orig, "pgcode", None) or "")
    if code:
        return code[:2] in ("08", "40", "53", "55", "57")
    return error.connection_invalidated or isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
