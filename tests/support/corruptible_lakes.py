"""Lakes in memory that a test corrupts by hand, for the tests of `check`."""

from collections.abc import Callable
from typing import Any, Self

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from support.logs import memory_lake, open_lake, put_checkpoint, values
from support.parquet import sealed_file

from tidelog.check.lake import Finding, Kind, Report, check_lake
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.delta import layout
from tidelog.log.delta.schema import SEGMENT
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage import Storage
from tidelog.log.upkeep.trim import trim

Line = dict[str, Any]


class CorruptibleLake:
    """A lake with topic `orders` of two partitions, and tools to corrupt it.

    Each append puts two records into each partition, so entry n >= 1 holds offsets 2n-2 and 2n-1 of both.
    """

    def __init__(self, appends: int = 3, **config: str) -> None:
        self.lake, self.storage, self.clock = memory_lake()
        self.lake.create_topic("orders", 2, config={k.replace("_", "."): v for k, v in config.items()})
        self.append(appends)

    def append(self, count: int = 1, topic: str = "orders", lake: Lake | None = None) -> Self:
        for _ in range(count):
            keys = [b"k"] * 4
            (lake or self.lake).topic(topic).append(values("a", "b", "c", "d", partition=[0, 0, 1, 1], key=keys))
            self.clock.pass_s(1)
        return self

    def settled(self) -> Self:
        """Wait until the background has nothing left to do."""
        self.lake.background.submit(lambda: None).result()
        return self

    def reopened(self) -> Lake:
        """The lake as a process sees it that starts now."""
        return open_lake(self.storage, self.clock)

    def check(self, deep: bool = False, **more: Any) -> Report:
        return check_lake(self.storage, deep=deep, clock=self.clock, **more)

    # --- objects -------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        return self.storage.get(f"orders/{path}")

    def put(self, path: str, data: bytes) -> Self:
        self.storage.put(f"orders/{path}", data)
        return self

    def delete(self, path: str) -> Self:
        self.storage.get(f"orders/{path}")  # fails when there is no such file
        self.storage.delete(f"orders/{path}")
        return self

    # --- entries -------------------------------------------------------------------------------------------

    def lines(self, version: int) -> list[Line]:
        return [orjson.loads(line) for line in self.get(layout.entry_path(version)).splitlines()]

    def write(self, version: int, lines: list[Line]) -> Self:
        """An entry of these lines; tidelog's own count of them is kept right."""
        info = lines[-1].get("commitInfo", {})
        if "tidelog" in info:
            info["tidelog"]["actions"] = len(lines) - 1
        return self.put(layout.entry_path(version), b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def edit(self, version: int, change: Callable[[list[Line]], Any]) -> Self:
        lines = self.lines(version)
        change(lines)
        return self.write(version, lines)

    def edit_add(self, version: int, partition: int = 0, **fields: Any) -> Self:
        """Change fields of an entry's `add`; `base`, `end` and `stats` (a dict) under these short names."""

        def change(lines: list[Line]) -> None:
            body = next(
                x["add"] for x in lines if x.get("add", {}).get("partitionValues", {})["partition"] == str(partition)
            )
            if "base" in fields:
                body["partitionValues"]["base_offset"] = str(fields.pop("base"))
            if "end" in fields:
                body["tags"]["tidelog.end"] = str(fields.pop("end"))
            if "stats" in fields:
                body["stats"] = orjson.dumps(orjson.loads(body["stats"]) | fields.pop("stats")).decode()
            body.update(fields)

        return self.edit(version, change)

    def edit_property(self, key: str, value: str | None) -> Self:
        def change(lines: list[Line]) -> None:
            configuration = next(x["metaData"] for x in lines if "metaData" in x)["configuration"]
            configuration.pop(key, None)
            if value is not None:
                configuration[key] = value

        return self.edit(0, change)

    def foreign(self, version: int, *lines: Line) -> Self:
        """An entry of another engine, its commitInfo first as deltalake writes it."""
        return self.write(version, [{"commitInfo": {"operation": "WRITE", "engineInfo": "other"}}, *lines])

    # --- checkpoints ---------------------------------------------------------------------------------------

    def checkpoint(self, version: int, topic: str = "orders") -> Self:
        put_checkpoint(self.storage, topic, version)
        return self

    def rows(self, version: int) -> tuple[list[Line], pa.Schema]:
        table = pq.read_table(pa.BufferReader(self.get(layout.checkpoint_path(version))))
        return table.to_pylist(), table.schema

    def edit_checkpoint(self, version: int, change: Callable[[list[Line]], Any], mark: bool = True) -> Self:
        """Change a checkpoint's rows; `mark`: it still says that tidelog wrote it."""
        rows, schema = self.rows(version)
        change(rows)
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema if mark else schema.remove_metadata()), sink)
        return self.put(layout.checkpoint_path(version), sink.getvalue().to_pybytes())

    def trim(self) -> Self:
        trim(self.storage, "orders", 0)
        return self

    # --- segments ------------------------------------------------------------------------------------------

    def segment(self, partition: int = 0, at: int = 0) -> Segment:
        return self.reopened().topic("orders").state().live(partition)[at]

    def replace_segment(self, change: Callable[[pa.Table], pa.Table], version: int = 1) -> Self:
        """Rewrite the file of partition 0 that an entry added; the log then gives its new size."""
        path = next(x["add"]["path"] for x in self.lines(version) if "add" in x)
        table = pq.read_table(pa.BufferReader(self.get(path)))
        data = sealed_file(change(table))
        return self.put(path, data).edit_add(version, size=len(data))


def columns(table: pa.Table, **changed: Any) -> pa.Table:
    """A segment's table with some columns replaced by Python values."""
    for name, new in changed.items():
        kind = SEGMENT.field(name).type
        table = table.set_column(table.schema.get_field_index(name), SEGMENT.field(name), [pa.array(new, kind)])
    return table


def found(report: Report, kind: Kind) -> list[Finding]:
    """The findings of one kind."""
    return [f for f in report.findings if f.kind is kind]


def kinds(report: Report) -> set[Kind]:
    """The kinds of errors and warnings."""
    return {f.kind for f in report.findings if f.severity != "info"}


def objects(storage: Storage, folder: str = "") -> dict[str, bytes]:
    """Everything that a store holds."""
    result = {}
    for info in storage.list_after(folder):
        try:
            result[info.path] = storage.get(info.path)
        except ObjectNotFoundError:
            continue
    for name in storage.list_folders(folder):
        result.update(objects(storage, f"{folder}/{name}" if folder else name))
    return result
