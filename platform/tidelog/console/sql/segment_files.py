"""A file system that holds the segments of the topics of one query, and whose bytes another process reads."""

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tidelog.console.sql.pipe import READ_BYTES
from tidelog.log.base.parquet_checksums import check_seal

# (number of a file, first byte, bytes) -> the bytes
ReadRange = Callable[[int, int, int], bytes]


class _SegmentBytes(io.RawIOBase):
    """One file, to read and to seek in."""

    def __init__(self, read: ReadRange, number: int, size: int) -> None:
        self._read = read
        self._number = number
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def size(self) -> int:
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        pieces = []
        while wanted:
            piece = self._read(self._number, self._at, min(wanted, READ_BYTES))
            if not piece:
                raise OSError("a segment is shorter than its log entry says")
            self._at += len(piece)
            wanted -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class SegmentFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """Files by their numbers: `sizes` of each. There is nothing else to open, to list or to write."""

    def __init__(self, read: ReadRange, sizes: dict[int, int]) -> None:
        self._read = read
        self._sizes = sizes

    def get_type_name(self) -> str:
        """What pyarrow calls it."""
        return "segments"

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """Whether these files are there, and their bytes."""
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> Any:
        size = self._sizes.get(int(path)) if path.isdecimal() else None
        if size is None:
            return fs.FileInfo(path, fs.FileType.NotFound)
        return fs.FileInfo(path, fs.FileType.File, size=size)

    def open_input_file(self, path: str) -> Any:
        """A file to read. Raises OSError for one whose seal is not right."""
        number = int(path)
        size = self._sizes[number]
        check_seal(_SegmentBytes(self._read, number, size), size, required=True)
        return pa.PythonFile(_SegmentBytes(self._read, number, size), mode="r")

    def open_input_stream(self, path: str) -> Any:
        """The same."""
        return self.open_input_file(path)

    def normalize_path(self, path: str) -> str:
        """The path as it is."""
        return path

    def _refuse(self, *_: Any) -> Any:
        raise NotImplementedError("segments are only read, by their numbers")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse
