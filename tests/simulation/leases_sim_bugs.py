"""Bugs to plant in the keeping of leases: each changes one rule of the product's code while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.log.base.errors import StorageError
from tidelog.log.storage.lease_keeper import KeptLease, LeaseKeeper


@contextmanager
def renews_too_late() -> Iterator[None]:
    """A keeper waits for longer than its leases last."""
    keep = LeaseKeeper.keep

    def late(self: Any, what: str, renew: Any, every_s: float) -> KeptLease:
        return keep(self, what, renew, 6 * every_s)

    with patch.object(LeaseKeeper, "keep", late):
        yield


@contextmanager
def waits_for_a_store_that_hangs() -> Iterator[None]:
    """A keeper renews one lease after the other, all in its own thread."""

    def in_turn(self: Any) -> None:
        while (kept := self._next()) is not None:
            self._renew(kept)

    with patch.object(LeaseKeeper, "_run", in_turn):
        yield


@contextmanager
def gives_a_lease_up_after_an_error() -> Iterator[None]:
    """What could not be renewed once is not renewed again."""
    renew = KeptLease.renew

    def once(self: Any) -> None:
        renewal = self._renew

        def tried() -> None:
            try:
                renewal()
            except StorageError:
                self._renew = lambda: None
                raise

        self._renew = tried
        renew(self)
        if self._renew is tried:
            self._renew = renewal

    with patch.object(KeptLease, "renew", once):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (renews_too_late, waits_for_a_store_that_hangs, gives_a_lease_up_after_an_error)
}
