"""The columns of a typed topic's segments, for `check --deep`: what may be null beside what, and derived values."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.delta import schema
from tidelog.log.typed.placing import is_within, placed
from tidelog.log.typed.value_typing import VALUE_LENGTH, VALUE_SCHEMA, Typing

_PLAIN = len(schema.SEGMENT)


def schema_problem(file_schema: pa.Schema, typing: Typing | None) -> str:
    """What is wrong with a file's columns; "" when they are right, or were before the table got its later ones."""
    wanted = schema.SEGMENT if typing is None or len(file_schema) == _PLAIN else typing.segment
    names = wanted.names[: max(len(file_schema), _PLAIN + len(schema.TYPED))]
    if file_schema.names != names:
        return f"its columns are {', '.join(file_schema.names)}, not {', '.join(names)}."
    for name in names:
        kind, known = file_schema.field(name).type, wanted.field(name).type
        if kind != known and (name != schema.COLUMNS or not is_within(kind, known)):
            return f"its column {name} is {kind}, not {known}."
    return ""


def value_problems(batch: pa.RecordBatch, typing: Typing | None) -> Iterator[str]:
    """What is wrong with a batch's values and their columns, one phrase each. Columns as the file has them."""
    if typing is None or VALUE_LENGTH not in batch.schema.names:
        return
    count = batch.num_rows
    stored, ids, derived = (_there(batch.column(name)) for name in ("value", VALUE_SCHEMA, VALUE_LENGTH))
    columns = batch.column(schema.COLUMNS) if schema.COLUMNS in batch.schema.names else None
    made = np.zeros(count, np.bool_) if columns is None else _there(columns)
    for what, wrong in (
        ("a value_length beside a value", derived & stored),
        ("a value_length without columns to derive the value of", derived & ~made),
        ("columns without the id of their schema", made & ~ids),
        ("a value_schema without columns", ids & ~made),
        ("columns without a value", made & ~stored & ~derived),
    ):
        if wrong.any():
            yield f"{int(wrong.sum())} records have {what}"
    unknown = set(batch.column(VALUE_SCHEMA).drop_null().unique().to_pylist()) - set(typing.writers)
    if unknown:
        yield f"the table knows no schema {', '.join(map(str, sorted(unknown)))}"
    elif columns is not None and (derived & made & ids).any():
        known = columns if typing.columns is None else placed(columns, typing.columns)
        try:
            typing.bytes_of(batch.column("value"), batch.column(VALUE_SCHEMA), batch.column(VALUE_LENGTH), known)
        except ValueError as e:
            yield str(e)


def _there(column: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return found
