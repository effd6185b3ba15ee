"""Settings of Spark sessions that several modules name."""

from collections.abc import Mapping
from typing import Final

# Whether Spark's Parquet scan checks the checksums of pages. The session alone says so: to a reader it is no option.
VERIFY_PAGES: Final = "parquet.page.verify-checksum.enabled"
# What makes a session quick on small topics. What the caller, spark-submit or spark-defaults.conf says goes over it.
SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    VERIFY_PAGES: "true",
    # Delta replays a table's log with this many tasks; 50 by default, for tables of millions of files.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Over columnar input, Spark 4.2.0 turns what a UDF by Arrow gives into rows, columns and rows again, and a Python
    # UDF by Arrow over Parquet may wait for ever.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# The database of global temporary views, which a session has from its start.
DATABASE_KEY: Final = "spark.sql.globalTempDatabase"
