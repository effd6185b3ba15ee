"""Records as a file: JSON lines, or Parquet."""

import io
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from starlette.responses import Response, StreamingResponse

from tidelog.cli.records.as_json import to_json_lines
from tidelog.console.base.calls import ConsoleCall
from tidelog.console.records.paging import records_of
from tidelog.console.records.requests import RecordView, offsets_at, partitions_of, topic_of
from tidelog.log.delta.schema import RECORDS_WITH_HEADERS
from tidelog.log.topic import Topic

# What a download looks at, and what it holds, at most.
_MOST_RECORDS: Final = 10_000_000
_DEFAULT_RECORDS: Final = 100_000
_MOST_BYTES: Final = 2 << 30
_BATCH: Final = 1_024


def download(call: ConsoleCall) -> Response:
    """Records from a place on, partition by partition, those that pass the filters."""
    form = call.choice("format", "jsonl", ("jsonl", "parquet"))
    limit = call.number("limit", _DEFAULT_RECORDS, 1, _MOST_RECORDS)
    topic = topic_of(call)
    ranges = partitions_of(call, topic)
    starts = offsets_at(call.text("from") or "earliest", topic, ranges)
    ends = offsets_at(call.text("to") or "latest", topic, ranges)
    view = RecordView.of(call, form="auto")
    batches = wanted_batches(topic, {p: (starts[p], ends[p]) for p in sorted(ranges)}, view, limit)
    name = f"{call.topic}.{form}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}  # a topic's name has no quotes
    if form == "jsonl":
        lines = (to_json_lines(batch) for batch in batches)
        return StreamingResponse(lines, 200, headers, "application/jsonl")
    return StreamingResponse(parquet_of(batches), 200, headers, "application/vnd.apache.parquet")


def wanted_batches(
    topic: Topic, ranges: dict[int, tuple[int, int]], view: RecordView, limit: int
) -> Iterator[pa.RecordBatch]:
    """The records in [start, end) of each partition that a page wants: at most `limit`, and 2 GiB of them."""
    left, size = limit, 0
    for partition, (start, end) in ranges.items():
        if start >= end:
            continue
        for batch in topic.read(partition, start, end, include_headers=True, batch_records=_BATCH):
            records = batch
            if not view.wanted.takes_all:
                records = batch.filter(pa.array([view.takes(one) for one in records_of(batch)], pa.bool_()))
            records = records.slice(0, left)
            left -= records.num_rows
            size += records.nbytes
            if records.num_rows:
                yield records
            if left <= 0 or size >= _MOST_BYTES:
                return


def parquet_of(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """A Parquet file of the batches, piece by piece."""
    pieces = _Pieces()
    with pq.ParquetWriter(pieces, RECORDS_WITH_HEADERS, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield from pieces.taken()
    yield from pieces.taken()


class _Pieces(io.RawIOBase):
    """A file whose bytes are taken as they come."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def taken(self) -> list[bytes]:
        """What was written since the last call."""
        found, self._pieces = self._pieces, []
        return found
