"""Records of a tiny segment as Python has them: Arrow's columns are made of them only where a reader asks for those."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tidelog.log.delta import schema

# Of a record, but for its key and its value.
_RECORD_BYTES = 32


class FewRecords(NamedTuple):
    """Records at `positions` that follow one another, with as many values in each column of a segment that was wanted.

    Timestamps are in us since the epoch. For readers that take either, some names are those of a `pa.RecordBatch`.
    """

    positions: range
    columns: Mapping[str, Sequence[Any]]

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return len(self.positions)

    @property
    def nbytes(self) -> int:
        """About how many bytes they have."""
        values = [value for name in ("key", "value") for value in self.columns.get(name, ()) if value]
        return _RECORD_BYTES * len(self.positions) + sum(map(len, values))

    def slice(self, start: int, count: int | None = None) -> "FewRecords":
        """Those from the `start`-th on, `count` of them at most."""
        part = slice(start, None if count is None else start + count)
        if len(self.positions[part]) == len(self.positions):
            return self
        return FewRecords(self.positions[part], {name: values[part] for name, values in self.columns.items()})

    def arrays(self) -> list[pa.Array]:
        """The positions, and the columns in their order."""
        positions = pa.array(self.positions, pa.int64())
        return [positions, *(_array(name, values) for name, values in self.columns.items())]


def _array(name: str, values: Sequence[Any]) -> pa.Array:
    if name == "timestamp_type" or values.count(None) == len(values):  # one type for all
        return schema.alike(name, values[0], len(values))
    return pa.array(values, schema.SEGMENT.field(name).type)
