"""The storage port: what tidelog asks of a place that keeps its bytes.

Paths are relative to the lake's root, with `/` between parts, never starting or ending with one, no part
empty, `.` or `..` (`check_path`: anything else raises `InvalidPathError`). An object and a
folder of objects never share a path: what then happens is each store's own.

Contracts that hold for every adapter, and that the contract suite checks:

- **Atomic**: a reader sees an object whole or not at all, from `put`, `put_if_absent` and `create` alike.
- **Read your writes**: once a write has returned, every reader sees it.
- **Threads**: all methods may be called from many threads at once.
- **Errors**: only `tidelog.log.base.errors.StorageError` and its subclasses leave an adapter. Every one of them but
  `StorageUnavailableError` means that nothing was changed.
- **Folders** need no creation: they are there while objects are in them. A folder is no object: to `get`,
  `head`, `open`, `sync` and `delete` nothing is there. On a local disk a folder stays when its last object goes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO, Protocol, TypeGuard, runtime_checkable

from tidelog.log.base.errors import InvalidPathError

# Control characters, lone surrogates and the backslash have no one spelling across stores.
_FORBIDDEN = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)|[\x00-\x1f\x7f\\\ud800-\udfff]|(?:\A|/)\.[^/]*\.tmp\Z")

# Most paths, of which none is forbidden: seen in a fifth of the time.
_PLAIN = re.compile(r"(?:[\w=-][\w=.-]*+/)*+[\w=-][\w=.-]*+", re.ASCII)


def check_path(path: str) -> None:
    """Refuse a path that every adapter must refuse. Raises `InvalidPathError`."""
    if not _PLAIN.fullmatch(path) and _FORBIDDEN.search(path):
        raise InvalidPathError(
            f"The path {path!r} can't name an object. A path is relative to the lake's root: parts between single "
            "'/', none of them empty, '.' or '..', no control character or backslash, and no last part like "
            "'.x.tmp' (names of unfinished files). Pass such a path."
        )


def check_folder(folder: str) -> None:
    """Refuse a folder that is neither "" (the root) nor a path. Raises `InvalidPathError`."""
    if folder:
        check_path(folder)


def is_unfinished(name: str) -> bool:
    """Whether the name is that of a file still being written, which listings hide."""
    return name.startswith(".") and name.endswith(".tmp")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing: its whole path, its bytes, and when it was stored.

    `modified_ms` is the store's own clock, ms since the epoch; some stores tell whole seconds only.
    """

    path: str
    size: int
    modified_ms: int


class Storage(Protocol):
    """A place that keeps objects by path."""

    @property
    def uri(self) -> str:
        """The root's address as Spark, deltalake and a person would write it, without a trailing slash."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines may write here too.

        Then they go on while this one is paused, and `modified_ms` is of another clock than this machine's.
        """

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises `ObjectNotFoundError`."""

    def head(self, path: str) -> ObjectInfo:
        """The object as a listing tells it, without its bytes. Raises `ObjectNotFoundError`."""

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Create the object unless one is there: True when this call stored it, False when one is there.

        Of many callers at once at most one gets True, across processes and machines. Durable when it
        returns, name and content. False leaves the object that is there as it is; it may be this very call's
        own success, when the store or its client repeated it inside. `StorageUnavailableError` leaves open
        whether it was stored; a conflict that shows no object is one of these.
        `before` is called once, by the caller's thread, before the object can be seen and whatever the answer is; a
        local disk makes the content durable meanwhile. What it raises is raised, and then nothing was stored.
        """

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Create or replace the object. On a local disk it survives a power loss only after `sync`.

        A memoryview is of bytes ("B"), and may change once the call is over.
        """

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A writable file that becomes the object when its `with` block ends without an error.

        For data too large to hold in memory. Replaces what is there; an error inside the block leaves
        nothing behind, and what was there as it was. On a local disk it survives a power loss only after
        `sync`.
        """

    def sync(self, paths: Iterable[str]) -> list[str]:
        """Return when these objects and the folders that name them survive a power loss.

        The answer is the paths without an object, in the order given; they don't keep the others from being synced.
        Where every put is durable it looks at nothing and the answer is empty: what another process wrote, `head`
        tells. After an error the objects may be lost, even if a later `sync` succeeds: write them again.
        """

    def open(self, path: str, size: int | None = None) -> Any:
        """A seekable file to read, as pyarrow takes it. Raises `ObjectNotFoundError`.

        It goes on showing the object that was opened, or fails, when the object is replaced or deleted.
        `size`: the object's bytes, if the caller knows, which may save a request; a wrong one does no harm.
        """

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects directly in `folder` ("" for the root) whose name (last part) sorts after `after`.

        In lexical order. A folder that is not there lists as empty. On a local disk it is no snapshot:
        an object created during the call may be missing while a later one is there.
        """

    def list_folders(self, folder: str) -> list[str]:
        """The names of the folders directly in `folder` ("" for the root), sorted."""

    def delete(self, path: str) -> None:
        """Delete the object; one that is not there is no error.

        On a local disk a power loss may bring it back.
        """


@runtime_checkable
class TakenOnTrust(Protocol):
    """A store whose put-if-absent is a server's, which may not honour it: `proving` tries before anything changes.

    `proven`: whether it was seen to honour it. `place`: the server, for messages.
    """

    proven: bool

    @property
    def place(self) -> str:
        """The server's address, as the store is configured with it."""

    def by_address(self) -> Sequence[Storage]:
        """The store by each address that the server's name has, by requests that are not repeated.

        None where the name has one address, or where which one is taken can't be chosen.
        """


@runtime_checkable
class SeveralNodes(Protocol):
    """A replicated store with several nodes, of which one that has just come back may miss what is stored.

    A conditional put is decided by all of them, so it proves what a single node's word does not.
    """

    @property
    def several(self) -> bool:
        """Whether it has more than one: then `get` asks two before it says that an object is not there."""

    def get_from_one(self, path: str) -> bytes:
        """The object's bytes by a single request. Raises `ObjectNotFoundError`, which proves nothing."""


def asks_two(storage: Storage) -> bool:
    """Whether "not there" is the word of two nodes by `get`, and of one by `get_from_one`."""
    return isinstance(storage, SeveralNodes) and storage.several


@runtime_checkable
class LeavesUnfinished(Protocol):
    """A store in which a writer that dies leaves a file behind, which nothing else lists (a local disk)."""

    def unfinished(self, folder: str) -> list[ObjectInfo]:
        """The unfinished files directly in `folder`, those of writers at work among them."""

    def discard_unfinished(self, path: str) -> None:
        """Delete a file that `unfinished` listed; one that is not there is no error."""


@runtime_checkable
class HoldsStrangers(Protocol):
    """A store in which what is no object takes an object's name: no object can be created under it (a local disk)."""

    def strangers(self, folder: str) -> list[str]:
        """The names of those directly in `folder`, sorted: folders, links that lead nowhere, pipes, sockets."""


@runtime_checkable
class HoldsFolders(Protocol):
    """A store in which a folder stays when its last object goes (a local disk)."""

    def remove_folders(self) -> None:
        """Remove the folders that hold nothing, from the lowest up to the root itself."""


@runtime_checkable
class OnThisMachine(Protocol):
    """A store whose folders are this machine's own, so that a file-system watcher can follow them."""

    def local_path(self, folder: str) -> str:
        """The absolute path of `folder` ("" for the root) in the file system, there or not."""


@runtime_checkable
class CopiesFiles(Protocol):
    """A store on this machine, whose objects may be made from the machine's files without their bytes being read."""

    def copy_in(self, path: str, location: str, piece: int, before: Callable[[], None]) -> int:
        """Create or replace an object by a copy of the file at the absolute path `location`; its bytes.

        `before` is called before each `piece` bytes. Durable as `put` is. Raises `ObjectNotFoundError`.
        """


@dataclass(frozen=True, slots=True)
class Linked:
    """What `link_in` left undone: paths that are not at the source, and paths whose bytes have to be copied."""

    missing: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()


@runtime_checkable
class LinksObjects(Protocol):
    """A store that makes objects of another one's without their bytes passing through this process.

    A local disk links files, so that a file is there once for both; an object store copies inside of itself. For
    objects that never change: what replaces or deletes one of the two leaves the other as it is.
    """

    def links_from(self, source: Storage) -> bool:
        """Whether objects of this store can be linked here: it is of the same kind, and in the same place."""

    def link_in(self, source: Storage, paths: Sequence[str]) -> Linked:
        """Create or replace the objects at `paths` by those that the source has there; what is left undone.

        Their names survive a power loss when it returns, and their content does where it does at the source. Raises
        `StorageError` where a store gives no answer: then some may be there.
        """


@runtime_checkable
class CreatesRuns(Protocol):
    """A store in which objects that are created one after another need not wait one by one for the disk."""

    def create_run(self, objects: Iterable[tuple[str, bytes]]) -> int:
        """Create objects of one folder in this order, up to the first that is there; how many were created.

        Each as `put_if_absent` would. After a crash or a power loss the first of them are there, and no others; so they
        are after an error. Durable when it returns.
        """


@runtime_checkable
class ReadByEngines(Protocol):
    """A store that other engines reach with options, as object_store (deltalake's and Polars') takes them."""

    def engine_options(self) -> dict[str, str]:
        """The options, credentials among them."""


@runtime_checkable
class PreparesObjects(Protocol):
    """A store that prepares for the next objects when it has stored one: its caller waits for that, too."""

    def prepare_beside(self) -> None:
        """From now on, have other threads prepare: for processes in which others wait for what is stored."""


@runtime_checkable
class Distant(Protocol):
    """A store behind a network, which answers many calls at once in hardly more time than one.

    Callers then ask for what they need beside one another, and leave others time for their turn.
    """

    def helpers(self) -> Executor:
        """Threads to call the store from. What they run must not wait for any other of them."""


def is_distant(storage: Storage) -> TypeGuard[Distant]:
    """Whether a store is `Distant`, for callers that ask for each record: a protocol is asked once for each class."""
    return _is_distant(type(storage))


@cache
def _is_distant(kind: type) -> bool:
    return issubclass(kind, Distant)
