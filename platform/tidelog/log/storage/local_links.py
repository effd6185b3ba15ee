"""Second names for files: link(2), many at once, between two folders that are open meanwhile."""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from tidelog.log.base.rate import Rate
from tidelog.log.storage.local_errors import Failing, failed_or_done
from tidelog.log.storage.port import Linked

# Names that one thread gives in a row.
LINKED_AT_ONCE: Final = 100
# A file of another file system; one that has no links, or none to others' files; one that has as many names as it may.
_HAS_NO_LINK: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Links:
    """Links files of one folder into another one, at a rate.

    `temporary_name`, `make_folder` and `rate` are of the folder's store.
    """

    def __init__(self, temporary_name: Callable[[str], str], make_folder: Callable[[str], None], rate: Rate) -> None:
        self._temporary_name = temporary_name
        self._make_folder = make_folder
        self._rate = rate

    def make(self, source: str, target: str, names: Sequence[str]) -> Linked:
        """Link files, by absolute folders and their names; the absolute paths at the target of what is left undone.

        A name that is another file's there becomes this one's. Raises `StorageError`.
        """
        self._rate.take(len(names))
        try:
            from_folder = os.open(source, _FOLDER)
        except (FileNotFoundError, NotADirectoryError):
            return Linked(missing=tuple(f"{target}/{name}" for name in names))
        try:
            with Failing("create", target, failed_or_done):
                self._make_folder(target)
                into_folder = os.open(target, _FOLDER)
            try:
                return self._link(target, names, from_folder, into_folder)
            finally:
                os.close(into_folder)
        finally:
            os.close(from_folder)

    def _link(self, target: str, names: Sequence[str], from_folder: int, into_folder: int) -> Linked:
        missing, unlinked = [], []
        for name in names:
            try:
                self._give(target, name, from_folder, into_folder)
            except FileNotFoundError:
                missing.append(f"{target}/{name}")
            except OSError as error:
                location = f"{target}/{name}"
                if error.errno not in _HAS_NO_LINK:
                    raise failed_or_done("create", location, error) from error
                unlinked.append(location)
        return Linked(tuple(missing), tuple(unlinked))

    def _give(self, target: str, name: str, from_folder: int, into_folder: int) -> None:
        """Give the source's file the name at the target, also where it is another file's. Raises OSError."""
        try:
            os.link(name, name, src_dir_fd=from_folder, dst_dir_fd=into_folder)
            return
        except FileExistsError:
            if _is_one_file(name, from_folder, into_folder):
                return
        temporary = os.path.basename(self._temporary_name(target))
        os.link(name, temporary, src_dir_fd=from_folder, dst_dir_fd=into_folder)
        try:
            os.rename(temporary, name, src_dir_fd=into_folder, dst_dir_fd=into_folder)
        finally:  # it is still there where that failed, or where the name has become this file's meanwhile
            with suppress(OSError):
                os.unlink(temporary, dir_fd=into_folder)


def _is_one_file(name: str, *folders: int) -> bool:
    try:
        source, target = (os.stat(name, dir_fd=folder) for folder in folders)
    except FileNotFoundError:  # gone meanwhile
        return False
    return os.path.samestat(source, target)
