"""New files of a local disk: they have their content before they have their name.

There are two ways. An *unnamed* file (`O_TMPFILE`) gets its name by linkat(2): its folder changes once, so that a
watcher is woken once, and nothing is left of it when its writer dies. A *temporary* file `.<unique>.tmp` is in the
same folder until link(2) or rename(2) gives it the object's name; a writer that dies leaves it behind.

Small unnamed files are created by native code where it is built: the interpreter is left once for all of a file's
system calls, and so there is nothing to open ahead.
"""

import errno
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from itertools import count
from typing import Final

from tidelog.log.base.clock import Ids
from tidelog.log.base.native_code import native_module
from tidelog.log.storage.file_systems import type_of

NATIVE, _ = native_module("tidelog.log.storage.native_files", "native_files.pyx")
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_UNNAMED: Final = getattr(os, "O_TMPFILE", 0)  # Linux only
# Where fsync of a file without a name makes its content last, so that the name alone is left to be synced. It does
# nothing on btrfs, whose log passes over a file without links: after a power loss the entry would be empty.
UNNAMED_LAST_ON: Final = frozenset(("ext3", "ext4", "tmpfs", "xfs"))
# The answers of a kernel, a file system or a sandbox that knows no unnamed files, or can't name them.
_UNKNOWN: Final = frozenset((errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.EXDEV))
# Folders for which files are opened ahead.
_MOST_SPARE: Final = 16


class DraftStep(IntEnum):
    """Where the last steps of a file ended: all are done, or this one has failed."""

    DONE = 0
    TAKEN = 1  # its name was another file's before, and nothing was done
    SYNC = 2
    NAMING = 3
    SYNC_OF_NAME = 4  # which it has then


@dataclass(slots=True)
class Draft:
    """A new file, open for writing as `fd`. `temporary` is its path until it has its name; "" for an unnamed file."""

    fd: int
    temporary: str

    def link(self, location: str) -> None:
        """Give it its name. Raises `FileExistsError` where that is taken, and other OSErrors."""
        if self.temporary:
            os.link(self.temporary, location)
        else:
            # Both paths are absolute: src_dir_fd is for Python alone, which calls linkat(2) only where it is given one.
            os.link(_of_descriptor(self.fd), location, src_dir_fd=self.fd, follow_symlinks=True)

    def rename(self, location: str) -> None:
        """Give a temporary file its name, in place of what has it. Raises OSError."""
        os.rename(self.temporary, location)
        self.temporary = ""

    def close_file(self) -> None:
        """Close a temporary file before the draft ends. Raises OSError for what could not be written."""
        if self.temporary:  # an unnamed one is named while it is open, on file systems whose close(2) can't fail
            fd, self.fd = self.fd, -1
            os.close(fd)

    def close(self) -> None:
        """End the draft: nothing is left of it but the name that it was given."""
        # The call's own outcome is what its caller must learn; a temporary file that stays is hidden and harmless.
        with suppress(OSError):
            if self.fd >= 0:
                os.close(self.fd)
        with suppress(OSError):
            if self.temporary:
                os.unlink(self.temporary)


class Spares:
    """Unnamed files that are opened ahead, as to open one takes as long as to write it. For many threads.

    One for each of the folders that files were opened in last, from a folder's second file on: most get only one.
    """

    def __init__(self) -> None:
        self._held: dict[str, int | None] = {}  # by folder, the one that was used last at the end
        self._due: set[str] = set()
        self._lock = threading.Lock()
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._held)

    def take(self, folder: str) -> int | None:
        """The folder's file, if there is one, which is the caller's now; `refill` opens the next one."""
        if self._process != os.getpid():  # forked: what is open is the parent's: it will write them
            self._lock, self._process = threading.Lock(), os.getpid()
            self._due.clear()
            _close_all(self._held)
        with self._lock:
            if folder in self._held:
                self._due.add(folder)
            fd, self._held[folder] = self._held.pop(folder, None), None
            if len(self._held) > _MOST_SPARE:
                oldest = next(iter(self._held))
                self._due.discard(oldest)
                _close_all({oldest: self._held.pop(oldest)})
        return fd

    def refill(self, open_unnamed: Callable[[str], int | None]) -> None:
        """Open files for the folders whose files were taken. A folder for which that fails has none."""
        while self._due:
            with suppress(KeyError, OSError):
                folder = self._due.pop()
                fd = open_unnamed(folder)
                with self._lock:
                    if folder in self._held and self._held[folder] is None:
                        self._held[folder], fd = fd, None
                _close_all({folder: fd})


def _close_all(files: dict[str, int | None]) -> None:
    while files:
        fd = files.popitem()[1]
        if fd is not None:
            os.close(fd)


class Drafts:
    """Opens new files. `unnamed`: whether unnamed files are used where the file system has them."""

    def __init__(self, ids: Ids, *, unnamed: bool) -> None:
        self._token = ids.new()
        self._count = count()
        self._unnamed = unnamed and bool(_UNNAMED)
        # Whether a file system, by its device number, has unnamed files that last.
        self._chosen: dict[int, bool] = {}
        # One that has, for native code: it is the same for all folders of most lakes.
        self._device: int | None = None
        self._spares = Spares()

    def create(self, folder: str, location: str, data: bytes | memoryview) -> bool:
        """Create a file in one call of native code; False where that can't be, and there is no new file then."""
        if NATIVE is None or self._device is None:
            return False
        error: int = NATIVE.create(os.fsencode(folder), self._device, os.fsencode(location), data)
        return error == 0

    def begin(self, folder: str, data: bytes) -> Draft | None:
        """An unnamed file with its content, by one call of native code; None where that can't be."""
        if NATIVE is None or self._device is None:
            return None
        fd = NATIVE.begin(os.fsencode(folder), self._device, data)
        return None if fd < 0 else Draft(fd, "")

    @staticmethod
    def finish(draft: Draft, location: str) -> tuple[DraftStep, int]:
        """Sync what `begin` gave, name it, and sync the name: (how far that came, the number of the error)."""
        assert NATIVE is not None
        step, number = NATIVE.finish(draft.fd, os.fsencode(location), os.fsencode(os.path.dirname(location)))
        return DraftStep(step), number

    def open(self, folder: str) -> Draft:
        """A new file for an object in `folder`, by the way that suits the file system. Raises OSError."""
        fd = None
        if self._has_unnamed(folder):
            fd = self._spares.take(folder)
            fd = self._open_unnamed(folder) if fd is None else fd
        return Draft(fd, "") if fd is not None else self.open_temporary(folder)

    def open_ahead(self) -> None:
        """Open the files that are likely to be asked for next. Raises nothing."""
        self._spares.refill(lambda folder: self._open_unnamed(folder) if self._has_unnamed(folder) else None)

    def open_temporary(self, folder: str) -> Draft:
        """A temporary file in `folder`. Raises OSError."""
        temporary = self.temporary_name(folder)
        return Draft(os.open(temporary, _CREATE, 0o666), temporary)

    def replace(self, draft: Draft, location: str) -> None:
        """Give a file its name, in place of what has it. Raises OSError."""
        if not draft.temporary:
            try:
                draft.link(location)
                return
            except FileExistsError:
                temporary = self.temporary_name(os.path.dirname(location))
                draft.link(temporary)
                draft.temporary = temporary
        draft.rename(location)

    def temporary_name(self, folder: str) -> str:
        """A path in `folder` that no other file has, of a file that is not to be listed."""
        # The pid tells a forked child's names from its parent's.
        return f"{folder}/.{self._token}-{os.getpid()}-{next(self._count)}.tmp"

    def must_be_temporary(self, draft: Draft, error: OSError) -> bool:
        """Whether this error of `link` says that unnamed files can't be named here: from now on, none is opened."""
        if draft.temporary or not (error.errno in _UNKNOWN or not os.path.lexists(_of_descriptor(draft.fd))):
            return False
        self._chosen[os.fstat(draft.fd).st_dev], self._device = False, None
        return True

    def _has_unnamed(self, folder: str) -> bool:
        """Whether unnamed files are used there. Raises OSError for a folder that is not there."""
        if not self._unnamed:
            return False
        device = os.stat(folder).st_dev
        if device not in self._chosen:
            self._chosen[device] = type_of(folder) in UNNAMED_LAST_ON
        if self._chosen[device]:
            self._device = device
        return self._chosen[device]

    def _open_unnamed(self, folder: str) -> int | None:
        """An unnamed file; None where there turns out to be none."""
        try:
            return os.open(folder, _UNNAMED | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno not in _UNKNOWN:
                raise
            self._chosen[os.stat(folder).st_dev], self._device = False, None
            return None


def _of_descriptor(fd: int) -> str:
    return f"/proc/self/fd/{fd}"
