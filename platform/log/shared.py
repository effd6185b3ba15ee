"""Open lakes shared by whatever runs in one process: Spark starts its workers once and uses them again.

Opening a topic costs a checkpoint's reading, tailing it almost nothing, so a worker keeps its lakes open.
"""

import os
import threading

from tidelog.log.lake import Lake

_lock = threading.Lock()
_lakes: dict[tuple[int, str], Lake] = {}


def shared_lake(uri: str) -> Lake:
    """The process's own open lake at `uri`, which must be there. Not to be closed by the caller.

    Raises `LakeNotFoundError`. A forked process gets its own.
    """
    key = (os.getpid(), uri)
    with _lock:
        lake = _lakes.get(key)
        if lake is None:
            lake = _lakes[key] = Lake(uri, create=False)
    return lake
