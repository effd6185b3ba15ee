"""Parquet files of which every byte is checked: their pages by Parquet's own checksums, their footer by a seal.

Parquet has no checksum of its footer, which says where columns lie and what they are: of a thousand turned bits there
some ten give other values without a word, and a few end the process. So a seal is right before the footer, eight
bytes that no other reader looks at: `tlog`, and the CRC-32 of all that follows it up to the file's end.
"""

import io
import struct
import zlib
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyarrow import dataset

_MAGIC: Final = b"tlog"
SEAL_BYTES: Final = len(_MAGIC) + 4
# Behind the footer: its length, and Parquet's magic.
_CLOSING_BYTES: Final = 8
# The end of a file that is read at first: most footers are shorter.
_END_BYTES: Final = 4_096


def seal_of(footer: bytes | bytearray | memoryview) -> bytes:
    """The seal of a footer, which is all from behind the seal to the file's end."""
    return _MAGIC + struct.pack("<I", zlib.crc32(footer))


# --- writing -----------------------------------------------------------------------------------------------


class SealingSink:
    """Where Arrow writes a Parquet file: passes its bytes on to `file`, which stays open, and counts them in `size`.

    Not every store's file can tell its size, and Arrow's writer writes a footer even when it is abandoned.
    """

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._footer: bytearray | None = None
        self.size = 0

    def write(self, data: Any) -> int:
        """Pass bytes on, or keep them, or drop them."""
        if self._footer is not None:
            self._footer += data
        elif self._file is not None:
            self._file.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self.size

    def flush(self) -> None:
        """Nothing: the caller that opened the file closes it."""

    def finish(self, writer: pq.ParquetWriter) -> None:
        """End the file that the writer writes here: the seal, then the footer."""
        self._footer = bytearray()
        writer.close()
        footer, self._footer = self._footer, None
        self.size -= len(footer)
        self.write(seal_of(footer))
        self.write(footer)

    def abandon(self, writer: pq.ParquetWriter | None) -> None:
        """Write nothing more, whatever was begun."""
        self._file = None
        if writer is not None:
            writer.close()


def finish_in_memory(writer: pq.ParquetWriter, sink: pa.BufferOutputStream) -> memoryview:
    """End the file that the writer writes to memory: its bytes, sealed, which are not copied."""
    at = sink.tell()
    sink.write(bytes(SEAL_BYTES))
    writer.close()
    data = memoryview(sink.getvalue()).cast("B")
    data[at : at + SEAL_BYTES] = seal_of(data[at + SEAL_BYTES :])
    return data


# --- reading -----------------------------------------------------------------------------------------------


def open_parquet(source: Any, *, size: int | None, sealed: bool) -> pq.ParquetFile:
    """Open a file to be read, its pages' checksums with it, after a look at its seal.

    `size`: the bytes that it must have, None where nothing says that. `sealed`: whether it must have a seal; where
    another engine may have written it, a seal that it has must be right. Closing it doesn't close `source`.
    Raises OSError and pyarrow's errors for what is no sound file.
    """
    length = source.seek(0, io.SEEK_END)
    if size is not None and length != size:
        raise OSError(f"it has {length} bytes, its log entry says {size}")
    check_seal(source, length, required=sealed)
    return pq.ParquetFile(source, page_checksum_verification=True, coerce_int96_timestamp_unit="us")


def parquet_part(source: Any, metadata: pq.FileMetaData, dictionaries: list[str]) -> pq.ParquetFile:
    """A part of a file whose footer was looked at, to be read at its place in the file; its pages' checksums with it.

    `dictionaries`: columns of texts that are read as they are in the file, where they have a dictionary.
    """
    return pq.ParquetFile(source, metadata=metadata, read_dictionary=dictionaries, page_checksum_verification=True)


def parquet_dataset(
    files: Iterable[tuple[str, int, Mapping[str, int]]], schema: pa.Schema, file_system: Any
) -> "dataset.FileSystemDataset":
    """Files that are opened when rows of them are wanted, as one dataset; their pages' checksums are looked at.

    `files`: path, bytes, and the columns that have one value in all of the file, which it does not hold itself.
    `file_system`: pyarrow's; what opens files in it asks `check_seal`.
    """
    from pyarrow import dataset  # it takes a while to load

    form = dataset.ParquetFileFormat(
        default_fragment_scan_options=dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    )
    fragments = []
    for path, size, values in files:
        same = [dataset.field(name) == pa.scalar(value, schema.field(name).type) for name, value in values.items()]
        known = reduce(and_, same) if same else None
        fragments.append(form.make_fragment(path, file_system, known, file_size=size))
    return dataset.FileSystemDataset(fragments, schema, form, file_system)


def check_seal(source: Any, size: int, *, required: bool) -> None:
    """Look at the seal of a file of `size` bytes. Raises OSError where it is not right, or missing though required."""
    end = _end_of(source, size, _END_BYTES)
    footer = int.from_bytes(end[-_CLOSING_BYTES : -_CLOSING_BYTES + 4], "little") + _CLOSING_BYTES
    if len(end) < footer + SEAL_BYTES <= size:
        end = _end_of(source, size, footer + SEAL_BYTES)
    seal, rest = end[-footer - SEAL_BYTES : -footer], end[-footer:]
    if (required or seal.startswith(_MAGIC)) and seal != seal_of(rest):
        raise OSError("its footer is not the one that it was sealed with")


def _end_of(source: Any, size: int, wanted: int) -> bytes:
    source.seek(max(0, size - wanted))
    data: bytes = source.read(min(size, wanted))
    return data
