"""A folder as a sink: whole files whose names say which offsets are in them."""

import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FILLED
from tidelog.connect.connectors.arrow_values import arrow_schema, arrow_table
from tidelog.connect.connectors.files.stream import VERSION, line_of
from tidelog.connect.converters.json_values import json_bytes, to_json
from tidelog.connect.data.errors import ConnectError, DataError
from tidelog.connect.data.records import Partition, SinkRecord
from tidelog.connect.spi.connectors import SinkConnector
from tidelog.connect.spi.sinks import SinkTask, SinkTaskContext
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.parquet_checksums import finish_in_memory
from tidelog.log.base.typed_values import names
from tidelog.log.config.key_type import int_of, long_of

_SUFFIXES: Final = {"lines": "txt", "json": "json", "csv": "csv", "parquet": "parquet"}
_NAME: Final = re.compile(r"(?P<topic>.+)\+(?P<partition>\d+)\+(?P<start>\d+)\+(?P<end>\d+)\.\w+")
SINK_FORMATS: Final = ("lines", "json", "csv", "parquet")
SINK_KEYS: Final = (
    ConfigDef()
    .define("output.path", FILLED, REQUIRED, Importance.HIGH, "The folder to write to.")
    .define("topics.dir", FILLED, "topics", Importance.LOW, "The folder below it for topics' folders.")
    .define("format", names(*SINK_FORMATS), "json", Importance.HIGH,
            "lines or json: a value for each line; csv: structs or maps below a header; parquet: the same as columns.")
    .define("flush.size", int_of(1), 1000, Importance.HIGH, "How many records a file has at most.")
    .define("rotate.interval.ms", long_of(), -1, Importance.HIGH,
            "How long after its first record a file is written although it is not full; -1 for never.")
    .define("filename.offset.zero.pad.width", int_of(0), 10, Importance.LOW,
            "How many digits offsets in names of files have at least.")
)  # fmt: skip


@dataclass
class _Buffer:
    """Records of a partition that are in no file yet."""

    next_offset: int
    records: list[SinkRecord] = field(default_factory=list)
    since_ms: int = 0


class FolderSinkTask(SinkTask):
    """Collects records of each partition and writes them as files that appear whole, under their final name."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Begin. Raises `ConnectError` where the folder can't be made."""
        self._values: Mapping[str, Any] = SINK_KEYS.parse(config)
        self._context = context
        self._buffers: dict[Partition, _Buffer] = {}
        self._folder: Path = Path(self._values["output.path"]) / str(self._values["topics.dir"])
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConnectError(f"The folder {self._folder} can't be made: {error}. Correct output.path.") from error

    def open(self, partitions: Collection[Partition]) -> None:
        """Go on behind the newest file of each partition, whatever was committed; remove what a crash left."""
        for partition in partitions:
            folder = self._partition_folder(partition)
            for leftover in folder.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)
            written = written_until(folder)
            if written is not None:
                self._context.seek(partition, written)
                self._buffers[partition] = _Buffer(written)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Collect the records, and write the files that are full or due."""
        now_ms = int(self._clock.elapsed_s() * 1000)
        for record in records:
            buffer = self._buffers.setdefault(record.original, _Buffer(record.offset))
            if record.offset < buffer.next_offset:  # in a file already
                continue
            if not buffer.records:
                buffer.since_ms = now_ms
            buffer.records.append(record)
            buffer.next_offset = record.offset + 1
            if len(buffer.records) >= self._values["flush.size"]:
                self._write(record.original, buffer)
        interval_ms = self._values["rotate.interval.ms"]
        for partition, buffer in self._buffers.items():
            if buffer.records and 0 <= interval_ms <= now_ms - buffer.since_ms:
                self._write(partition, buffer)

    def pre_commit(self, offsets: Mapping[Partition, int]) -> Mapping[Partition, int]:
        """Commit what is in files: up to the first record that is not."""
        held = {one: buffer.records[0].offset for one, buffer in self._buffers.items() if buffer.records}
        return {one: min(offset, held.get(one, offset)) for one, offset in offsets.items()}

    def close(self, partitions: Collection[Partition]) -> None:
        """Forget what is in no file: the partition's next task reads it again."""
        for partition in partitions:
            self._buffers.pop(partition, None)

    def _write(self, partition: Partition, buffer: _Buffer) -> None:
        records, buffer.records = buffer.records, []
        folder = self._partition_folder(partition)
        width = self._values["filename.offset.zero.pad.width"]
        kind = self._values["format"]
        span = f"{records[0].offset:0{width}}+{records[-1].offset:0{width}}"
        name = f"{partition[0]}+{partition[1]}+{span}.{_SUFFIXES[kind]}"
        temporary = folder / f".{name}.tmp"
        try:
            data = _CONTENTS[kind](records)
            folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(folder / name)
            _sync(folder)
        except OSError as error:
            buffer.records = records
            raise ConnectError(
                f"The file {folder / name} can't be written: {error}. Free the disk, restart."
            ) from error

    def _partition_folder(self, partition: Partition) -> Path:
        return self._folder.joinpath(partition[0]) / f"partition={partition[1]}"


def written_until(folder: Path) -> int | None:
    """The offset behind the newest file of a partition's folder; None where there is no file."""
    names = (_NAME.fullmatch(path.name) for path in folder.glob("*"))
    return max((int(name["end"]) + 1 for name in names if name), default=None)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lines(records: Sequence[SinkRecord]) -> bytes:
    return b"".join(line_of(record.value) + b"\n" for record in records)


def _json_lines(records: Sequence[SinkRecord]) -> bytes:
    return b"".join(json_bytes(to_json(record.value_schema, record.value, numeric=True)) + b"\n" for record in records)


def _rows(records: Iterable[SinkRecord]) -> list[Mapping[str, Any]]:
    rows = [{} if record.value is None else record.value for record in records]
    for record, row in zip(records, rows, strict=True):
        if not isinstance(row, Mapping):
            raise DataError(
                f"The value at offset {record.offset} of {record.original_topic}-{record.original_partition} is no "
                "struct or map, which csv and parquet need. Wrap values with HoistField, or write json."
            )
    return rows


def _csv(records: Sequence[SinkRecord]) -> bytes:
    rows = _rows(records)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*dict.fromkeys(name for row in rows for name in row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(records: Sequence[SinkRecord]) -> bytes:
    newest = next((one.value_schema for one in reversed(records) if one.value_schema is not None), None)
    table = arrow_table(_rows(records), None if newest is None else arrow_schema(newest))
    out = pa.BufferOutputStream()
    writer = pq.ParquetWriter(out, table.schema, write_page_checksum=True)
    writer.write_table(table)
    return bytes(finish_in_memory(writer, out))


_CONTENTS: Final[Mapping[str, Callable[[Sequence[SinkRecord]], bytes]]] = {
    "lines": _lines, "json": _json_lines, "csv": _csv, "parquet": _parquet,
}  # fmt: skip


class FolderSink(SinkConnector):
    """Files of each partition, in a folder of its own."""

    names = ("tidelog.connect.FolderSink", "FolderSink")
    version = VERSION
    guarantee = (
        "Exactly once: files appear whole, names say which offsets they have, and a task goes on behind the newest one."
    )
    task_class = FolderSinkTask
    keys = SINK_KEYS
