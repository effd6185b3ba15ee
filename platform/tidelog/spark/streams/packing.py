"""Python functions with state, and values on their way to them and back: each as bytes of its own.

Pandas knows no whole number that may be null and takes it for a float, so values are handed over as Python's pickles.
Texts and bytes are handed over as they are: Spark makes them without Python, which saves most of a small batch's time.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.serializers import CPickleSerializer
from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import BinaryType, DataType, StringType

from tidelog.spark.typed_rows import on_arrow

Run = Callable[[tuple[Any, ...], Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]

_pickles = CPickleSerializer()


def dumped(value: Any) -> bytes | None:
    """A value as bytes; None for None."""
    return None if value is None else bytes(_pickles.dumps(value))  # type: ignore[no-untyped-call]


def loaded(data: bytes | bytearray | None) -> Any:
    """The value of bytes."""
    return None if data is None else _pickles.loads(bytes(data))  # type: ignore[no-untyped-call]


def as_bytes(value: bytes | bytearray | None) -> bytes | None:
    """Bytes, whatever Spark holds them in."""
    return None if value is None else bytes(value)


def dumper(kind: DataType) -> Callable[[Any], bytes | None]:
    """What makes bytes of a type's values, as `packed` does."""
    if isinstance(kind, StringType):
        return lambda value: None if value is None else str.encode(value)
    return as_bytes if isinstance(kind, BinaryType) else dumped


def loader(kind: DataType) -> Callable[[bytes | bytearray | None], Any]:
    """What makes a type's values of bytes, as `unpacked` does."""
    if isinstance(kind, StringType):
        return lambda data: None if data is None else data.decode()
    return as_bytes if isinstance(kind, BinaryType) else loaded


def packed(column: Column, kind: DataType) -> Column:
    """Each value of a type as bytes; null for null."""
    if isinstance(kind, StringType | BinaryType):
        return column.cast(BinaryType())

    def pack(values: pa.Array) -> pa.Array:
        return pa.array([dumped(one) for one in values.to_pylist()], pa.binary())

    return on_arrow(pack, BinaryType(), column)


def unpacked(column: Column, kind: DataType) -> Column:
    """Bytes as values of a type."""
    if isinstance(kind, StringType | BinaryType):
        return column.cast(kind)
    arrow = to_arrow_type(kind, timezone="UTC")

    def unpack(data: pa.Array) -> pa.Array:
        return pa.array([loaded(one) for one in data.to_pylist()], arrow)

    return on_arrow(unpack, kind, column)


def with_state(groups: GroupedData, run: Run, gives: str, state: str, timeout: str = "") -> DataFrame:
    """What a function gives for each group of a batch, with a state for each that it keeps.

    Spark 4.2.0 gives every row of such a function in one and the same object, which a Python function that comes next
    refuses or reads too late. Where a column is left out the rows are copied: so there is one to leave out.
    """

    def work(group: tuple[Any, ...], frames: Iterator[pd.DataFrame], known: GroupState) -> Iterator[pd.DataFrame]:
        for frame in run(group, frames, known):
            yield frame.assign(left_out=True)

    made = groups.applyInPandasWithState(
        work, f"{gives}, left_out boolean", state, "update", timeout or GroupStateTimeout.NoTimeout
    )
    return made.drop("left_out")
