"""The election of the process that maintains a lake: of several, the one that began first and whose heartbeats go on.

Each has an object that it overwrites again and again. Ages are the store's times, compared with those of one's own
object. It is no lock: for a moment two may take the turn, which maintenance allows.
"""

import logging
import threading
from types import TracebackType
from typing import Final, Self

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import StorageError
from tidelog.log.delta import layout
from tidelog.log.storage.port import Storage

logger = logging.getLogger(__name__)

FOLDER: Final = f"{layout.OFFSETS_TABLE}/_tidelog/maintainers"
# A maintainer that was silent for so long is gone, and how often each shows that it is not.
SILENT_MS: Final = 60_000
_EVERY_S: Final = 15.0


class MaintainerElection:
    """One maintainer's candidacy among those of a lake. As a context manager it keeps it in the background."""

    def __init__(self, storage: Storage, clock: Clock, ids: Ids) -> None:
        self._storage = storage
        self.name = f"{clock.now_ms():015d}-{ids.new()}"
        self._path = f"{FOLDER}/{self.name}"
        self._had = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="tidelog-turn", daemon=True)

    def __enter__(self) -> Self:
        self.show()
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        try:
            self._storage.delete(self._path)
        except StorageError:
            return  # it expires

    def show(self) -> None:
        """Write a heartbeat. Raises `StorageError`."""
        self._storage.put(self._path, b"{}")

    def is_elected(self) -> bool:
        """Whether this one is elected. Deletes what maintainers have left that are gone. Raises `StorageError`."""
        self.show()
        found = {info.path: info.modified_ms for info in self._storage.list_after(FOLDER)}
        now_ms = found.get(self._path, 0)
        silent = [path for path, shown_ms in found.items() if now_ms - shown_ms > SILENT_MS]
        for path in silent:
            self._storage.delete(path)
        mine = min(found.keys() - silent, default=self._path) == self._path
        if mine != self._had:
            logger.info("Maintenance is %s", "this one's turn" if mine else "another one's turn")
        self._had = mine
        return mine

    def _keep(self) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                self.show()
            except StorageError as e:
                logger.warning("No heartbeat could be stored: %s", e)
