"""A POSIX folder as a store.

An object is a file. It gets its name when it is complete (`local_drafts`): by a link, which fails when the name is
taken, or by rename(2), which replaces. A process that dies in between may leave a temporary file `.<unique>.tmp`
behind; nothing reads or lists it. An object lasts when the file, its folder, and every folder above up to the first one
known to last were synced (`local_durability`).
"""

import errno
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import Any, BinaryIO, cast

import pyarrow as pa

from tidelog.log.base.clock import Clock, Ids, SystemClock, SystemIds
from tidelog.log.base.errors import InvalidPathError, InvalidUriError
from tidelog.log.base.rate import Rate
from tidelog.log.base.worker_threads import Helpers
from tidelog.log.storage.file_systems import is_this_machines, type_of
from tidelog.log.storage.local_drafts import Draft, Drafts, DraftStep
from tidelog.log.storage.local_durability import Durability
from tidelog.log.storage.local_errors import Failing, failed, failed_or_done, failed_to_read, not_found
from tidelog.log.storage.local_files import (
    WORTH_WRITEBACK,
    NewFile,
    copy_some,
    is_file,
    is_folder,
    require_file,
    start_writeback,
    write_all,
)
from tidelog.log.storage.local_links import LINKED_AT_ONCE, Links
from tidelog.log.storage.port import (
    Linked,
    ObjectInfo,
    OnThisMachine,
    Storage,
    check_folder,
    check_path,
    is_unfinished,
)

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # matters to a pipe only: opening it doesn't wait for its other end
_READ_BYTES = 64 * 1024
_IN_MEMORY = ("ramfs", "tmpfs")
# Threads that sync beside the caller's, where there is more to sync than the caller does sooner than they wake up.
_HELPERS = 3
_SERIAL_SYNCS = 4
# A file system's journal writes at once what all processes have changed, and an append's sync waits for that: 10,000
# names that are given or taken away change a thousand blocks of inodes and folders, an append two dozen. At this pace
# each append's sync takes a few of them with it.
_NAMES_PER_S = 20_000
_NAMES_BURST_S = 0.01
# Files that are open at once to be created together.
_MOST_OF_A_RUN = 64


class LocalStorage:
    """The files below a folder; the folder is created with the first object.

    `root` may be relative to the working directory. `unnamed`: whether new objects may be unnamed files at first, where
    the file system has them. Raises `InvalidUriError` for a root whose name Spark or deltalake would take for another
    place. Assumes that no program removes folders below the root while it runs.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        ids: Ids | None = None,
        clock: Clock | None = None,
        *,
        unnamed: bool = True,
    ) -> None:
        self._root = os.path.abspath(os.fspath(root))
        if any(c in self._root for c in "%?#"):
            raise InvalidUriError(
                f"The folder {self._root} can't hold a lake: in an address '%', '?' and '#' have meanings on which "
                "Spark and deltalake don't agree. Use a folder without them in its path."
            )
        self.uri = f"file://{self._root}"  # the path as it is: no percent-encoding
        self._unnamed = unnamed
        self._drafts = Drafts(ids or SystemIds(), unnamed=unnamed)
        self._durability = Durability(self._root)
        self._rate = Rate(clock or SystemClock(), _NAMES_PER_S, _NAMES_BURST_S)
        self._links = Links(self._drafts.temporary_name, self._durability.make_folder, self._rate)
        self._helpers = Helpers(_HELPERS, thread_name_prefix="tidelog-sync")
        self._prepares_beside = False

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process must not share the token that makes names of temporary files unique.
        return partial(LocalStorage, unnamed=self._unnamed), (self._root,)

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @cached_property
    def is_shared(self) -> bool:
        """Whether the folder may be another machine's too: a network disk, one of a virtual machine's host."""
        return not is_this_machines(self._root)

    @cached_property
    def _syncs_nothing(self) -> bool:
        """Whether the folder is in memory, where a sync is over at once."""
        return type_of(self._root) in _IN_MEMORY

    def prepare_beside(self) -> None:
        """From now on, have helpers open the files of the next objects, and not the callers that have stored one."""
        self._prepares_beside = True

    def local_path(self, folder: str) -> str:
        """The folder's absolute path."""
        check_folder(folder)
        return self._location(folder)

    # --- reading -------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises `ObjectNotFoundError`."""
        check_path(path)
        location = f"{self._root}/{path}"
        fd = _opened(location)
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
            status = os.stat(location)
        except OSError as error:
            raise failed_to_read(location, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise not_found(location)
        return ObjectInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)

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
        with Failing("list", self._location(folder)):
            try:
                with os.scandir(self._location(folder)) as entries:
                    return sorted(filter(wanted, entries), key=lambda e: e.name)
            except FileNotFoundError:
                return []

    def _infos(self, prefix: str, entries: list[os.DirEntry[str]]) -> Iterator[ObjectInfo]:
        for entry in entries:
            with Failing("list", entry.path):
                try:
                    status = entry.stat()
                except FileNotFoundError:
                    continue  # deleted since the folder was read
            yield ObjectInfo(prefix + entry.name, status.st_size, status.st_mtime_ns // 1_000_000)

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
        with Failing("delete", location, failed_or_done), suppress(FileNotFoundError):
            os.unlink(location)

    def remove_folders(self) -> None:
        """Remove the folders that hold nothing, the root too; one that another program fills meanwhile stays."""
        for folder, _, _ in os.walk(self._root, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)

    def _location(self, folder: str) -> str:
        return f"{self._root}/{folder}" if folder else self._root

    # --- writing -------------------------------------------------------------------------------------------

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Create the file unless one is there, durably: content first, beside what comes before, then the name."""
        check_path(path)
        location = f"{self._root}/{path}"
        folder = location[: location.rindex("/")]
        if (begun := self._drafts.begin(folder, data)) is not None:
            with closing(begun):
                return self._finished(begun, path, data, before)
        with closing(self._in_folder(folder, location, self._drafts.open)) as draft:
            write_all(draft.fd, data, location)
            if before:
                start_writeback(draft.fd)
                before()
            if os.access(location, os.F_OK):  # another writer's, meanwhile: a sync would be for nothing
                return self._found(folder, location)
            with Failing("write", location):
                os.fsync(draft.fd)
            with Failing("create", location):
                self._durability.make_name_durable(folder)
            try:
                draft.link(location)
            except FileExistsError:
                return self._found(folder, location)
            except OSError as error:
                if self._drafts.must_be_temporary(draft, error):
                    return self.put_if_absent(path, data)  # what comes before it is done
                raise failed_or_done("create", location, error) from error
        self._durability.sync_new_name(folder, location)
        if self._prepares_beside:
            self._helpers.submit(self._drafts.open_ahead)
        else:
            self._drafts.open_ahead()
        return True

    def _finished(self, draft: Draft, path: str, data: bytes, before: Callable[[], None] | None) -> bool:
        """As `put_if_absent`, of a file that has its content: the rest of its system calls are one call."""
        location = f"{self._root}/{path}"
        folder = location[: location.rindex("/")]
        if before:
            start_writeback(draft.fd)
            before()
        with Failing("create", location):
            self._durability.make_name_durable(folder)
        step, number = self._drafts.finish(draft, location)
        if step is DraftStep.DONE:
            return True
        if step is DraftStep.TAKEN or (step is DraftStep.NAMING and number == errno.EEXIST):
            return self._found(folder, location)
        error = OSError(number, os.strerror(number))
        if step is DraftStep.SYNC:
            raise failed("write", location, error) from error
        if step is DraftStep.SYNC_OF_NAME:
            raise self._durability.name_not_synced(folder, location, error) from error
        if self._drafts.must_be_temporary(draft, error):
            return self.put_if_absent(path, data)  # what comes before it is done
        raise failed_or_done("create", location, error) from error

    def _found(self, folder: str, location: str) -> bool:
        """What `put_if_absent` says of a name that is taken. Raises `StorageError` where no file has it."""
        require_file(location)
        self._durability.sync_found_name(folder, location)
        return False

    def create_run(self, objects: Iterable[tuple[str, bytes]]) -> int:
        """Create files of one folder in order, up to the first that is there: contents, then names; how many."""
        created, left = 0, iter(objects)
        while part := list(islice(left, _MOST_OF_A_RUN)):
            some = self._create_together(part)
            created += some
            if some < len(part):
                break
        return created

    def _create_together(self, objects: Sequence[tuple[str, bytes]]) -> int:
        """As `create_run`, where the file system's journal keeps names in the order in which they were given."""
        with ExitStack() as opened:
            drafts = []
            for path, data in objects:
                check_path(path)
                location = f"{self._root}/{path}"
                folder = location[: location.rindex("/")]
                draft = opened.enter_context(closing(self._in_folder(folder, location, self._drafts.open)))
                if draft.temporary:  # another file system, of which that is not known
                    return sum(1 for _ in takewhile(lambda one: self.put_if_absent(*one), objects))
                write_all(draft.fd, data, location)
                start_writeback(draft.fd)
                drafts.append((draft, location))
            with Failing("write", location):
                self._helpers.run_together([partial(os.fsync, draft.fd) for draft, _ in drafts])
            with Failing("create", location):
                self._durability.make_name_durable(folder)
            return self._name_in_order(drafts, folder, objects)

    def _name_in_order(
        self, drafts: Sequence[tuple[Draft, str]], folder: str, objects: Sequence[tuple[str, bytes]]
    ) -> int:
        created = 0
        try:
            for draft, location in drafts:
                draft.link(location)
                created += 1
        except FileExistsError:
            require_file(location)
            self._durability.sync_found_name(folder, location)
        except OSError as error:
            if not self._drafts.must_be_temporary(draft, error):
                raise failed_or_done("create", location, error) from error
            return created + self.create_run(objects[created:])
        finally:
            if created:
                self._durability.sync_new_name(folder, location)
        return created

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Create or replace the file; durable only after `sync`."""
        check_path(path)
        location = f"{self._root}/{path}"
        folder = location[: location.rindex("/")]
        if len(data) < WORTH_WRITEBACK and self._drafts.create(folder, location, data):
            return None
        with closing(self._in_folder(folder, location, self._drafts.open)) as draft:
            write_all(draft.fd, data, location)
            if len(data) >= WORTH_WRITEBACK:
                start_writeback(draft.fd)
            with Failing("write", location):
                draft.close_file()
            try:
                self._drafts.replace(draft, location)
            except OSError as error:
                if self._drafts.must_be_temporary(draft, error):
                    return self.put(path, data)
                raise failed_or_done("replace", location, error) from error

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file to write, renamed to the object's name at the end of the `with` block."""
        check_path(path)
        location = f"{self._root}/{path}"
        with closing(self._open_temporary(location)) as draft:
            raw, draft.fd = NewFile(draft.fd, location), -1
            try:
                file = io.BufferedWriter(raw)
                yield cast(BinaryIO, file)
                file.close()
            except BaseException:
                with suppress(Exception):  # the error that brought us here tells more
                    raw.close()
                raise
            with Failing("replace", location, failed_or_done):
                draft.rename(location)

    def copy_in(self, path: str, location: str, piece: int, before: Callable[[], None]) -> int:
        """Create or replace the file by a copy of another one, which the kernel makes; its bytes."""
        check_path(path)
        target = f"{self._root}/{path}"
        source = _opened(location)
        copied = 0
        try:
            with closing(self._open_temporary(target)) as draft, Failing("write", target):
                while True:
                    before()
                    left = piece
                    while left and (some := copy_some(source, draft.fd, left)):
                        left -= some
                    copied += piece - left
                    if left != piece:
                        start_writeback(draft.fd)
                    if left:
                        break
                draft.close_file()
                draft.rename(target)
        finally:
            os.close(source)
        return copied

    def links_from(self, source: Storage) -> bool:
        """Whether the other store's files are on this machine; those of another file system have to be copied."""
        return isinstance(source, OnThisMachine)

    def link_in(self, source: Storage, paths: Sequence[str]) -> Linked:
        """Give the source's files these names here, too; the names are made durable folder by folder."""
        by_folder: dict[str, list[str]] = {}
        for path in paths:
            check_path(path)
            folder, _, name = path.rpartition("/")
            by_folder.setdefault(folder, []).append(name)
        assert isinstance(source, OnThisMachine)
        make = self._links.make
        parts = [
            partial(make, source.local_path(folder), self._location(folder), names[at : at + LINKED_AT_ONCE])
            for folder, names in by_folder.items()
            for at in range(0, len(names), LINKED_AT_ONCE)
        ]
        undone = self._helpers.run_together(parts)
        self._durability.sync([], [self._location(folder) for folder in by_folder])
        root = len(self._root) + 1
        missing = [location[root:] for part in undone for location in part.missing]
        return Linked(tuple(missing), tuple(location[root:] for part in undone for location in part.unlinked))

    def delete(self, path: str) -> None:
        """Delete the file; one that is not there is no error."""
        check_path(path)
        location = f"{self._root}/{path}"
        self._rate.take(1)
        with Failing("delete", location, failed_or_done), suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(location)

    def sync(self, paths: Iterable[str]) -> list[str]:
        """fsync the files, their folders, and the folders above that may not last yet; the paths without a file."""
        wanted = list(paths)
        for path in wanted:
            check_path(path)
        files = [f"{self._root}/{path}" for path in wanted]
        folders = [*dict.fromkeys(file[: file.rindex("/")] for file in files)]
        shares = 1 if self._syncs_nothing else min(_HELPERS + 1, (len(files) + len(folders)) // _SERIAL_SYNCS)
        if shares <= 1:
            there = self._durability.sync(files, folders)
        else:
            syncs = [partial(self._durability.sync, files[i::shares], folders[i::shares]) for i in range(shares)]
            parts = self._helpers.run_together(syncs)
            there = [parts[i % shares][i // shares] for i in range(len(files))]
        return [path for path, is_there in zip(wanted, there, strict=True) if not is_there]

    def _open_temporary(self, location: str) -> Draft:
        return self._in_folder(location[: location.rindex("/")], location, self._drafts.open_temporary)

    def _in_folder(self, folder: str, location: str, open_draft: Callable[[str], Draft]) -> Draft:
        """Open a new file in a folder, which is made if it is not there."""
        with Failing("write", location):
            try:
                return open_draft(folder)
            except FileNotFoundError:
                self._durability.make_folder(folder)
                return open_draft(folder)


def _opened(location: str) -> int:
    """A descriptor that reads the file. Raises `ObjectNotFoundError`, `StorageError`."""
    try:
        return os.open(location, _READ)
    except FileNotFoundError:
        raise not_found(location) from None
    except OSError as error:
        raise failed_to_read(location, error) from error
