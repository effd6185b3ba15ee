"""Segments read into rows of native code, without Arrow's Parquet reader: it takes longer to start, and copies more.

It takes what is plainly right, as tidelog's writers write it: files that are sealed, with the columns of a plain topic
and a checksum of each page. All else is left to Arrow's reader, which also says what is wrong with it.
"""

import io
import zlib
from collections.abc import Generator
from typing import Any, Final
from urllib.parse import unquote

import cramjam

from tidelog.broker.records.batches import GZIP, SNAPPY, ZSTD
from tidelog.broker.records.columns import Page, StoredRows
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.broker.records.unpacking import unpacked
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.parquet_checksums import SEAL_BYTES, seal_of
from tidelog.log.segments.fetch import FetchPlan
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.port import Storage, is_distant

# A file up to this size is read whole, and up to the other one without being opened before.
WHOLE_BYTES: Final = 4 * 1024 * 1024
_SMALL_BYTES: Final = 64 * 1024
# The end of a larger one, which is read first: most footers are shorter.
_END_BYTES: Final = 16 * 1024
_MOST_FOOTER: Final = 256 * 1024
_CLOSING_BYTES: Final = 8
# Of a row group: what writers write at most is half of it.
_MOST_ROWS: Final = 262_144
_MOST_BYTES: Final = 32 * 1024 * 1024
# SchemaElement: type, repetition, name, children and ConvertedType, of all columns of a plain topic.
_ELEMENT: Final = (1, 3, 4, 5, 6)
_SCHEMA: Final = [
    (2, 1, b"position", None, None),
    (6, 1, b"key", None, None),
    (6, 1, b"value", None, None),
    (None, 1, b"headers", 1, 3),
    (None, 2, b"list", 1, None),
    (None, 1, b"element", 2, None),
    (6, 1, b"key", None, 0),
    (6, 1, b"value", None, None),
    (2, 1, b"timestamp", None, 10),
    (1, 1, b"timestamp_type", None, None),
]
_COLUMNS: Final = 7
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_UNCOMPRESSED, _LZ4_RAW = 0, 7
# Codecs by Parquet's numbers, which pack as Kafka's do.
_CODECS: Final = {1: SNAPPY, 2: GZIP, 6: ZSTD}


class NotPlainError(Exception):
    """Arrow's reader is to read it."""


class SegmentRows:
    """Reads the segments of a plan from an offset on. `rows`: those that were read and not yet written as batches."""

    def __init__(self, storage: Storage, folder: str, plan: FetchPlan, rows: StoredRows) -> None:
        self.rows = rows
        self._thrift = rows.thrift
        self._groups = self._row_groups(storage, folder, plan)
        self.is_through = False

    def fill(self, most_bytes: int, most_groups: int) -> None:
        """Read row groups until rows have `most_bytes`, or the plan is through. Raises `NotPlainError`."""
        try:
            for _ in range(most_groups):
                if self.rows.size >= most_bytes:
                    return
                if next(self._groups, None) is None:
                    self.is_through = True
                    return
        except (TidelogError, CorruptBatchError, cramjam.DecompressionError) as e:
            raise NotPlainError from e
        except (KeyError, IndexError, TypeError, ValueError, OSError, OverflowError) as e:
            raise NotPlainError from e

    def close(self) -> None:
        """Close the file that is open."""
        self._groups.close()

    def _row_groups(self, storage: Storage, folder: str, plan: FetchPlan) -> Generator[bool, None, None]:
        """Read the plan's row groups, one at a time."""
        for segment in plan.segments:
            file = _FileOfPages(storage, f"{folder}/{unquote(segment.path)}", segment.size)
            try:
                yield from self._of_segment(file, segment, plan)
            finally:
                file.close()

    def _of_segment(self, file: "_FileOfPages", segment: Segment, plan: FetchPlan) -> Generator[bool, None, None]:
        footer, _ = self._thrift(*file.footer())
        elements = [tuple(element.get(field) for field in _ELEMENT) for element in footer[2][1:]]
        records = segment.stats.records
        if elements != _SCHEMA or footer[2][0].get(5) != 6 or (records is not None and footer[3] != records):
            raise NotPlainError
        # As many records as offsets, as in every segment that was never compacted: each position is known.
        whole = records == segment.end - segment.base_offset
        low, high = plan.start - segment.base_offset, plan.end - segment.base_offset
        begun = 0
        for group in footer.get(4, ()):
            count = group[3]
            first = begun
            begun += count
            if whole and (begun <= low or first >= high):
                continue
            columns = self._pages(file, group, whole=whole)
            if not self.rows.add(count, columns, segment.base_offset, first if whole else -1, plan.start, segment.end):
                raise NotPlainError
            yield True

    def _pages(self, file: "_FileOfPages", group: Any, *, whole: bool) -> list[list[Page]]:
        """The pages of a row group's columns; of none for positions that are known."""
        chunks = [column[3] for column in group[1] if 1 not in column]
        if len(chunks) != _COLUMNS or not 0 < group[3] <= _MOST_ROWS:
            raise NotPlainError
        places = [(min(chunk[9], chunk.get(11, chunk[9])), chunk[7]) for chunk in chunks]
        wanted = places[1:] if whole else places
        start, end = min(at for at, _ in wanted), max(at + size for at, size in wanted)
        sizes = [chunk[6] for chunk in chunks]
        if end - start > _MOST_BYTES or min(sizes) < 0 or sum(sizes) > _MOST_BYTES:
            raise NotPlainError
        data, at = file.read(start, end)
        columns: list[list[Page]] = [[]] if whole else []
        for chunk, (begin, size) in list(zip(chunks, places, strict=True))[_COLUMNS - len(wanted) :]:
            columns.append(self._pages_of(data, begin - at, begin - at + size, chunk[4], chunk[6]))
        return columns

    def _pages_of(self, data: memoryview, at: int, end: int, codec: int, room: int) -> list[Page]:
        """The pages of a column, which unpack to `room` bytes at most, as the footer says."""
        pages: list[Page] = []
        while at < end:
            header, at = self._thrift(data, at, end)
            kind, size, stored, checksum = header[1], header[2], header[3], header[4]
            content = data[at : at + stored]
            at += stored
            room -= size
            if size < 0 or room < 0 or stored < 0 or at > end or zlib.crc32(content) != checksum & 0xFFFFFFFF:
                raise NotPlainError
            if codec == _UNCOMPRESSED:
                if size != stored:
                    raise NotPlainError
            elif size:
                content = _unpacked(content, codec, size)
            about = header[5] if kind == _DATA_PAGE else header[7] if kind == _DICTIONARY_PAGE else None
            if about is None:
                raise NotPlainError
            pages.append((content, about[1], about[2], kind == _DICTIONARY_PAGE))
        return pages


class _FileOfPages:
    """A segment's file: its bytes, where they are few, else what is read of it."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._size = size
        self._data: memoryview | None = None
        self._source: Any = None
        if size <= (WHOLE_BYTES if is_distant(storage) else min(_SMALL_BYTES, WHOLE_BYTES)):
            self._data = memoryview(storage.get(path))
            length = len(self._data)
        else:
            self._source = storage.open(path, size)
            length = self._source.seek(0, io.SEEK_END)
        if length != size:
            self.close()
            raise NotPlainError
        if self._data is None and size <= WHOLE_BYTES:
            try:
                self._data, _ = self.read(0, size)
            finally:
                self.close()

    def footer(self) -> tuple[memoryview, int, int]:
        """(bytes, where in them the footer begins, and ends), once its seal is found to be right."""
        data, _ = self.read(max(0, self._size - _END_BYTES), self._size)
        length = int.from_bytes(data[-_CLOSING_BYTES : -_CLOSING_BYTES + 4], "little") + _CLOSING_BYTES
        if length > min(_MOST_FOOTER, self._size - SEAL_BYTES):
            raise NotPlainError
        if length + SEAL_BYTES > len(data):
            data, _ = self.read(self._size - length - SEAL_BYTES, self._size)
        at = len(data) - length
        if data[at - SEAL_BYTES : at] != seal_of(data[at:]):
            raise NotPlainError
        return data, at, len(data) - _CLOSING_BYTES

    def read(self, start: int, end: int) -> tuple[memoryview, int]:
        """(bytes that hold those from start to end, where in the file the bytes begin)."""
        if not 0 <= start <= end <= self._size:
            raise NotPlainError
        if self._data is not None:
            return self._data, 0
        self._source.seek(start)
        data = memoryview(self._source.read(end - start))
        if len(data) != end - start:
            raise NotPlainError
        return data, start

    def close(self) -> None:
        """Close it."""
        if self._source is not None:
            self._source.close()


def _unpacked(packed: memoryview, codec: int, size: int) -> memoryview:
    if codec == _LZ4_RAW:
        data = memoryview(bytearray(size))
        if cramjam.lz4.decompress_block_into(packed, data) != size:
            raise NotPlainError
        return data
    content = memoryview(unpacked(_CODECS[codec], packed, size))
    if len(content) != size:
        raise NotPlainError
    return content
