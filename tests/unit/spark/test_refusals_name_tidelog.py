"""Which of Spark's and Delta's refusals get a sentence of tidelog's before them: those of writes to topics."""

import pytest

from tidelog.spark.refusals import why_refused

ONLY = "tidelog: only tidelog writes to a topic"
PROJECT = "Project [key#1, value#2, (base_offset#5L + position#6L) AS offset#7L]"
FEATURE = (
    "org.apache.spark.sql.delta.DeltaUnsupportedTableFeatureException: [DELTA_UNSUPPORTED_FEATURES_FOR_WRITE]"
    ' Unsupported Delta write feature: table "file:/{table}" requires writer table feature(s) that are unsupported'
    ' by Delta Lake "4.4.0": {feature}.'
)
MODE = (
    '[UNSUPPORTED_DATA_SOURCE_SAVE_MODE] The data source "{source}" cannot be written in the "Ignore" mode. Please use'
    ' either the "Append" or "Overwrite" mode instead. SQLSTATE: 0A000'
)


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        (FEATURE.format(table="lake/aa", feature="tidelog"), ONLY),
        (f"[STREAM_FAILED] Query: {FEATURE.format(table='aa', feature='tidelog')}", ONLY),
        (FEATURE.format(table="tidelog/aa", feature="icebergCompatV9"), None),
        (
            "[DELTA_UNSUPPORTED_SOURCE] DELETE destination only supports Delta sources.\n"
            f"Some(DeleteFromTable true\n+- SubqueryAlias tidelog.aa\n   +- {PROJECT}\n",
            ONLY,
        ),
        ("[DELTA_UNSUPPORTED_SOURCE] DELETE destination only supports Delta sources.\nRelation [a#1]", None),
        (f"[UNSUPPORTED_INSERT.RDD_BASED] Can't.\n'InsertIntoStatement {PROJECT}, false", ONLY),
        (f"[UNSUPPORTED_INSERT.RDD_BASED] Can't.\n'InsertIntoStatement LogicalRDD [a#1], false\n+- {PROJECT}", None),
        (
            "[DELTA_CANNOT_RESOLVE_COLUMN] Can't resolve column topic in root\n |-- partition: integer\n"
            " |-- base_offset: long (nullable = true)\n |-- position: long (nullable = true)\n",
            ONLY,
        ),
        ("[DELTA_CANNOT_RESOLVE_COLUMN] Can't resolve column a in root\n |-- b: long (nullable = true)\n", None),
        (
            '[MISSING_ATTRIBUTES.RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT] Resolved attribute(s) "key" missing'
            f" in operator !{PROJECT}.",
            ONLY,
        ),
        (
            "[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY] Unsupported data source type for direct query on files: tidelog",
            ONLY,
        ),
        (MODE.format(source="tidelog"), "tidelog: a batch write appends to its topic and needs .mode('append')"),
        (MODE.format(source="other"), None),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `tidelog`.`aa` cannot be found.", None),
    ],
)  # fmt: skip
def test_refused_writes_to_topics_and_nothing_else(said: str, begins: str | None) -> None:
    sentence = why_refused(said)
    assert sentence is None if begins is None else sentence is not None and sentence.startswith(begins)
