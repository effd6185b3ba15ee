"""From a lake's address to its store."""

import re
from collections.abc import Mapping
from os import PathLike, fspath
from threading import Lock
from typing import Any

from tidelog.log.errors import InvalidConfigError, InvalidUriError
from tidelog.log.storage.local import LocalStorage
from tidelog.log.storage.memory import MemoryStorage
from tidelog.log.storage.objects import ObjectStorage
from tidelog.log.storage.option_table import SCHEMES
from tidelog.log.storage.options import StoreOptions
from tidelog.log.storage.port import Storage

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):/")
_OBJECT_SCHEMES = tuple(scheme for schemes in SCHEMES.values() for scheme in schemes)

_memory_stores: dict[str, MemoryStorage] = {}
_memory_lock = Lock()


def open_storage(uri: str | PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """The store at an address; nothing is read or created yet.

    - a plain path (relative to the working directory; text or a `Path`) or `file:///path`: a local folder;
    - `s3://bucket/path` (or `s3a:`), `gs://bucket/path`, `az://container/path`,
      `abfss://container@account.dfs.core.windows.net/path` (or `abfs:`): an object store, reached as `options`
      (`lake.s3.endpoint` ...) and the environment say;
    - `memory://name`: one store per name in this process.

    Raises `InvalidUriError`, and `InvalidConfigError` for options that the store does not take.
    """
    if isinstance(uri, PathLike):
        uri = fspath(uri)
    if not isinstance(uri, str):
        raise InvalidUriError(
            f"The lake's address is {type(uri).__name__}. Pass a text or a Path: a folder's path, or an address."
        )
    found = _SCHEME.match(uri)
    scheme = (found[1] or found[2]).lower() if found else ""
    if scheme in _OBJECT_SCHEMES:
        return ObjectStorage(uri, StoreOptions(options))
    if options:
        raise InvalidConfigError(
            f"The store {uri!r} takes no options, but got {', '.join(sorted(options))}: they belong to object "
            "stores. Leave them out, or correct the address."
        )
    if scheme == "memory":
        return memory_storage(uri[len("memory://") :].rstrip("/"))
    if scheme in ("", "file"):
        return LocalStorage(_local_path(uri, scheme))
    raise InvalidUriError(
        f"The address scheme {scheme + '://'!r} is unknown. A lake lives in a local folder (a path or file:///path), "
        "at s3://, gs://, az:// or abfss://, or at memory://name in tests. Use one of these."
    )


def is_object_store(uri: str) -> bool:
    """Whether the address leads to an object store, by its scheme."""
    found = _SCHEME.match(uri)
    return found is not None and (found[1] or "").lower() in _OBJECT_SCHEMES


def memory_storage(name: str) -> MemoryStorage:
    """The one store of this name in this process, as `memory://name` opens it."""
    if not name or "/" in name:
        raise InvalidUriError(f"{name!r} can't name a store in memory: write memory://name, without a path.")
    with _memory_lock:
        if name not in _memory_stores:
            _memory_stores[name] = MemoryStorage(name)
        return _memory_stores[name]


def _local_path(uri: str, scheme: str) -> str:
    if not scheme:
        if not uri:
            raise InvalidUriError("The lake's address is empty. Pass a folder's path or an address like file:///data.")
        return uri
    path = uri[len("file:") :]
    if path.startswith("//"):
        path = path[2:]
        if not path.startswith("/"):
            raise InvalidUriError(
                f"{uri!r} names the host {path.split('/', 1)[0]!r}, and a local folder has none. "
                "Write three slashes before an absolute path: file:///data/lake."
            )
    return path
