"""Files of a local disk: what counts as one, and writing all of the data or an error, early on its way to the disk."""

import ctypes
import errno
import io
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tidelog.log.base.errors import StorageError
from tidelog.log.storage.local_errors import Failing, failed

# New bytes that are worth a call that starts their writeback; fewer wait for the sync.
WORTH_WRITEBACK: Final = 1024 * 1024
# From <fcntl.h>: begin to write the dirty pages, and wait for none.
_SYNC_FILE_RANGE_WRITE: Final = 2
_FROM_THE_START: Final = ctypes.c_int64(0)
_TO_THE_END: Final = ctypes.c_int64(0)
# Linux only; there is no such call in the module `os`.
_SYNC_FILE_RANGE: Final = getattr(ctypes.CDLL(None), "sync_file_range", None)


# What a link leads to when it leads nowhere: to what is not there, round in a circle, or below a file.
_NOWHERE: Final = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a folder, or a link to one.

    A link that leads nowhere is none. One that can't be followed for another reason counts as one: it may lead to a
    topic, and a caller that opens that gets the reason.
    """
    return _leads_to(entry.is_dir)


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a file, or a link to one; of links as for `is_folder`."""
    return _leads_to(entry.is_file)


def _leads_to(asked: Callable[[], bool]) -> bool:
    try:
        return asked()
    except OSError as error:
        return error.errno not in _NOWHERE


def require_file(location: str) -> None:
    """Refuse a name that is taken by what is no file, or by a link that leads to none: no reader finds an object there.

    What was deleted meanwhile is passed over. Raises `StorageError`.
    """
    try:
        mode = os.stat(location).st_mode
    except OSError as error:
        if error.errno == errno.ENOENT and not os.path.islink(location):
            return
        raise failed("create", location, error) from error
    if stat.S_ISDIR(mode):
        raise failed("create", location, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if not stat.S_ISREG(mode):
        raise StorageError(
            f"Could not create {location}: what has this name is no file (a pipe, a socket or a device). Remove or"
            " rename it."
        )


def write_all(fd: int, data: bytes | memoryview, location: str) -> None:
    """Write everything. Raises `StorageError` that names the location."""
    with Failing("write", location):
        if not data:  # the file may have been opened long ago, and no write gives it its time
            os.utime(fd)
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, memoryview(data)[written:])


def copy_some(source: int, target: int, count: int) -> int:
    """Copy up to `count` bytes from one open file's position to another's; how many, 0 at the source's end.

    The kernel copies them where it can (not between all pairs of file systems). Raises `OSError`.
    """
    with suppress(OSError, AttributeError):
        if copied := os.copy_file_range(source, target, count):
            return copied
    data = os.read(source, min(count, WORTH_WRITEBACK))
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
    return len(data)


def start_writeback(fd: int) -> None:
    """Have the kernel begin to write what is in the file: a later sync waits less.

    It waits for nothing and promises nothing. Nor does it take an error that fsync would report: the kernel reports
    each lost page once, and to this call never.
    """
    if _SYNC_FILE_RANGE is not None:
        _SYNC_FILE_RANGE(fd, _FROM_THE_START, _TO_THE_END, _SYNC_FILE_RANGE_WRITE)


class NewFile(io.FileIO):
    """A file that is written front to back: a write stores everything or raises the port's error."""

    def __init__(self, fd: int, location: str) -> None:
        super().__init__(fd, "w")
        self._location = location
        self._not_begun = 0

    def write(self, data: Any, /) -> int:
        """Write all of it. Raises `StorageError`."""
        view = memoryview(data).cast("B")
        write_all(self.fileno(), view, self._location)
        self._not_begun += len(view)
        if self._not_begun >= WORTH_WRITEBACK:
            start_writeback(self.fileno())
            self._not_begun = 0
        return len(view)

    def close(self) -> None:
        """Close it. Raises `StorageError`."""
        with Failing("write", self._location):
            super().close()
