"""Durability on a local disk: files and folders are synced, new folders up to the first whose name is durable.

link(2), rename(2) and mkdir(2) change a folder: a name survives when its folder was synced after.
"""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.storage import local_drafts
from tidelog.log.storage.local_errors import Failing, failed, outcome_unknown

_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # no wait for a pipe's other end


class Durability:
    """Makes files and folders below `root`, an absolute path, survive a power loss. For many threads.

    Assumes that no program removes folders below the root while it runs.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        # Folders whose own name is known to survive a power loss; folders that this process made; folders
        # that hold a name whose sync failed. Adding to and taking from a set is atomic, so there is no lock.
        self._durable: set[str] = {"/"}
        self._made: set[str] = set()
        self._doubtful: set[str] = set()

    def sync(self, files: Sequence[str], folders: Sequence[str]) -> list[bool]:
        """Sync files, the names in folders, and the folders' own: which files are there. Raises `StorageError`."""
        # The kernel reports a lost page once and then calls it clean, so a second try after an error would lie.
        done = _synced([*files, *folders], len(files))
        for location, answer in zip([*files, *folders], done, strict=True):
            if answer < 0:
                error = OSError(-answer, os.strerror(-answer))
                raise failed("sync", location, error) from error
        for folder, answer in zip(folders, done[len(files) :], strict=True):
            if answer:
                with Failing("sync", folder):
                    self.make_name_durable(folder)
        return [answer > 0 for answer in done[: len(files)]]

    def sync_new_name(self, folder: str, location: str) -> None:
        """Sync the name that a file was just given. Raises `StorageUnavailableError`: it is there, and may not last."""
        try:
            _fsync(folder, os.O_DIRECTORY)
        except OSError as error:
            raise self.name_not_synced(folder, location, error) from error

    def name_not_synced(self, folder: str, location: str, error: OSError) -> StorageUnavailableError:
        """What is raised when the sync of a name has failed that a file was just given."""
        self._doubtful.add(folder)
        return outcome_unknown("create", location, error)

    def sync_found_name(self, folder: str, location: str) -> None:
        """Sync a name that was found taken, if it may be one whose sync failed before in this process.

        Its writer will take that name for its own success. Raises as `sync_new_name`.
        """
        if folder in self._doubtful:
            self.sync_new_name(folder, location)
            self._doubtful.discard(folder)

    def make_folder(self, folder: str) -> None:
        """Make a folder and those above it. Raises OSError."""
        # Marked before it is there: another thread that finds it must not take its name for durable.
        self._made.add(folder)
        self._durable.discard(folder)
        try:
            os.mkdir(folder)
        except FileExistsError:
            return
        except FileNotFoundError:
            self.make_folder(os.path.dirname(folder))
            with suppress(FileExistsError):
                os.mkdir(folder)

    def make_name_durable(self, folder: str) -> None:
        """fsync the names of `folder` and of the folders above it, where that was not done before.

        Another process may have made them, so all of them up to the root count, and above the root those
        that this process made. Raises OSError.
        """
        done = []
        while folder not in self._durable:
            above = os.path.dirname(folder)
            try:
                _fsync(above, os.O_DIRECTORY)
            except PermissionError:
                # Another user's folder above the root, which we can enter but not open.
                if len(folder) > len(self._root) or folder in self._made:
                    raise
            done.append(folder)
            if len(folder) <= len(self._root) and above not in self._made:
                break
            folder = above
        self._durable.update(done)


def _synced(locations: list[str], files: int) -> list[int]:
    """Sync locations, first `files` files, then folders: 1 for each, 0 where there is none, less: an error's number."""
    if local_drafts.NATIVE is not None:
        done: list[int] = local_drafts.NATIVE.sync([os.fsencode(location) for location in locations], files)
        return done
    return [_outcome(location, 0 if at < files else os.O_DIRECTORY) for at, location in enumerate(locations)]


def _outcome(location: str, kind: int) -> int:
    try:
        return int(_fsync(location, kind))
    except FileNotFoundError:
        return 0
    except OSError as error:
        return -(error.errno or errno.EIO)


def _fsync(location: str, kind: int = 0) -> bool:
    """Sync a file, or a folder (`kind` os.O_DIRECTORY); False for what is neither. Raises OSError."""
    fd = os.open(location, _READ | kind)
    try:
        if not kind and not stat.S_ISREG(os.fstat(fd).st_mode):
            return False
        os.fsync(fd)
        return True
    finally:
        os.close(fd)
