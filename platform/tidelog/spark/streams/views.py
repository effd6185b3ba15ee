"""An application's tables from outside: SQL views of the newest value of each key."""

from collections.abc import Mapping
from contextlib import nullcontext
from os import PathLike
from typing import Any

import orjson
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import DataType, StructType

import tidelog.spark
from tidelog.log.base.errors import InvalidOptionError, ObjectNotFoundError
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.lake import Lake
from tidelog.spark.streams.serdes import Serde, serde_of

# In an application's folder: its tables, their topics and the types of their keys and values.
TABLES_FILE = "tables.json"


def described(topic: str, key: DataType, value: DataType) -> dict[str, Any]:
    """A table as the file has it."""
    return {"topic": topic, "type": StructType().add("key", key).add("value", value).jsonValue()}


@shallow
def create_view(
    spark: SparkSession,
    lake: str | PathLike[str] | Lake,
    application_id: str,
    table: str,
    name: str | None = None,
    *,
    key: Serde | None = None,
    value: Serde | None = None,
    state_dir: str = "__streams",
) -> str:
    """Make an application's table a temporary view for SQL, named `name` or as the table with `_` for `.` and `-`.

    It has a row for each key: `key`, `value`, `timestamp`, as of the newest batch that the application has written by
    the time of a query. `key`, `value`: the serdes that the table was given, where it was given any. The application
    need not run, and may run elsewhere. Returns the view's name. Raises `InvalidOptionError` for an unknown table.
    """
    with nullcontext(lake) if isinstance(lake, Lake) else Lake(lake, create=False) as opened:
        tables = _tables(opened, f"{state_dir}/{application_id}/{TABLES_FILE}")
        if table not in tables:
            known = ", ".join(sorted(tables)) or "none"
            raise InvalidOptionError(
                f"Application '{application_id}' has no table '{table}': it has {known}. A table is kept where its"
                " topology names it, as count('words')."
            )
        rows = tidelog.spark.read_topic(spark, opened, tables[table]["topic"])
    kind = StructType.fromJson(tables[table]["type"])
    newest = F.max_by(F.struct("value", "timestamp"), "offset").alias("newest")
    rows = rows.groupBy("partition", "key").agg(newest).where("newest.value IS NOT NULL")
    rows = rows.select("key", "newest.value", "newest.timestamp")
    for column, given in (("key", key), ("value", value)):
        rows = (given or serde_of(kind[column].dataType)).decode(rows, column)
    view = name or table.replace(".", "_").replace("-", "_")
    rows.select("key", "value", "timestamp").createOrReplaceTempView(view)
    return view


def _tables(lake: Lake, path: str) -> Mapping[str, Any]:
    try:
        document: Mapping[str, Any] = orjson.loads(lake.storage.get(path))
    except ObjectNotFoundError:
        return {}
    return document
