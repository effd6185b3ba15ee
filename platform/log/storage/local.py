"""A POSIX folder as a store.

An object is a file. It gets its name when it is complete: from a temporary file `.<unique>.tmp` in the same
folder, by link(2), which fails when the name is taken, or by rename(2), which replaces. A process that dies in
between leaves such a file behind; nothing reads or lists it.

What is durable: link and rename change a folder, so an object lasts when the file, its folder, and every
folder above up to the first one known to last were fsynced.
"""

import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from typing import Any, BinaryIO, cast

import pyarrow as pa

from tidelog.log.base.clock import Ids, SystemIds
from tidelog.log.base.errors import InvalidPathError, InvalidUriError
from tidelog.log.storage.file_systems import is_this_machines
from tidelog.log.storage.local_errors import (
    failed,
    failed_or_done,
    failed_to_read,
    not_found,
    outcome_unknown,
)
from tidelog.log.storage.local_files import NewFile, is_file, is_folder, require_file, send_off, write_all
from tidelog.log.storage.paths import check_folder, check_path, is_unfinished
from tidelog.log.storage.port import ObjectInfo

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # which only a pipe minds: nobody waits for its other end
_READ_BYTES = 64 * 1024


class LocalStorage:
    """The files below a folder; the folder is created with the first object.

    `root` may be relative to the working directory. Raises `InvalidUriError` for a root whose name Spark or
    deltalake would take for another place. Assumes that nobody removes folders below the root while it runs.
    """

    def __init__(self, root: str | os.PathLike[str], ids: Ids | None = None) -> None:
        self._root = os.path.abspath(os.fspath(root))
        if any(c in self._root for c in "%?#"):
            raise InvalidUriError(
                f"The folder {self._root} can't hold a lake: in an address '%', '?' and '#' have meanings on which "
                "Spark and deltalake don't agree. Use a folder without them in its path."
            )
        self._token = (ids or SystemIds()).new()
        self._count = count()
        # Folders whose own name is known to survive a power loss; folders that this process made; folders
        # that hold a name whose sync failed. Adding to and taking from a set is atomic, so there is no lock.
        self._lasting: set[str] = {"/"}
        self._made: set[str] = set()
        self._doubtful: set[str] = set()

    def __reduce__(self) -> tuple[type["LocalStorage"], tuple[str]]:
        # A copy in another process must not share the token that makes names of temporary files unique.
        return LocalStorage, (self._root,)

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @property
    def uri(self) -> str:
        """`file://` and the absolute path, as it is: no percent-encoding."""
        return f"file://{self._root}"

    @cached_property
    def is_shared(self) -> bool:
        """Whether the folder may be another machine's too: a network disk, one of a virtual machine's host."""
        return not is_this_machines(self._root)

    def local_path(self, folder: str) -> str:
        """The folder's absolute path."""
        check_folder(folder)
        return self._location(folder)

    # --- reading -------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises `ObjectNotFoundError`."""
        check_path(path)
        location = f"{self._root}/{path}"
        try:
            fd = os.open(location, _READ)
        except FileNotFoundError:
            raise not_found(location) from None
        except OSError as error:
            raise failed_to_read(location, error) from error
        try:
            data = os.read(fd, _READ_BYTES)
            if rest := os.read(fd, _READ_BYTES):  # a short read alone doesn't prove the end of the file
                parts = [data, rest]
                while rest := os.read(fd, 16 * _READ_BYTES):
                    parts.append(rest)
                data = b"".join(parts)
            if not data and not stat.S_ISREG(os.fstat(fd).st_mode):
                raise not_found(location)
        except OSError as error:
            raise failed_to_read(location, error) from error
        finally:
            os.close(fd)
        return data

    def head(self, path: str) -> ObjectInfo:
        """The file's size and time. Raises `ObjectNotFoundError`."""
        check_path(path)
        location = f"{self._root}/{path}"
        try:
            found = os.stat(location)
        except OSError as error:
            raise failed_to_read(location, error) from error
        if not stat.S_ISREG(found.st_mode):
            raise not_found(location)
        return ObjectInfo(path, found.st_size, found.st_mtime_ns // 1_000_000)

    def open(self, path: str, size: int | None = None) -> Any:  # noqa: ARG002 - the disk knows
        """A `pyarrow.OSFile`. Raises `ObjectNotFoundError`.

        No memory map: it opens small segments more slowly, and a failing disk would kill the process.
        """
        check_path(path)
        location = f"{self._root}/{path}"
        try:
            return pa.OSFile(location)
        except OSError as error:
            if error.errno is None and os.path.isdir(location):
                raise not_found(location) from None
            raise failed_to_read(location, error) from error

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """The files directly in `folder` whose name sorts after `after`, in lexical order."""
        found = self._entries(folder, lambda e: e.name > after and not is_unfinished(e.name) and is_file(e))
        return self._infos(f"{folder}/" if folder else "", found)

    def _entries(self, folder: str, wanted: Callable[[os.DirEntry[str]], bool]) -> list[os.DirEntry[str]]:
        """What is wanted of a folder, by name; nothing of one that is not there."""
        check_folder(folder)
        try:
            with os.scandir(self._location(folder)) as entries:
                return sorted(filter(wanted, entries), key=lambda e: e.name)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise failed("list", self._location(folder), error) from error

    def _infos(self, prefix: str, entries: list[os.DirEntry[str]]) -> Iterator[ObjectInfo]:
        for entry in entries:
            try:
                found = entry.stat()
            except FileNotFoundError:
                continue  # deleted since the folder was read
            except OSError as error:
                raise failed("list", entry.path, error) from error
            yield ObjectInfo(prefix + entry.name, found.st_size, found.st_mtime_ns // 1_000_000)

    def list_folders(self, folder: str) -> list[str]:
        """The names of the folders directly in `folder`, sorted, empty ones too."""
        return [e.name for e in self._entries(folder, is_folder)]

    def strangers(self, folder: str) -> list[str]:
        """The names directly in `folder` of what is no object, sorted."""
        return [e.name for e in self._entries(folder, lambda e: not is_file(e))]

    def unfinished(self, folder: str) -> list[ObjectInfo]:
        """The temporary files directly in `folder`; a process that died left them, or is writing them now."""
        found = self._entries(folder, lambda e: is_unfinished(e.name) and e.is_file(follow_symlinks=False))
        return list(self._infos(f"{folder}/" if folder else "", found))

    def discard_unfinished(self, path: str) -> None:
        """Delete a temporary file; one that is not there is no error."""
        folder, _, name = path.rpartition("/")
        check_folder(folder)
        location = f"{self._root}/{path}"
        if not is_unfinished(name):
            raise InvalidPathError(f"{location} is not an unfinished file, and only those are discarded here.")
        try:
            os.unlink(location)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise failed_or_done("delete", location, error) from error

    def _location(self, folder: str) -> str:
        return f"{self._root}/{folder}" if folder else self._root

    # --- writing -------------------------------------------------------------------------------------------

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create the file unless one is there, durably: content first, then the name."""
        check_path(path)
        location = f"{self._root}/{path}"
        folder = location[: location.rindex("/")]
        temporary = self._write(folder, location, data, durable=True)
        try:
            self._make_lasting(folder)
        except OSError as error:
            self._remove(temporary)
            raise failed("create", location, error) from error
        try:
            os.link(temporary, location)
        except FileExistsError:
            self._remove(temporary)
            require_file(location)
            self._settle(folder, location)
            return False
        except OSError as error:
            self._remove(temporary)
            raise failed_or_done("create", location, error) from error
        self._remove(temporary)
        try:
            self._fsync_folder(folder)
        except OSError as error:
            self._doubtful.add(folder)
            raise outcome_unknown("create", location, error) from error
        return True

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Create or replace the file; durable only after `sync`."""
        check_path(path)
        location = f"{self._root}/{path}"
        folder = location[: location.rindex("/")]
        self._rename(self._write(folder, location, data, durable=False), location)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file to write, renamed to the object's name at the end of the `with` block."""
        check_path(path)
        location = f"{self._root}/{path}"
        fd, temporary = self._open_temporary(location[: location.rindex("/")], location)
        raw = NewFile(fd, location)
        try:
            file = io.BufferedWriter(raw)
            yield cast(BinaryIO, file)
            file.close()
        except BaseException:
            with suppress(Exception):  # the error that brought us here tells more
                raw.close()
            self._remove(temporary)
            raise
        self._rename(temporary, location)

    def delete(self, path: str) -> None:
        """Delete the file; one that is not there is no error."""
        check_path(path)
        location = f"{self._root}/{path}"
        try:
            os.unlink(location)
        except (FileNotFoundError, IsADirectoryError):
            pass
        except OSError as error:
            raise failed_or_done("delete", location, error) from error

    def _write(self, folder: str, location: str, data: bytes | memoryview, *, durable: bool) -> str:
        """A temporary file that holds `data`; its path. An error leaves none behind."""
        fd, temporary = self._open_temporary(folder, location)
        try:
            try:
                write_all(fd, data)
                if durable:
                    os.fsync(fd)
                else:
                    send_off(fd, len(data))
            finally:
                os.close(fd)
        except BaseException as error:
            self._remove(temporary)
            if isinstance(error, OSError):
                raise failed("write", location, error) from error
            raise
        return temporary

    def _open_temporary(self, folder: str, location: str) -> tuple[int, str]:
        # The pid tells a forked child's names from its parent's.
        temporary = f"{folder}/.{self._token}-{os.getpid()}-{next(self._count)}.tmp"
        try:
            try:
                return os.open(temporary, _CREATE, 0o666), temporary
            except FileNotFoundError:
                self._make_folder(folder)
                return os.open(temporary, _CREATE, 0o666), temporary
        except OSError as error:
            raise failed("write", location, error) from error

    def _rename(self, temporary: str, location: str) -> None:
        try:
            os.rename(temporary, location)
        except OSError as error:
            self._remove(temporary)
            raise failed_or_done("replace", location, error) from error

    @staticmethod
    def _remove(temporary: str) -> None:
        # One that stays behind is hidden and harmless; the call's own outcome is what the caller must learn.
        with suppress(OSError):
            os.unlink(temporary)

    # --- durability ----------------------------------------------------------------------------------------

    def sync(self, paths: Iterable[str]) -> list[str]:
        """fsync the files, their folders, and the folders above that may not last yet; the paths without a file."""
        folders: dict[str, None] = {}
        missing = []
        for path in paths:
            check_path(path)
            location = f"{self._root}/{path}"
            if self._fsync_file(location):
                folders[location[: location.rindex("/")]] = None
            else:
                missing.append(path)
        for folder in folders:
            try:
                self._fsync_folder(folder)
                self._make_lasting(folder)
            except OSError as error:
                raise failed("sync", folder, error) from error
        return missing

    def _fsync_file(self, location: str) -> bool:
        """Whether there was a file to sync."""
        try:
            fd = os.open(location, _READ)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return False
                os.fsync(fd)
            finally:
                os.close(fd)
        except FileNotFoundError:
            return False
        except OSError as error:
            # The kernel reports a lost page once and then calls it clean, so a second try would lie.
            raise failed("sync", location, error) from error
        return True

    @staticmethod
    def _fsync_folder(folder: str) -> None:
        fd = os.open(folder, _READ | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _settle(self, folder: str, location: str) -> None:
        """Make the name that was found last, if it may be one whose sync failed before in this process.

        Its writer will take that name for its own success.
        """
        if folder in self._doubtful:
            try:
                self._fsync_folder(folder)
            except OSError as error:
                raise outcome_unknown("create", location, error) from error
            self._doubtful.discard(folder)

    def _make_folder(self, folder: str) -> None:
        # Marked before it is there: another thread that finds it must not take its name for durable.
        self._made.add(folder)
        self._lasting.discard(folder)
        try:
            os.mkdir(folder)
        except FileExistsError:
            return
        except FileNotFoundError:
            self._make_folder(os.path.dirname(folder))
            with suppress(FileExistsError):
                os.mkdir(folder)

    def _make_lasting(self, folder: str) -> None:
        """fsync the names of `folder` and of the folders above it, where that was not done before.

        Another process may have made them, so all of them up to the root count, and above the root those
        that this process made. Raises OSError.
        """
        done = []
        while folder not in self._lasting:
            above = os.path.dirname(folder)
            try:
                self._fsync_folder(above)
            except PermissionError:
                # Somebody else's folder above the root, which we can enter but not open.
                if len(folder) > len(self._root) or folder in self._made:
                    raise
            done.append(folder)
            if len(folder) <= len(self._root) and above not in self._made:
                break
            folder = above
        self._lasting.update(done)
