"""Cuts as rows: the columns of `__cuts`, and the fold of its rows (docs/format.md, "Cuts")."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, Self

import pyarrow as pa

from tidelog.cuts.model import Cut, CutTable, Place
from tidelog.log.delta.schema import TIMESTAMP
from tidelog.log.rows.schema import Row, RowSchema, list_of
from tidelog.log.rows.state import RowKind

CUT: Final = "cut"

SCHEMA = RowSchema(
    {
        "kind": pa.string(),
        "name": pa.string(),
        "id": pa.string(),
        "time": TIMESTAMP,
        "kept": pa.bool_(),
        "tables": list_of(
            name=pa.string(),
            topic_id=pa.string(),
            version=pa.int64(),
            rows=pa.bool_(),
            partitions=list_of(start=pa.int64(), end=pa.int64()),
        ),
        "positions": list_of(group=pa.string(), topic=pa.string(), partition=pa.int32(), offset=pa.int64()),
        "deleted": pa.bool_(),
    }
)


class CutsFold:
    """The cuts by name."""

    def __init__(self, cuts: Mapping[str, Cut] | None = None) -> None:
        self.cuts: Mapping[str, Cut] = {} if cuts is None else cuts

    def get(self, name: str) -> Cut | None:
        """The cut of a name."""
        return self.cuts.get(name)

    def take(self, rows: Sequence[Row]) -> None:
        """Apply rows, in log order."""
        cuts = dict(self.cuts)
        for row in rows:
            if row["kind"] != CUT:
                raise ValueError(f"a row has the kind {row['kind']!r}")
            if row.get("deleted"):
                cuts.pop(row["name"], None)
            else:
                cuts[row["name"]] = _cut(row)
        self.cuts = cuts

    def fork(self) -> Self:
        """One that goes its own way from here."""
        return type(self)(self.cuts)

    def __len__(self) -> int:
        return len(self.cuts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CutsFold) and self.cuts == other.cuts

    __hash__ = None  # type: ignore[assignment] # it changes


def key(row: Row) -> Hashable:
    """A row's key: the cut's name."""
    return (row["kind"], row["name"])


KIND: RowKind[CutsFold] = RowKind("cuts", SCHEMA, CutsFold, key)


# --- to rows and back --------------------------------------------------------------------------------------


def cut_row(cut: Cut) -> Row:
    """The row of a cut."""
    return {
        "kind": CUT,
        "name": cut.name,
        "id": cut.id,
        "time": cut.time_ms,
        "kept": cut.kept,
        "tables": [_table_item(name, table) for name, table in sorted(cut.tables.items())],
        "positions": [
            {"group": group, "topic": topic, "partition": partition, "offset": offset}
            for group, positions in sorted(cut.positions.items())
            for (topic, partition), offset in sorted(positions.items())
        ],
    }


def gone_row(name: str) -> Row:
    """The row that takes a cut away."""
    return {"kind": CUT, "name": name, "deleted": True}


def _table_item(name: str, table: CutTable) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": table.topic_id,
        "version": table.version,
        "rows": table.is_rows,
        "partitions": [{"start": start, "end": end} for start, end in table.ranges],
    }


def _cut(row: Row) -> Cut:
    tables = {
        item["name"]: CutTable(
            item["version"],
            item["topic_id"],
            tuple((one["start"], one["end"]) for one in item.get("partitions", ())),
            item["rows"],
        )
        for item in row.get("tables", ())
    }
    positions: dict[str, dict[Place, int]] = {}
    for item in row.get("positions", ()):
        positions.setdefault(item["group"], {})[item["topic"], item["partition"]] = item["offset"]
    return Cut(row["name"], row["id"], row["time"], tables, positions, row["kept"])
