"""What people read when Spark refuses a job or fails in it: what happened, and what to do."""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame

from tidelog.commands.failures import JobFailedError, UsageProblemError
from tidelog.spark.jars import delta_package
from tidelog.spark.s3a import PACKAGES as S3A_PACKAGES

SPARK = "4.2.0"
# Formats that Spark knows and does not ship, and where they are.
CONNECTORS: Mapping[str, str] = {
    "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}",
    "delta": delta_package(),
    "avro": f"org.apache.spark:spark-avro_2.13:{SPARK}",
    "protobuf": f"org.apache.spark:spark-protobuf_2.13:{SPARK}",
}
# Packages of classes, and where they are.
CLASSES: Mapping[str, str] = {
    "io.delta.": CONNECTORS["delta"],
    "org.apache.spark.sql.delta.": CONNECTORS["delta"],
    "org.apache.spark.sql.kafka010.": CONNECTORS["kafka"],
    "org.apache.kafka.": CONNECTORS["kafka"],
    "org.apache.hadoop.fs.s3a.": S3A_PACKAGES[0],
}
# JDBC drivers by the second part of a URL (jdbc:postgresql:...), without versions, which are the database's matter.
DRIVERS: Mapping[str, str] = {
    "postgresql": "org.postgresql:postgresql",
    "mysql": "com.mysql:mysql-connector-j",
    "mariadb": "org.mariadb.jdbc:mariadb-java-client",
    "sqlserver": "com.microsoft.sqlserver:mssql-jdbc",
    "oracle": "com.oracle.database.jdbc:ojdbc11",
    "db2": "com.ibm.db2:jcc",
    "h2": "com.h2database:h2",
    "sqlite": "org.xerial:sqlite-jdbc",
    "snowflake": "net.snowflake:snowflake-jdbc",
    "clickhouse": "com.clickhouse:clickhouse-jdbc",
}

_SOURCE = re.compile(r"Failed to find (?:the )?data source: (\w[\w.\-]*?)\.(?:\s|$)")
_CLASS = re.compile(r"(?:ClassNotFoundException|NoClassDefFoundError): (?:Class )?([\w$]+(?:[./][\w$]+)+)")
_TIDELOG = re.compile(r"tidelog\.log\.errors\.\w+: (.+)")
_DATABASE = re.compile(r"[\w.]*SQL\w*Exception: (.+)")
# They print an error a first time: with its stack, and before the job can put it into words.
_NOISY = ("SQLQueryContextLogger", "py4j.clientserver")
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$", re.DOTALL)
_JAVA = re.compile(r"^(?:[a-z][\w]*\.)+[A-Z]\w*(?:Exception|Error): ")

_WHICH_MODE = "Say what becomes of what is there: --mode append adds to it, --mode overwrite replaces it."
# Parts of Spark's messages, whether the command line is wrong, and what to do about it.
_ADVICE: tuple[tuple[str, bool, str], ...] = (
    ("INVALID_UTF8_STRING", False, "A key or value is no text. Export it with --key-as binary or --value-as binary."),
    (
        "MALFORMED_RECORD_IN_PARSING",
        False,
        "A value is no JSON of that --schema. Correct the schema, or let such values be null: --on-bad-json null.",
    ),
    ("PATH_ALREADY_EXISTS", True, _WHICH_MODE),
    ("ErrorIfExists", True, _WHICH_MODE),
    ("does not support streamed reading", True, "Read it as one batch: --once, with --run where it may be repeated."),
    ("does not support streamed writing", True, "Write it as one batch (--once), or to another format."),
    (
        "Schema must be specified when creating a streaming source",
        True,
        "A stream of files needs --schema, since the files that are still to come can't be asked. Example: --schema"
        " 'id long, name string'.",
    ),
    ("UNABLE_TO_INFER_SCHEMA", True, "There are no such files to learn the columns from. Check --load, or --schema."),
    ("PATH_NOT_FOUND", False, "Check --load, or wait until there is something."),
    ("TABLE_OR_VIEW_NOT_FOUND", True, "Check --table and --query; what --from loads is called 'source' in --query."),
    ("Option 'url' is required", True, "Say which database: --option url=jdbc:postgresql://host/name."),
    ("Option 'dbtable' or 'query' is required", True, "Say which table: --option dbtable=orders."),
)


@contextmanager
def spark_failures_told(options: Mapping[str, str]) -> Iterator[None]:
    """Turn Spark's errors into `UsageProblemError` and `JobFailedError`; `options` are the connector's."""
    noisy = [logging.getLogger(name) for name in _NOISY]
    levels = [logger.level for logger in noisy]
    for logger in noisy:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except (PySparkException, Py4JJavaError) as e:
        wrong = isinstance(e, AnalysisException | ParseException)
        usage, message = explained(str(e), options, wrong_usage=wrong)
        raise (UsageProblemError if usage else JobFailedError)(message) from e
    finally:
        for logger, level in zip(noisy, levels, strict=True):
            logger.setLevel(level)


def explained(text: str, options: Mapping[str, str], *, wrong_usage: bool) -> tuple[bool, str]:
    """Whether the command line is wrong, and what to say, by Spark's message. `wrong_usage`: unless a rule knows."""
    own = _TIDELOG.findall(text)
    if own:
        return False, str(own[-1]).strip()
    missing = _SOURCE.search(text)
    if missing:
        return True, unknown_format(missing.group(1))
    if "No suitable driver" in text:
        return True, _no_driver(options)
    lost = _CLASS.search(text)
    if lost:
        return True, missing_class(lost.group(1).replace("/", "."), options)
    refused = _DATABASE.search(text)
    if refused:
        return False, f"The database refused: {refused.group(1).strip()} Correct that, and start the job again."
    said = first_line(text)
    for part, usage, advice in _ADVICE:
        if part in text:
            return usage, f"{said} {advice}"
    return wrong_usage, f"{said} --debug shows where Spark said so."


def unknown_format(name: str) -> str:
    """What to do when Spark has no such format."""
    short = name.rpartition(".")[2].lower()
    if short in CONNECTORS:
        return (
            f"Spark comes without the connector for {short!r}. Fetch it: --packages {CONNECTORS[short]} (here, or for"
            " spark-submit)."
        )
    return (
        f"Spark knows no format {name!r}. It has csv, json, parquet, orc, text, xml, jdbc, tidelog and, with"
        f" --packages, {', '.join(CONNECTORS)} and those of other projects. Correct the name, or add the connector's"
        " --packages."
    )


def missing_class(name: str, options: Mapping[str, str]) -> str:
    """What to do when Spark has no such class: a JDBC driver is one that the options name as such."""
    if name in {value.strip() for key, value in options.items() if key.lower() == "driver"}:
        return _no_driver(options)
    package = next((known for prefix, known in CLASSES.items() if name.startswith(prefix)), None)
    fetch = f"--packages {package}" if package else "--packages with its coordinates, or --jars for spark-submit"
    return f"Spark has no class {name}: a jar is missing. Fetch it: {fetch}."


def first_line(text: str) -> str:
    """What Spark said, without its stack, the condition's name and the SQL state."""
    body = re.sub(r"^An error occurred while calling \S+\s*: ", "", text.strip())
    lines = [line.strip() for line in body.split("\n\tat ")[0].splitlines() if line.strip()]
    said = _JAVA.sub("", lines[0] if lines else "Spark failed without a word.")
    said = _STATE.sub("", _CONDITION.sub("", said)).strip()
    return said if said.endswith((".", "?", "!")) else f"{said}."


def wrong_columns(option: str, rows: DataFrame, error: Exception) -> UsageProblemError:
    """The refusal of an option's SQL over these rows."""
    return UsageProblemError(f"{option}: {first_line(str(error))} The columns are: {', '.join(rows.columns)}.")


def _no_driver(options: Mapping[str, str]) -> str:
    url = next((value for name, value in options.items() if name.lower() == "url"), "")
    database = url.partition(":")[2].partition(":")[0].lower()
    package = DRIVERS.get(database)
    fetch = (
        f"--packages {package}:VERSION, a version that fits your database"
        if package
        else "--packages with its coordinates, or --jars for spark-submit; --option driver=CLASS names its class"
    )
    return f"There is no JDBC driver for {url or 'this URL'}. Fetch it: {fetch}."
