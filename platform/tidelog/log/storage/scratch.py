"""Files that hold what a process could have again from elsewhere: without a name, and gone with the process."""

import ctypes
import errno
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

# Linux' MADV_POPULATE_READ, since 5.14: an error of the disk is an error then, and not a signal that ends the process.
_POPULATE_READ: Final = 22
# Linux' IOV_MAX: more buffers are not written at once.
_MOST_BUFFERS: Final = 1024


class ScratchFile:
    """A file of `size` bytes in a folder, "" for the system's own; its disk space is taken as it is filled.

    It is written by one thread at a time, each byte once, and looked at by any through a map, which lives as long as a
    look does. Raises OSError where the folder takes none.
    """

    def __init__(self, folder: str, size: int) -> None:
        self.size = size
        with tempfile.TemporaryFile(prefix="tidelog-", dir=folder or None, buffering=0) as file:
            os.ftruncate(file.fileno(), size)
            self._map = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
            self._number = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._number)
        self._view = memoryview(self._map)
        self._address = int(np.frombuffer(self._map, np.uint8).ctypes.data)

    def write(self, at: int, parts: Sequence[bytes | memoryview]) -> None:
        """Write bytes that are there yet at no place. Raises OSError where the disk is full, or fails."""
        left = [memoryview(part) for part in parts]
        while left:
            written = os.pwritev(self._number, left[:_MOST_BUFFERS], at)
            at += written
            done = 0
            while done < len(left) and written >= len(left[done]):
                written -= len(left[done])
                done += 1
            left = left[done:]
            if written:
                left[0] = left[0][written:]

    def is_near(self, start: int, end: int) -> bool:
        """Whether the bytes are in memory, so that a look doesn't wait for the disk, as far as the system tells."""
        begin = start - start % mmap.PAGESIZE
        pages = ctypes.create_string_buffer(-((begin - end) // mmap.PAGESIZE))
        if _mincore is None or _mincore(self._address + begin, end - begin, pages):
            return False
        return b"\0" not in pages.raw

    def look(self, start: int, end: int) -> memoryview:
        """Bytes as they are in the file, from start to end, once they were read from the disk. Raises OSError."""
        if not _populated(self._address, start, end) and len(os.pread(self._number, end - start, start)) != end - start:
            raise OSError(errno.EIO, "a file of this process is shorter than it was made")
        return self._view[start:end]


def _populated(address: int, start: int, end: int) -> bool:
    """Have a part of a map read from the disk; False where the system can't be asked. Raises OSError."""
    if _madvise is None:
        return False
    begin = start - start % mmap.PAGESIZE
    if _madvise(address + begin, end - begin, _POPULATE_READ) == 0:
        return True
    number = ctypes.get_errno()
    if number == errno.EINVAL:
        return False
    raise OSError(number, os.strerror(number))


def _of_libc(name: str, last: Any) -> "Callable[..., int] | None":
    """A function of an address, a length and something of the type `last`; None where there is none."""
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, last), ctypes.c_int
    return cast("Callable[..., int]", function)


_madvise = _of_libc("madvise", ctypes.c_int)
_mincore = _of_libc("mincore", ctypes.c_char_p)
