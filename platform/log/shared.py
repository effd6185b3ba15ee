"""Open lakes shared by whatever runs in one process: Spark starts its workers once and uses them again.

Opening a topic costs a checkpoint's reading, tailing it almost nothing, so a worker keeps its lakes open.
"""

import os
import threading

from tidelog.log import layout
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage, open_storage

# When a lake's own file was written (ms since the epoch, the store's clock), and its bytes.
_Stamp = tuple[int, int]

_lock = threading.Lock()
_storages: dict[tuple[int, str], Storage] = {}
_lakes: dict[tuple[int, str], tuple[_Stamp | None, Lake]] = {}


def shared_storage(uri: str) -> Storage:
    """The process's own store at `uri`, for whoever only reads files. A forked process gets its own."""
    key = (os.getpid(), uri)
    with _lock:
        storage = _storages.get(key)
        if storage is None:
            storage = _storages[key] = open_storage(uri)
    return storage


def shared_lake(uri: str) -> Lake:
    """The process's own open lake at `uri`, which must be there. Not to be closed by the caller.

    It is opened anew when the lake's own file has changed: its configuration counts from the next call on, and a
    lake that somebody deleted and made again in the same place is another one, whose topics must not be taken for
    the old ones. Raises `LakeNotFoundError`. A forked process gets its own.
    """
    key = (os.getpid(), uri)
    stamp = _stamp(shared_storage(uri))
    with _lock:
        known, lake = _lakes.get(key, (None, None))
        if lake is None or stamp is None or stamp != known:
            lake = Lake(uri, create=False)
            _lakes[key] = (stamp, lake)
    return lake


def _stamp(storage: Storage) -> _Stamp | None:
    infos = (found for found in storage.list_after("") if found.path == layout.LAKE_FILE)
    return next(((found.modified_ms, found.size) for found in infos), None)
