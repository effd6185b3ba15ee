"""Printing what is consumed: records as bytes on stdout, the ends of partitions as notes on stderr."""

import io
import select
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from tidelog.cli.consume.follow import Event, Idle, Reached
from tidelog.cli.records.as_json import to_json_lines
from tidelog.cli.records.as_text import Formatter, compile_format, needs_headers
from tidelog.commands.terminal import note
from tidelog.operations.metric_families import MetricFamily
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.clients.schema_registry.client import SchemaRegistryClient
    from tidelog.clients.schema_registry.json_values import ValueKind


@dataclass(frozen=True, slots=True)
class Style:
    """How a batch of records is printed, and whether its headers are needed for that."""

    render: Formatter
    headers: bool


JSON = Style(to_json_lines, headers=True)


def text_style(template: str, *, nulls: bool) -> Style:
    """The style of a format string. Raises ValueError for an unknown token or escape."""
    return Style(compile_format(template, nulls=nulls), needs_headers(template))


def decoded_style(style: Style, kind: "ValueKind", client: "SchemaRegistryClient") -> Style:
    """The same style, of values decoded by the schemas that they, or their headers, name."""
    from tidelog.clients.schema_registry.json_values import decoded, decoder

    decode = decoder(kind, client)
    return Style(lambda batch: style.render(decoded(batch, decode, note)), headers=True)


class Printer:
    """Prints events until enough is printed. `count`: of how many records, None for all."""

    def __init__(self, topic: str, style: Style, out: BinaryIO, count: int | None, *, quiet: bool) -> None:
        self._topic = topic
        self._style = style
        self._out = out
        self._left = count
        self._quiet = quiet
        # By partition: records that were printed, and the offset behind the last one. Other threads may read them.
        self._printed: dict[int, tuple[int, int]] = {}

    def print_all(self, events: Iterable[Event], stop: Stop) -> None:
        """Print what comes until it ends, enough is printed or a stop is asked.

        Raises BrokenPipeError when the pipe has lost its reader.
        """
        try:
            for event in events:
                if not self._print(event) or stop.asked:
                    return
        finally:
            self._out.flush()

    def metrics(self) -> tuple[MetricFamily, MetricFamily]:
        """How many records were printed, and how far each partition came. For any thread."""
        records = MetricFamily("tidelog_consume_records", "Records that were printed.", is_counter=True)
        offset = MetricFamily("tidelog_consume_offset", "The offset behind the last one printed.")
        for partition, (count, end) in sorted(self._printed.copy().items()):
            place = {"topic": self._topic, "partition": str(partition)}
            records.add(place, count)
            offset.add(place, end)
        return records, offset

    def _print(self, event: Event) -> bool:
        """Print one event; whether to go on."""
        if isinstance(event, Idle):
            self._out.flush()
            if reader_is_gone(self._out):
                raise BrokenPipeError
        elif isinstance(event, Reached):
            self._tell(event)
        else:
            batch = event if self._left is None else event.slice(0, self._left)
            self._out.write(self._style.render(batch))
            self._count(batch)
            if self._left is not None:
                self._left -= batch.num_rows
                return self._left > 0
        return True

    def _count(self, batch: "pa.RecordBatch") -> None:
        if batch.num_rows:
            partition = batch.column("partition")[0].as_py()
            records, _ = self._printed.get(partition, (0, 0))
            self._printed[partition] = records + batch.num_rows, batch.column("offset")[-1].as_py() + 1

    def _tell(self, reached: Reached) -> None:
        if self._quiet:
            return
        self._out.flush()
        end = ": exiting" if reached.last else ""
        note(f"Reached end of topic {self._topic} [{reached.partition}] at offset {reached.offset}{end}")


def bytes_to_stdout() -> BinaryIO:
    """Stdout for bytes, all of them: unbuffered (PYTHONUNBUFFERED), Python's own drops the rest after a signal."""
    sys.stdout.flush()
    try:
        return open(sys.stdout.fileno(), "wb", buffering=1 << 16, closefd=False)
    except (OSError, io.UnsupportedOperation):  # a stream without a descriptor, as tests put in place
        return sys.stdout.buffer


def reader_is_gone(out: BinaryIO) -> bool:
    """Whether the pipe has lost its reader; else `consume | head` would notice only with the next record."""
    try:
        descriptor = out.fileno()
    except (OSError, io.UnsupportedOperation):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
