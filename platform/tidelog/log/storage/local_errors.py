"""What the operating system's error numbers mean to a caller of the storage port."""

import errno
import os
from collections.abc import Callable
from functools import partial

from tidelog.log.base.errors import (
    ObjectNotFoundError,
    StorageError,
    StorageFullError,
    StoragePermissionError,
    StorageUnavailableError,
)

_FULL = "Free space there (or raise the quota), then try again."
_DENIED = "Give the user of this process read and write access to the lake's folders."
_DAMAGED = "Look into the system's log for what is wrong with this disk or mount."

# Numbers that prove that nothing happened, with the class and the advice that a caller gets.
_KNOWN: dict[int, tuple[type[StorageError], str]] = {
    errno.ENOSPC: (StorageFullError, _FULL),
    errno.EDQUOT: (StorageFullError, _FULL),
    errno.EACCES: (StoragePermissionError, _DENIED),
    errno.EPERM: (StoragePermissionError, _DENIED + " A file system without hard links can't hold a lake."),
    errno.EROFS: (StoragePermissionError, "The file system is mounted read-only: mount it for writing."),
    errno.ENOENT: (
        StorageError,
        "A folder on the way is not there, or was deleted meanwhile: check the path.",
    ),
    errno.ENOTDIR: (StorageError, "A part of this path is a file, not a folder: check the lake's address."),
    errno.EISDIR: (StorageError, "A folder has the name of this object: remove or rename it."),
    errno.ENOTEMPTY: (StorageError, "A folder has the name of this object: remove or rename it."),
    errno.ENAMETOOLONG: (StorageError, "Use a shorter path."),
    errno.ELOOP: (StorageError, "Symbolic links on this path lead in a circle: check them."),
    errno.EMFILE: (StorageError, "Raise this process's limit of open files (ulimit -n)."),
    errno.ENFILE: (StorageError, "Raise the machine's limit of open files."),
    errno.EMLINK: (StorageError, "The file system allows no more hard links: put the lake on another one."),
    errno.EXDEV: (StorageError, "A mount lies inside the lake's folder: a folder must be on one file system."),
    errno.ENOTSUP: (StorageError, "The file system has no hard links: put the lake on one that has."),
    errno.ENOSYS: (StorageError, "The file system has no hard links: put the lake on one that has."),
}


def not_found(location: str) -> ObjectNotFoundError:
    """No object at this place."""
    return ObjectNotFoundError(f"There is no object {location}. Check the path, or whether it was deleted.")


def failed(action: str, location: str, error: OSError) -> StorageError:
    """An error after which nothing was changed, whatever its number."""
    kind, advice = _KNOWN.get(error.errno or 0, (StorageError, _DAMAGED))
    if error.errno == errno.ENOENT:
        advice = _of_a_link(location) or advice
    return kind(f"Could not {action} {location}: {_reason(error)}. {advice}")


def _of_a_link(location: str) -> str:
    """What to do about a link on the way that leads to nothing; "" when there is none."""
    way = location
    while way not in ("", "/"):
        if os.path.islink(way) and not os.path.exists(way):
            target = os.path.realpath(way)
            return f"{way} is a link to {target}, which is not there: make that folder, mount it, or remove the link."
        way = os.path.dirname(way)
    return ""


class Failing:
    """A `with` block whose OSErrors become the port's: those of `become`, which takes what `failed` takes."""

    def __init__(
        self, action: str, location: str, become: Callable[[str, str, OSError], StorageError] = failed
    ) -> None:
        self._error = partial(become, action, location)

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End. Raises `StorageError`."""
        if isinstance(error, OSError):
            raise self._error(error) from error


def failed_to_read(location: str, error: OSError) -> StorageError:
    """An error of a read: a missing object has its own class. A folder is no object, nor a link that leads nowhere."""
    if error.errno in (errno.ENOENT, errno.EISDIR):
        return not_found(location)
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO) and os.path.lexists(location):
        return not_found(location)  # the way there is sound: it is the name itself that something else has
    return failed("read", location, error)


def failed_or_done(action: str, location: str, error: OSError) -> StorageError:
    """An error of the very call that changes the name: unless its number proves otherwise, anything may be."""
    if error.errno in _KNOWN:
        return failed(action, location, error)
    return outcome_unknown(action, location, error)


def outcome_unknown(action: str, location: str, error: OSError) -> StorageUnavailableError:
    """An error that leaves open whether the change happened and lasts."""
    return StorageUnavailableError(
        f"No clear answer to an attempt to {action} {location}: {_reason(error)}. It may or may not have happened: "
        f"look before you repeat it. {_DAMAGED}"
    )


def _reason(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, "no error number")
    return f"{error.strerror or error} ({name})"
