"""Every adapter of the storage port, and the few things that tests do with any of them."""

from collections.abc import Callable
from pathlib import Path

from obstore.store import LocalStore, MemoryStore
from support import versitygw
from support.faults import FaultyStorage
from support.unnamed_files import with_unnamed_files

from tidelog.log.storage import LocalStorage, MemoryStorage, ObjectStorage, Storage

# Name -> a store that is empty when the folder is.
ADAPTERS: dict[str, Callable[[Path], Storage]] = {
    "local": lambda root: LocalStorage(with_unnamed_files(root)),
    "local, temporary files": lambda root: LocalStorage(root, unnamed=False),
    "memory": lambda _: MemoryStorage("m"),
    "objects in memory": lambda _: ObjectStorage("s3://bucket/root", store=MemoryStore()),
    "objects in files": lambda root: ObjectStorage("az://container/root", store=LocalStore(str(root))),
    "faulty without faults": lambda root: FaultyStorage(LocalStorage(root), lambda *call: None),
    "s3": lambda _: versitygw.server().place().storage(),
}
# Those that need no server.
INSIDE = tuple(name for name in ADAPTERS if name != "s3")


def names(storage: Storage, folder: str, after: str = "") -> list[str]:
    """The paths of a listing."""
    return [found.path for found in storage.list_after(folder, after)]


def write(storage: Storage, path: str, *parts: bytes, error: BaseException | None = None) -> None:
    """`create` the object; with an error, raise it inside the block after the parts."""
    with storage.create(path) as file:
        for part in parts:
            file.write(part)
        if error:
            raise error


# The ways to store an object: (storage, path, data).
WRITES: dict[str, Callable[[Storage, str, bytes], object]] = {
    "put": lambda storage, path, data: storage.put(path, data),
    "put_if_absent": lambda storage, path, data: storage.put_if_absent(path, data),
    "create": lambda storage, path, data: write(storage, path, data),
}
