"""Open lakes shared by whatever runs in one process: Spark starts its workers once and uses them again.

Opening a topic costs a checkpoint's reading, tailing it almost nothing, so a worker keeps its lakes open.
"""

import gc
import os
import threading
from dataclasses import dataclass

from tidelog.log.base.backoff import PollBackoff
from tidelog.log.base.clock import SystemClock
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage, open_storage
from tidelog.log.storage.options import NO_OPTIONS, StoreOptions

# A process, an address, and how to reach it.
_Place = tuple[int, str, StoreOptions]
# When a lake's own file was written (ms since the epoch, the store's clock), and its bytes.
_Stamp = tuple[int, int]


@dataclass(slots=True)
class _Shared:
    lake: Lake
    stamp: _Stamp | None
    backoff: PollBackoff


_lock = threading.Lock()
_storages: dict[_Place, Storage] = {}
_lakes: dict[_Place, _Shared] = {}


def shared_storage(uri: str, options: StoreOptions = NO_OPTIONS) -> Storage:
    """The process's own store at `uri`, for callers that only read files. A forked process gets its own."""
    key = (os.getpid(), uri, options)
    with _lock:
        return _storage(key)


def shared_lake(uri: str, options: StoreOptions = NO_OPTIONS) -> Lake:
    """The process's own open lake at `uri`, which must be there. Not to be closed by the caller.

    It is opened again when the lake's own file has changed: its configuration counts from the next call on, and a
    lake that was deleted and made again in the same place is another one, whose topics must not be taken for
    the old ones. Raises `LakeNotFoundError`. A forked process gets its own.
    """
    key = (os.getpid(), uri, options)
    with _lock:
        shared = _lakes.get(key)
        # On a local disk a look costs nothing, and what was changed just now must count.
        if shared is not None and not shared.backoff.is_due and not shared.lake.uri.startswith("file:"):
            return shared.lake
        backoff = PollBackoff(SystemClock()) if shared is None else shared.backoff
        with backoff.poll():
            stamp = _stamp(_storage(key))
        if shared is None or stamp is None or stamp != shared.stamp:
            _lakes.pop(key, None)
            shared = _lakes[key] = _Shared(Lake(uri, create=False, options=options), stamp, backoff)
        return shared.lake


def _storage(key: _Place) -> Storage:
    storage = _storages.get(key)
    if storage is None:
        storage = _storages[key] = open_storage(key[1], key[2])
        # PySpark's daemon has a worker collect garbage after each task. What is imported by now is none, and to go over
        # its 60,000 objects takes longer than a task of a micro-batch.
        gc.freeze()
    return storage


def _stamp(storage: Storage) -> _Stamp | None:
    infos = (found for found in storage.list_after("") if found.path == layout.LAKE_FILE)
    return next(((found.modified_ms, found.size) for found in infos), None)
