"""Connectors of others that a configuration may name, and which of the worker's own comes nearest to each."""

from collections.abc import Iterable, Mapping
from typing import Final

from tidelog.connect.spi.connectors import Connector
from tidelog.log.base.typed_values import nearest

_JDBC_SOURCE: Final = "JdbcSource"
_JDBC_SINK: Final = "JdbcSinkConnector"
_POLLS: Final = "it asks tables for new rows by a column (mode=timestamp+incrementing), and sees no deletes"
_NO_DIALECT: Final = "its databases are PostgreSQL, MySQL and SQLite"
# (the nearest connector, what is other there) by Debezium's classes, without `io.debezium.connector.`.
_DEBEZIUM: Final[Mapping[str, tuple[str, str]]] = {
    "mysql.MySqlConnector": (_JDBC_SOURCE, _POLLS),
    "mariadb.MariaDbConnector": (_JDBC_SOURCE, _POLLS),
    "oracle.OracleConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "sqlserver.SqlServerConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "db2.Db2Connector": (_JDBC_SOURCE, _NO_DIALECT),
    "db2as400.As400RpcConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "informix.InformixConnector": (_JDBC_SOURCE, _NO_DIALECT),
    "vitess.VitessConnector": (_JDBC_SOURCE, _POLLS),
    "jdbc.JdbcSinkConnector": (_JDBC_SINK, "its keys are Confluent's: pk.mode, pk.fields, insert.mode, auto.create"),
}
_PACKAGE: Final = "io.debezium.connector."
_AS_BEFORE: Final = " A Debezium that runs elsewhere can go on: it writes through a broker of the lake, as into Kafka."


def nearest_to(wanted: str, known: Iterable[type[Connector]]) -> str:
    """What to say of a name that no connector has: " …" or ""."""
    plugins = list(known)
    if wanted.startswith(_PACKAGE):
        found = _DEBEZIUM.get(wanted.removeprefix(_PACKAGE))
        if found is not None and any(found[0] in {_last(full) for full in one.names} for one in plugins):
            return f" The nearest is {found[0]}: {found[1]}.{_AS_BEFORE}"
    names = {_last(full): one for one in plugins for full in one.names}
    close = nearest(_last(wanted), names)
    said = f" The nearest is {names[close].names[0]}." if close else ""
    return said + (_AS_BEFORE if wanted.startswith(_PACKAGE) else "")


def _last(name: str) -> str:
    return name.rpartition(".")[2]
