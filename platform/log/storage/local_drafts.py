"""New files of a local disk: they have their content before they have their name.

There are two ways. An *unnamed* file (`O_TMPFILE`) gets its name by linkat(2): its folder changes once, so that a
watcher is woken once, and nothing is left of it when its writer dies. A *temporary* file `.<unique>.tmp` is in the
same folder until link(2) or rename(2) gives it the object's name; a writer that dies leaves it behind.
"""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

from tidelog.log.base.clock import Ids
from tidelog.log.storage.file_systems import type_of

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_UNNAMED: Final = getattr(os, "O_TMPFILE", 0)  # Linux only
# Where fsync of a file without a name makes its content last, so that the name alone is left to be synced. It does
# nothing on btrfs, whose log passes over a file without links: after a power loss the entry would be empty.
UNNAMED_LAST_ON: Final = frozenset(("ext3", "ext4", "tmpfs", "xfs"))
# The answers of a kernel, a file system or a sandbox that knows no unnamed files, or can't name them.
_UNKNOWN: Final = frozenset((errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.EXDEV))


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
        """Close the descriptor before the draft ends. Raises OSError for what could not be written."""
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


class Drafts:
    """Opens new files. `unnamed`: whether unnamed files are used where the file system has them."""

    def __init__(self, ids: Ids, *, unnamed: bool) -> None:
        self._token = ids.new()
        self._count = count()
        self._unnamed = unnamed and bool(_UNNAMED)
        # Whether a file system, by its device number, has unnamed files that last.
        self._chosen: dict[int, bool] = {}

    def open(self, folder: str) -> Draft:
        """A new file for an object in `folder`, by the way that suits the file system. Raises OSError."""
        fd = self._open_unnamed(folder) if self._unnamed else None
        return Draft(fd, "") if fd is not None else self.open_temporary(folder)

    def open_temporary(self, folder: str) -> Draft:
        """A temporary file in `folder`. Raises OSError."""
        # The pid tells a forked child's names from its parent's.
        temporary = f"{folder}/.{self._token}-{os.getpid()}-{next(self._count)}.tmp"
        return Draft(os.open(temporary, _CREATE, 0o666), temporary)

    def must_be_temporary(self, draft: Draft, error: OSError) -> bool:
        """Whether this error of `link` says that unnamed files can't be named here: from now on, none is opened."""
        if draft.temporary or not (error.errno in _UNKNOWN or not os.path.lexists(_of_descriptor(draft.fd))):
            return False
        self._chosen[os.fstat(draft.fd).st_dev] = False
        return True

    def _open_unnamed(self, folder: str) -> int | None:
        """An unnamed file; None where the file system has none that lasts."""
        device = os.stat(folder).st_dev
        chosen = self._chosen.get(device)
        if chosen is None:
            chosen = self._chosen[device] = type_of(folder) in UNNAMED_LAST_ON
        if not chosen:
            return None
        try:
            return os.open(folder, _UNNAMED | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno not in _UNKNOWN:
                raise
            self._chosen[device] = False
            return None


def _of_descriptor(fd: int) -> str:
    return f"/proc/self/fd/{fd}"
