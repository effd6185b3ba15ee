"""What Spark and Delta say when they refuse a write to a topic, with a sentence of tidelog's before it.

They know neither topics nor a way that works: Delta names a table feature, Spark names modes that a Python sink does
not have, and views fail over their plans. Delta itself puts classes of its own into PySpark's conversion of Java's
errors (`delta.exceptions.captured`), and so does this module: all that is refused in Python comes through there, be it
by SQL, by a DataFrame's writer or by `DeltaTable`. The condition and what Spark or Delta says stay.
"""

import re
from typing import Any, Final

from pyspark.errors.exceptions import captured
from pyspark.errors.exceptions.captured import CapturedException, UnknownException, UnsupportedOperationException

_ONLY_TIDELOG: Final = (
    "tidelog: only tidelog writes to a topic, which is a log: rows are appended, and no row is changed or deleted in"
    " place. Append with df.write.format('tidelog').options(lake=…, topic=…).mode('append').save(). Delete by offset"
    " with 'tidelog topic delete-records', by key with 'tidelog forget', by age with retention.ms."
)
_ONLY_APPEND: Final = (
    "tidelog: a batch write appends to its topic and needs .mode('append'); Spark's default, ErrorIfExists, and the"
    " other modes are for tables. Write with .mode('append')."
)

_OFFSET: Final = r"\(base_offset#\d+L \+ position#"  # what each plan of a topic's native view has
_ONLY_TIDELOGS: Final = (
    r'\[DELTA_UNSUPPORTED_FEATURES_FOR_WRITE\].* unsupported by Delta Lake "[^"]*": .*\btidelog\b',
    rf"\[DELTA_UNSUPPORTED_SOURCE\](?s:.*){_OFFSET}",
    rf"\[UNSUPPORTED_INSERT\.RDD_BASED\](?s:.*?)InsertIntoStatement Project \[.*{_OFFSET}",
    r"\[DELTA_CANNOT_RESOLVE_COLUMN\](?s:.*)\|-- base_offset: long (?s:.*)\|-- position: ",
    rf"\[MISSING_ATTRIBUTES\.\w+\](?s:.*)!Project \[.*{_OFFSET}",
    r"\[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY\].* on files: tidelog\b",
)
_SENTENCES: Final = (
    (re.compile("|".join(_ONLY_TIDELOGS)), _ONLY_TIDELOG),
    (re.compile(r'\[UNSUPPORTED_DATA_SOURCE_SAVE_MODE\] The data source "tidelog" '), _ONLY_APPEND),
)


def why_refused(said: str) -> str | None:
    """tidelog's sentence for what Spark or Delta says; None where it is no refusal of a write to a topic."""
    return next((sentence for pattern, sentence in _SENTENCES if pattern.search(said)), None)


def name_tidelog_first() -> None:
    """Have PySpark's errors of this process begin with tidelog's sentence where a topic is the reason. Idempotent."""
    convert = captured.convert_exception
    if getattr(convert, "names_tidelog", False):
        return

    def converted(e: Any) -> CapturedException:
        error = convert(e)
        said = str(getattr(error, "_desc", ""))
        sentence = why_refused(said)
        if sentence is None or said.startswith(sentence):
            return error
        if isinstance(error, UnknownException):
            # PySpark would raise Py4J's error in its place, which shows Java's stack and no sentence.
            error = UnsupportedOperationException(origin=e)
            said = error._desc
        error._desc = f"{sentence}\n{said}"
        return error

    converted.names_tidelog = True  # type: ignore[attr-defined]
    captured.convert_exception = converted
