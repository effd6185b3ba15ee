"""From a lake's address to its store."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.storage.addresses import parse_address
from tidelog.log.storage.local import LocalStorage
from tidelog.log.storage.memory import MemoryStorage
from tidelog.log.storage.objects import ObjectStorage
from tidelog.log.storage.options import StoreOptions
from tidelog.log.storage.port import Storage

_memory_stores: dict[str, MemoryStorage] = {}


def open_storage(uri: str | PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """The store at an address; nothing is read or created yet.

    - a plain path (relative to the working directory; text or a `Path`) or `file:///path`: a local folder;
    - `s3://bucket/path` (or `s3a:`), `gs://bucket/path`, `az://container/path`,
      `abfss://container@account.dfs.core.windows.net/path` (or `abfs:`): an object store, reached as `options`
      (`lake.s3.endpoint` ...) and the environment say;
    - `memory://name`: one store per name in this process.

    Raises `InvalidUriError`, and `InvalidConfigError` for options that the store does not take.
    """
    address = parse_address(uri)
    if address.is_object_store:
        return ObjectStorage(address.place, StoreOptions(options))
    if options:
        raise InvalidConfigError(
            f"The store {uri!r} takes no options, but got {', '.join(sorted(options))}: they belong to object "
            "stores. Leave them out, or correct the address."
        )
    return memory_storage(address.place) if address.scheme == "memory" else LocalStorage(address.place)


def memory_storage(name: str) -> MemoryStorage:
    """The one store of this name in this process, as `memory://name` opens it."""
    return _memory_stores.setdefault(name, MemoryStorage(name))  # one step, of many threads too
