"""A writer's schema, compiled: what decodes payloads to Arrow columns and encodes them again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Where a field is: the names of the structs around it and its own, "element" in lists, "value" in maps.
FieldPath = tuple[str, ...]
# What a Delta table forbids in the names of its columns.
FORBIDDEN_IN_NAMES = frozenset(" ,;{}()\n\t=")


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """What n payloads hold. `columns`: n rows, null where a payload has none; `ok`: n booleans, where it has."""

    columns: pa.StructArray
    ok: npt.NDArray[np.bool_]


class ValueSchema(Protocol):
    """A writer's schema; immutable, shared by threads.

    `kind`: "avro", "json" or "protobuf". `columns`: what `decode` gives, None where no field can be a column.
    `left_out`: the path of a field -> why it is no column ("" is the schema itself). `exact`: whether `encode` can give
    a payload back byte for byte; the caller compares, as a payload may be written in several ways. `defaults`: a
    field's path -> its default, as Arrow takes it. `lenient`: whether a payload may have columns and yet not fit,
    as its schema has more rules than types. A payload without columns may fit, too: what no column can hold.
    """

    kind: str
    columns: pa.StructType | None
    left_out: Mapping[str, str]
    exact: bool
    defaults: Mapping[FieldPath, Any]
    lenient: bool

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        """The columns of payloads; never raises for bad ones."""
        ...

    def encode(self, columns: pa.StructArray) -> pa.BinaryArray:
        """The payloads of rows, null for null rows. Raises `EncodingError`, naming the first row that can't be one."""
        ...

    def problem(self, payload: bytes) -> str | None:
        """Why a payload does not fit, None where it does."""
        ...


def name_problem(name: str, siblings: Mapping[str, str]) -> str | None:
    """Why a field can't be a column by its name. `siblings`: lower-case names that are columns already, as written."""
    if not name or FORBIDDEN_IN_NAMES & {*name}:
        return (
            f"Delta forbids the name '{name}': no column's name is empty or holds any of ' ,;{{}}()=', tabs, line ends"
        )
    same = siblings.get(name.lower())
    return None if same is None else f"the name differs from '{same}' only by case"
