"""Columns whose values outgrew the table's type: which, and what to do, before anything is cast."""

from collections.abc import Mapping, Sequence
from typing import Final

from tidelog.connect.connectors.delta.changes import KeyedChange
from tidelog.connect.data.errors import ConnectError

# Delta's whole numbers, by their names in a table's schema, and what SQL calls them.
_BITS: Final[Mapping[str, tuple[int, str]]] = {
    "byte": (8, "tinyint"), "short": (16, "smallint"), "integer": (32, "int"), "long": (64, "bigint"),
}  # fmt: skip


def check_growth(location: str, types: Mapping[str, str], changes: Sequence[KeyedChange]) -> None:
    """Raise `ConnectError` for a whole number that does not fit its column. `types`: Delta's, by the columns' names.

    deltalake can neither change a column's type nor write to a table whose columns were widened (`typeWidening`).
    """
    for name, kind in types.items():
        if kind not in _BITS:
            continue
        bits, known = _BITS[kind]
        half = 1 << (bits - 1)
        for change in changes:
            value = (change.values or change.key).get(name)
            if isinstance(value, int) and not -half <= value < half:
                raise ConnectError(
                    f"Column {name} of the table {location} is {known}, and the records have {value}: their type has"
                    f" grown to {_fitting(value)}. DeltaSink can't widen a column. Either rewrite the table once with"
                    f" Spark (df = spark.read.format('delta').load('{location}'); df.withColumn('{name}',"
                    f" df['{name}'].cast('bigint')).write.format('delta').mode('overwrite')"
                    f".option('overwriteSchema', 'true').save('{location}')), or use SparkDeltaSink with the table's"
                    " property delta.enableTypeWidening=true. Then restart the task."
                )


def _fitting(value: int) -> str:
    return next((known for bits, known in _BITS.values() if -(1 << bits - 1) <= value < 1 << bits - 1), "decimal")
