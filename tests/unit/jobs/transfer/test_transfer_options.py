"""Options of the jobs that move data, their results and refusals: no Spark."""

import json

import pytest

from tidelog.commands.failures import UsageProblemError
from tidelog.jobs.transfer.columns import (
    Forms,
    check_forms,
    check_partition_by,
    chosen,
    decoded,
)
from tidelog.jobs.transfer.jdbc import is_repeat, staging_table
from tidelog.jobs.transfer.options import Run, TransferOptions, When, interval_ms, with_default
from tidelog.jobs.transfer.report import Transferred, TransferReport, batch_in_words, total
from tidelog.jobs.transfer.spark_errors import explained, first_line
from tidelog.jobs.transfer.stream import offsets_of
from tidelog.log.base.errors import StaleBatchError


@pytest.mark.parametrize(
    ("given", "when"),
    [
        ({}, When("once", "", None, None)),
        ({"once": True, "run": "orders:7"}, When("once", "", None, Run("orders", 7))),
        ({"available_now": True, "checkpoint": "c"}, When("available-now", "c", None, None)),
        ({"stream": True, "checkpoint": "c", "every": "5m"}, When("stream", "c", 300_000, None)),
    ],
)
def test_when_a_job_runs(given, when):
    assert TransferOptions(**given).when() == when


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"once": True, "stream": True}, "--once and --stream exclude each other"),
        ({"stream": True}, "--stream needs --checkpoint"),
        ({"available_now": True, "checkpoint": " "}, "--available-now needs --checkpoint"),
        ({"checkpoint": "c"}, "Add --available-now"),
        ({"every": "5m"}, "Add --stream"),
        ({"available_now": True, "checkpoint": "c", "every": "5m"}, "Add --stream"),
        ({"stream": True, "checkpoint": "c", "every": "0s"}, "--every: '0s' is no interval"),
        ({"stream": True, "checkpoint": "c", "run": "a:1"}, "--run marks a batch"),
        ({"run": "orders"}, "NAME:NUMBER"),
        ({"run": "orders:-1"}, "NAME:NUMBER"),
    ],
)
def test_options_that_contradict_each_other(given, words):
    with pytest.raises(UsageProblemError) as error:
        TransferOptions(**given).when()
    assert words in str(error.value)


def test_small_rules():
    assert [interval_ms(text) for text in ("250ms", "10s", "2 h", "1d")] == [250, 10_000, 7_200_000, 86_400_000]
    assert TransferOptions(packages="a:b:1, c:d:2,").package_list == ("a:b:1", "c:d:2")
    assert with_default({"A": "1"}, "a", "2") == {"A": "1"}
    assert with_default({"b": "1"}, "a", "2", "B") == {"b": "1"}
    assert with_default({}, "a", "2") == {"a": "2"}


# --- the columns of an export ------------------------------------------------------------------------------

COORDINATES = ["topic", "partition", "offset", "timestamp"]
TEXT_KEY, TEXT_VALUE = (f"validate_utf8(CAST({c} AS STRING)) AS {c}" for c in ("key", "value"))
JSON = Forms(value="json", schema="id long, who string COMMENT 'a'")


@pytest.mark.parametrize(
    ("target", "forms", "columns"),
    [
        ("parquet", Forms(), [TEXT_KEY, TEXT_VALUE, *COORDINATES]),
        ("delta", Forms(key="binary", value="binary"), ["key AS key", "value AS value", *COORDINATES]),
        ("kafka", Forms(), ["key AS key", "value AS value", *COORDINATES, "headers"]),
        ("json", Forms(headers=True), [TEXT_KEY, TEXT_VALUE, *COORDINATES, "headers"]),
        (
            "csv",
            JSON,
            [
                TEXT_KEY,
                r"from_json(CAST(value AS STRING), 'id long, who string COMMENT \'a\'', map('mode', 'FAILFAST'))"
                " AS value",
                *COORDINATES,
            ],
        ),
    ],
)
def test_records_in_the_form_asked_for(target, forms, columns):
    assert decoded(target, forms) == columns


def test_bad_json_may_be_null():
    assert "'PERMISSIVE'" in decoded("csv", Forms(value="json", schema="a int", bad_json="null"))[1]


@pytest.mark.parametrize(
    ("target", "forms", "columns"),
    [
        ("parquet", Forms(), ["key", "value", *COORDINATES]),
        ("parquet", Forms(headers=True), ["key", "value", *COORDINATES, "headers"]),
        ("jdbc", JSON, ["value.*", "key", *COORDINATES]),
        ("kafka", Forms(), ["key", "value", "headers", "topic"]),
        ("tidelog", Forms(), ["key", "value", "headers", "topic", "timestamp"]),
        ("text", Forms(), ["value"]),
    ],
)
def test_what_is_written_unless_select_says_it(target, forms, columns):
    assert chosen(target, forms, ["id", "who"]) == columns


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_forms("csv", Forms(value="json"), False), "needs --schema"),
        (lambda: check_forms("csv", Forms(schema="a int"), False), "Add --value-as json"),
        (lambda: check_forms("kafka", JSON, False), "to_json(value) AS value"),
        (lambda: chosen("csv", JSON, ["id", "Offset"]), "--schema has a column 'Offset'"),
        (lambda: check_partition_by(["day"], ["key", "value"]), "these are: key, value"),
    ],
)
def test_forms_that_contradict_each_other(call, words):
    with pytest.raises(UsageProblemError) as error:
        call()
    assert words in str(error.value)
    check_forms("kafka", JSON, True)
    check_partition_by(["key"], ["key", "value"])


# --- what Spark says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "usage", "words"),
    [
        ("Failed to find data source: kafka. Please deploy", True, "--packages org.apache.spark:spark-sql-kafka-0-10"),
        (
            "An error occurred while calling o6.load.\n: org.apache.spark.SparkClassNotFoundException:"
            " [DATA_SOURCE_NOT_FOUND] Failed to find the data source: nope. Make sure",
            True,
            "Spark knows no format 'nope'",
        ),
        ("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: a.b.Cee. Make", True, "no format 'a.b.Cee'"),
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make",
            True,
            "--packages io.delta:delta-spark",
        ),
        ("java.sql.SQLException: No suitable driver\n\tat", True, "--packages org.postgresql:postgresql:VERSION"),
        (
            "java.lang.ClassNotFoundException: org.acme.Driver\n\tat x.y(Z.scala:1)",
            True,
            "There is no JDBC driver for jdbc:postgresql://h/d.",
        ),
        (
            "Cannot find catalog plugin class for catalog 'spark_catalog'.\nCaused by: java.lang."
            "ClassNotFoundException: org.apache.spark.sql.delta.catalog.DeltaCatalog\n\tat",
            True,
            "Spark has no class org.apache.spark.sql.delta.catalog.DeltaCatalog: a jar is missing. Fetch it: --packages"
            " io.delta:delta-spark",
        ),
        (
            "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem"
            " not found\n\tat",
            True,
            "--packages org.apache.hadoop:hadoop-aws:",
        ),
        ("java.lang.NoClassDefFoundError: org/acme/Widget\n\tat", True, "Spark has no class org.acme.Widget: a jar"),
        (
            "[X] a\n: java.sql.SQLIntegrityException: No NULL here.\n\tat y",
            False,
            "The database refused: No NULL here.",
        ),
        ("[INVALID_UTF8_STRING] Invalid UTF8 byte sequence found in string: x. SQLSTATE: 22029", False, "--value-as"),
        ("[MALFORMED_RECORD_IN_PARSING] Malformed records are detected. SQLSTATE: 2", False, "--on-bad-json null"),
        ("[PATH_ALREADY_EXISTS] Path x already exists.", True, "--mode append"),
        ("Data source jdbc does not support streamed reading", True, "--once"),
        (
            "x\n  tidelog.log.errors.StaleBatchError: Topic 't' has already.\n\tat y",
            False,
            "Topic 't' has already.",
        ),
        ("java.lang.IllegalStateException: Something else\n\tat x.y(Z.scala:1)", False, "Something else. --debug"),
    ],
)
def test_sparks_words_become_advice(text, usage, words):
    found, message = explained(text, {"URL": "jdbc:postgresql://h/d", "Driver": "org.acme.Driver"}, wrong_usage=False)
    assert (found, words in message) == (usage, True), message
    assert ("JDBC" in message) == ("river" in text)  # nothing else is reported as a missing driver
    assert "SQLSTATE" not in message
    assert "\tat" not in message


def test_other_errors_count_as_what_spark_takes_them_for():
    assert explained("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column.", {}, wrong_usage=True)[0]
    assert first_line("\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 1)\n\n== SQL ==") == (
        "Syntax error at or near 'x'."
    )


# --- databases ---------------------------------------------------------------------------------------------


def test_the_staging_table_lies_beside_its_table():
    assert staging_table("shop.orders", "q").startswith("shop.orders_tidelog_")
    assert staging_table('"Shop"."Orders"', "q").startswith('"Shop"."Orders_tidelog_')
    assert staging_table('"Shop"."Orders"', "q").endswith('"')
    assert staging_table("orders", "q") != staging_table("orders", "r")


def test_a_batch_counts_once():
    assert [is_repeat("t", seen, 3) for seen in (None, 2, 3)] == [False, False, True]
    with pytest.raises(StaleBatchError, match="has already taken batch 4"):
        is_repeat("t", 4, 3)


# --- reports -----------------------------------------------------------------------------------------------


def test_steps_add_up():
    steps = [{("t", 0): Transferred(0, 4, 4, 100)}, {("t", 1): Transferred(7, 8)}, {("t", 0): Transferred(6, 7, 1, 50)}]
    assert total(steps) == {("t", 0): Transferred(0, 7, 5, 150), ("t", 1): Transferred(7, 8)}


def test_a_report_as_json_and_in_words():
    report = TransferReport(
        "export", "file:///l", "topic 't'", "delta d", {("t", 0): Transferred(2, 5)}, 3, 2048, 1.23456, 1, "q"
    )
    assert json.loads(json.dumps(report.as_json())) == {
        "job": "export",
        "lake": "file:///l",
        "from": "topic 't'",
        "to": "delta d",
        "records": 3,
        "bytes": 2048,
        "seconds": 1.235,
        "batches": 1,
        "query_id": "q",
        "repeated": False,
        "partitions": [{"topic": "t", "partition": 0, "from": 2, "to": 5, "records": None, "bytes": None}],
    }
    assert report.in_words() == "3 records, 2.0 KiB, from topic 't' to delta d in 1 batch, 1.2 s"
    assert batch_in_words(3, report.partitions) == "3 records: t 0 [2, 5)"


def test_offsets_as_spark_tells_them():
    assert offsets_of('{"t": {"0": 5, "11": 2}}') == {("t", 0): 5, ("t", 11): 2}
    assert offsets_of("null") == offsets_of(None) == {}
