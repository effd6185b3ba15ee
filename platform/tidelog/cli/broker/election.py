"""The election of the process that maintains a lake: of several, the one that began first and whose heartbeats go on.

Each has an object that it overwrites again and again. Ages are the store's times, compared with those of one's own
object. It is no lock: for a moment two may take the turn, which maintenance allows.
"""

import logging
from types import TracebackType
from typing import Final, Self

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import StorageError
from tidelog.log.delta import layout
from tidelog.log.storage.lease_keeper import KeptLease, LeaseKeeper, process_keeper
from tidelog.log.storage.leases import Lease
from tidelog.log.storage.port import Storage

logger = logging.getLogger(__name__)

FOLDER: Final = f"{layout.OFFSETS_TABLE}/_tidelog/maintainers"
# A maintainer that was silent for so long is gone, and how often each shows that it is not.
SILENT_MS: Final = 60_000
_EVERY_S: Final = 15.0


class MaintainerElection:
    """One maintainer's candidacy among those of a lake. As a context manager it is kept in the background."""

    def __init__(self, storage: Storage, clock: Clock, ids: Ids, keeper: LeaseKeeper | None = None) -> None:
        self._storage = storage
        self.name = f"{clock.now_ms():015d}-{ids.new()}"
        self._lease = Lease(storage, f"{FOLDER}/{self.name}", counted_as=None)
        self._had = False
        self._keeper = keeper
        self._kept: KeptLease | None = None

    def __enter__(self) -> Self:
        self.show()
        keeper = self._keeper or process_keeper()
        self._kept = keeper.keep(f"the candidacy of maintainer {self.name}", self.show, _EVERY_S)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._kept is not None:
            self._kept.stop()
        try:
            self._lease.release()
        except StorageError:
            return  # it expires

    def show(self) -> None:
        """Write a heartbeat. Raises `StorageError`."""
        self._lease.renew()

    def is_elected(self) -> bool:
        """Whether this one is elected. Deletes what maintainers have left that are gone. Raises `StorageError`."""
        self.show()
        times_ms = {info.path: info.modified_ms for info in self._storage.list_after(FOLDER)}
        now_ms = times_ms.get(self._lease.path, 0)
        silent = [path for path, shown_ms in times_ms.items() if now_ms - shown_ms > SILENT_MS]
        for path in silent:
            self._storage.delete(path)
        mine = min(times_ms.keys() - silent, default=self._lease.path) == self._lease.path
        if mine != self._had:
            logger.info("Maintenance is %s", "this one's turn" if mine else "another one's turn")
        self._had = mine
        return mine
