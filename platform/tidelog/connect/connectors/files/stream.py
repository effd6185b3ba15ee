"""Kafka's FileStreamSource and FileStreamSink: the lines of one file as it grows, and a file of lines."""

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any, Final

import orjson

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FILLED
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.data.records import Partition, SinkRecord, SourceRecord
from tidelog.connect.data.schema import STRING
from tidelog.connect.spi.connectors import ExactlyOnceSupport, RawConfig, SinkConnector, SourceConnector, SourceOffsets
from tidelog.connect.spi.sinks import SinkTask, SinkTaskContext
from tidelog.connect.spi.sources import SourceTask, SourceTaskContext
from tidelog.log.base.keys import REQUIRED
from tidelog.log.config.key_type import int_of

CHUNK_BYTES: Final = 1 << 20
# \r alone ends a line too, as Java's readers have it; one at the end of what is read may be followed by \n.
_END: Final = re.compile(rb"\r\n|\n|\r(?!\Z)")
VERSION: Final = "1.0"
IDLE_SECONDS: Final = 0.5
_FILE: Final = "filename"
_POSITION: Final = "position"
_SOURCE_KEYS: Final = (
    ConfigDef()
    .define("file", FILLED, REQUIRED, Importance.HIGH, "The file to read.")
    .define("topic", FILLED, REQUIRED, Importance.HIGH, "The topic for its lines.")
    .define("batch.size", int_of(), 2000, Importance.LOW, "How many lines a poll gives at most.")
)
_SINK_KEYS: Final = ConfigDef().define("file", FILLED, REQUIRED, Importance.HIGH, "The file to append to.")


@dataclass(frozen=True)
class FileLine:
    """A line without its end. `end`: the position (bytes) behind its end."""

    data: bytes
    end: int


class LineReader:
    """Reads whole lines of a file from a position on; a last line without end is read when its end is there.

    `compressed`: the file is one of gzip, and positions are of what is in it; it must be whole when it appears.
    `whole`: so must it without, and its last line needs no end.
    """

    def __init__(self, path: Path, position: int = 0, *, compressed: bool = False, whole: bool = False) -> None:
        self._path, self._position = path, position
        self._compressed = compressed
        self._whole = whole
        self._unzipped: gzip.GzipFile | None = None  # open until its end is reached, for it can't be gone on from
        self._rest = b""

    def lines(self, most: int) -> list[FileLine]:
        """Return the next lines, up to `most`; [] where there is none, or no file yet.

        Raises `ConnectError` for a file shorter than the position: it isn't the file that was read before.
        """
        lines = self._lines(most)
        if self._whole and len(lines) < most and self._rest:
            self._position += len(self._rest)
            lines.append(FileLine(self._rest.removesuffix(b"\r"), self._position))
            self._rest = b""
        return lines

    def _lines(self, most: int) -> list[FileLine]:
        lines = [*self._take(most)]
        if len(lines) == most:
            return lines
        if self._compressed:
            return lines + self._unzipped_lines(most - len(lines))
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                if size < self._position:
                    raise ConnectError(
                        f"{self._path} has {size} bytes, and {self._position} were read: it was replaced or cut. "
                        "Give the new file another name, or reset the connector's offsets."
                    )
                file.seek(self._position + len(self._rest))
                while len(lines) < most:
                    chunk = file.read(CHUNK_BYTES)
                    self._rest += chunk
                    lines += self._take(most - len(lines))
                    if not chunk:
                        break
        except FileNotFoundError:
            return []
        return lines

    def _unzipped_lines(self, most: int) -> list[FileLine]:
        lines: list[FileLine] = []
        try:
            if self._unzipped is None:
                self._unzipped = gzip.open(self._path, "rb")  # noqa: SIM115 - open until its end
                start = self._position + len(self._rest)
                if self._unzipped.seek(start) < start:
                    raise ConnectError(
                        f"{self._path} holds less than the {start} bytes that were read: it was replaced. Give the new"
                        " file another name, or reset the connector's offsets."
                    )
            while len(lines) < most:
                chunk = self._unzipped.read(CHUNK_BYTES)
                self._rest += chunk
                lines += self._take(most - len(lines))
                if not chunk:
                    self._close()
                    break
        except FileNotFoundError:
            return lines
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self._close()
            raise ConnectError(
                f"{self._path} is no whole file of gzip: {error}. Rename only whole files into the folder."
            ) from error
        return lines

    def _close(self) -> None:
        if self._unzipped is not None:
            self._unzipped.close()
            self._unzipped = None

    def _take(self, most: int) -> Iterator[FileLine]:
        start = 0
        for ending in _END.finditer(self._rest):
            if most == 0:
                break
            most -= 1
            yield FileLine(self._rest[start : ending.start()], self._position + ending.end())
            start = ending.end()
        self._rest = self._rest[start:]
        self._position += start


class FileStreamSourceTask(SourceTask):
    """Reads a file's lines as texts; waits for a file that is not there yet, and for the end of its last line."""

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Begin behind the stored position."""
        values = _SOURCE_KEYS.parse(config)
        self._context, self._topic, self._batch = context, values["topic"], max(1, values["batch.size"])
        self._partition = {_FILE: values["file"]}
        stored = context.offset_storage_reader.offset(self._partition)
        self._reader = LineReader(Path(values["file"]), 0 if stored is None else _position(stored))

    def poll(self) -> Sequence[SourceRecord]:
        """Return the next lines."""
        lines = self._reader.lines(self._batch)
        if not lines:
            self._context.wait(IDLE_SECONDS)
        return [
            SourceRecord(
                topic=self._topic,
                value=line.data.decode("utf-8", "replace"),
                value_schema=STRING,
                source_partition=self._partition,
                source_offset={_POSITION: line.end},
            )
            for line in lines
        ]


class FileStreamSource(SourceConnector):
    """Kafka's FileStreamSourceConnector. A file has one reader: one task."""

    names = ("org.apache.kafka.connect.file.FileStreamSourceConnector", "FileStreamSourceConnector", "FileStreamSource")
    version = VERSION
    guarantee = "Exactly once: a line's position in the file is stored with its record."
    task_class = FileStreamSourceTask
    keys = _SOURCE_KEYS  # Kafka's, with `file` required: a worker has no standard input

    @classmethod
    def exactly_once_support(cls, config: RawConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Every line has a position."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: RawConfig, offsets: SourceOffsets) -> bool:  # noqa: ARG003
        """Check that partitions name a file and offsets a position."""
        for partition, offset in offsets:
            if _FILE not in partition:
                raise ConnectError(
                    f"A source partition of FileStreamSource is {{{_FILE!r}: path}}, not {dict(partition)}."
                )
            if offset is not None:
                _position(offset)
        return True


def _position(offset: Mapping[str, Any]) -> int:
    position = offset.get(_POSITION)
    if isinstance(position, bool) or not isinstance(position, int) or position < 0:
        raise ConnectError(f"A source offset of a file is {{{_POSITION!r}: bytes}}, not {dict(offset)}. Correct it.")
    return position


class FileStreamSinkTask(SinkTask):
    """Appends each value as a line."""

    _file: BufferedWriter | None = None

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:  # noqa: ARG002
        """Open the file for appending. Raises `ConnectError` where that fails."""
        path = _SINK_KEYS.parse(config)["file"]
        try:
            self._file = Path(path).open("ab")  # noqa: SIM115
        except OSError as error:
            raise ConnectError(f"Couldn't find or create file {path!r} for FileStreamSinkTask: {error}") from error

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write the values."""
        if self._file is not None:
            self._file.writelines(line_of(record.value) + b"\n" for record in records)

    def flush(self, offsets: Mapping[Partition, int]) -> None:  # noqa: ARG002
        """Store what was written: on the disk, not only in the system's memory."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def stop(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def line_of(value: Any) -> bytes:
    """A value as a line: texts and bytes as they are, others as JSON; null is an empty line."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else orjson.dumps(value, default=str)


class FileStreamSink(SinkConnector):
    """Kafka's FileStreamSinkConnector. All of its tasks append to the same file, as Kafka's do."""

    names = ("org.apache.kafka.connect.file.FileStreamSinkConnector", "FileStreamSinkConnector", "FileStreamSink")
    version = VERSION
    guarantee = "At least once: lines after the last committed offset are appended again when a task starts again."
    task_class = FileStreamSinkTask
    keys = _SINK_KEYS  # Kafka's, with `file` required: a worker has no standard output for it
