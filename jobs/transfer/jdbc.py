"""A stream into a database, each batch exactly once: rows and progress change in one transaction of the database.

Spark's tasks write a batch to a staging table, each in a transaction of its own and perhaps more than once. Then the
driver copies it to its table and notes the batch's number, in one transaction. A batch that runs again is skipped by
that number.
"""

import hashlib
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.errors import StaleBatchError

PROGRESS = "tidelog_exports"
# Types that every database knows.
_CREATE = f"CREATE TABLE {PROGRESS} (query_id VARCHAR(64) NOT NULL PRIMARY KEY, batch_id NUMERIC(18) NOT NULL)"
_CLOSING_QUOTES = '"`]'


def check_jdbc(options: Mapping[str, str]) -> None:
    """Refuse options without a database or a table. Raises `UsageProblemError`."""
    given = {name.lower() for name in options}
    for name, example in (("url", "jdbc:postgresql://host/shop"), ("dbtable", "orders")):
        if name not in given:
            raise UsageProblemError(f"--to jdbc needs --option {name}=…, such as --option {name}={example}.")


def staging_table(table: str, query_id: str) -> str:
    """The staging table's name, beside its table: one for each query. A quoted name stays quoted."""
    suffix = f"_tidelog_{hashlib.sha256(query_id.encode()).hexdigest()[:8]}"
    return table[:-1] + suffix + table[-1] if table[-1:] in _CLOSING_QUOTES else table + suffix


def is_repeat(table: str, seen: int | None, batch_id: int) -> bool:
    """Whether a batch is in the table already. Raises `StaleBatchError` when later ones are."""
    if seen is None or batch_id > seen:
        return False
    if batch_id == seen:
        return True
    raise StaleBatchError(
        f"Table {table} has already taken batch {seen} of this stream, and now gets batch {batch_id}: the job runs from"
        " a copied or restored checkpoint, and its batches would be lost or doubled. Start it with a new --checkpoint."
    )


class JdbcSink:
    """Writes a query's batches to one table; call `write` from foreachBatch."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._options = {name: value for name, value in options.items() if name.lower() != "dbtable"}
        self._table = next(value for name, value in options.items() if name.lower() == "dbtable")

    def prepare(self, rows: DataFrame) -> None:
        """Create the table, with the columns of `rows`, and the table of progress, where they are missing."""
        empty = self._spark.createDataFrame([], rows.schema)
        empty.write.format("jdbc").options(**self._options).option("dbtable", self._table).mode("append").save()
        connection, _ = self._connect()
        with closing(connection):
            if not self._exists(connection, PROGRESS):
                connection.setAutoCommit(True)
                _run(connection, _CREATE)

    def write(self, rows: DataFrame, query_id: str, batch_id: int) -> None:
        """Write a batch; one that is there already is left out."""
        connection, _ = self._connect()
        with closing(connection):
            if is_repeat(self._table, _progress(connection, query_id), batch_id):
                return
        staging = staging_table(self._table, query_id)
        rows.write.format("jdbc").options(**self._options).option("dbtable", staging).mode("overwrite").save()
        connection, dialect = self._connect()
        with closing(connection):
            connection.setAutoCommit(False)
            columns = ", ".join(dialect.quoteIdentifier(name) for name in rows.columns)
            try:
                # The progress first: another run of this query waits for that row, and then fails.
                if not is_repeat(self._table, _progress(connection, query_id), batch_id):
                    _note(connection, query_id, batch_id)
                    copy = f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM {staging}"  # noqa: S608
                    _run(connection, copy)
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            connection.setAutoCommit(True)
            _run(connection, f"DROP TABLE {staging}")

    def _connect(self) -> tuple[Any, Any]:
        """A connection of the driver's, by Spark's own dialect and driver, and the dialect."""
        jvm: Any = self._spark._jvm
        jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc
        options = jdbc.JDBCOptions(self._scala({**self._options, "dbtable": self._table}))
        dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options.url())
        return dialect.createConnectionFactory(options).apply(-1), dialect

    def _exists(self, connection: Any, table: str) -> bool:
        jvm: Any = self._spark._jvm
        jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc
        options = jdbc.JdbcOptionsInWrite(self._scala({**self._options, "dbtable": table}))
        return bool(jdbc.JdbcUtils.tableExists(connection, options))

    def _scala(self, options: Mapping[str, str]) -> Any:
        jvm: Any = self._spark._jvm
        java_map = jvm.java.util.HashMap()
        for name, value in options.items():
            java_map.put(name, value)
        return jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java_map)


def _progress(connection: Any, query_id: str) -> int | None:
    select = f"SELECT batch_id FROM {PROGRESS} WHERE query_id = ?"  # noqa: S608
    with closing(connection.prepareStatement(select)) as statement:
        statement.setString(1, query_id)
        rows = statement.executeQuery()
        return int(rows.getLong(1)) if rows.next() else None


def _note(connection: Any, query_id: str, batch_id: int) -> None:
    """Note a batch; fails on the row's key when another run has noted it, or a later one."""
    newer = f"UPDATE {PROGRESS} SET batch_id = ? WHERE query_id = ? AND batch_id < ?"  # noqa: S608
    if not _run(connection, newer, batch_id, query_id, batch_id):
        _run(connection, f"INSERT INTO {PROGRESS} (batch_id, query_id) VALUES (?, ?)", batch_id, query_id)  # noqa: S608


def _run(connection: Any, sql: str, *values: int | str) -> int:
    """Run a statement; how many rows it changed."""
    with closing(connection.prepareStatement(sql)) as statement:
        for at, value in enumerate(values, 1):
            if isinstance(value, int):
                statement.setLong(at, value)
            else:
                statement.setString(at, value)
        return int(statement.executeUpdate())
