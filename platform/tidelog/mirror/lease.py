"""Which mirror writes to a follower: a numbered lease in the follower, renewed while its mirror lives.

A lease is an object `__mirror/leases/<number>`: the mirror that creates the next number has the follower, and those
with smaller ones have lost it. Its mirror overwrites it each second; one that stays as it is belongs to a mirror that
is gone. A mirror that was frozen and has lost its lease does no harm: it puts entries as the source has them, and the
journal of its round carries its own number.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import LakeFollowsError, StorageError
from tidelog.log.delta.layout import MIRROR_FOLDER
from tidelog.log.storage.lease_keeper import KeptLease, LeaseKeeper, process_keeper
from tidelog.log.storage.leases import Lease, SilenceTimers, read_object
from tidelog.log.storage.port import Storage

LEASES: Final = f"{MIRROR_FOLDER}/leases"
RENEWED_EVERY_S: Final = 1.0
# A lease that stayed as it is for this time, by the clock of the mirror that waits for it, is up.
LASTS_S: Final = 5.0
_LOOK_S: Final = 0.2


class FollowerTakenError(LakeFollowsError):
    """Another mirror writes to the follower."""


class FollowerLease:
    """A mirror's right to write to a follower, for the time of a `with` block.

    Entering waits for a mirror that is silent, up to `LASTS_S`. Raises `FollowerTakenError` while another one lives,
    `StorageError`.
    """

    def __init__(self, storage: Storage, clock: Clock, run: str, keeper: LeaseKeeper | None = None) -> None:
        self._storage = storage
        self._clock = clock
        self._place = _place()
        self._says = {"run": run, "host": socket.gethostname(), "process": os.getpid(), "place": self._place}
        self._lost = False
        self.number = 0
        self._lease = self._of(0)
        self._keeper = keeper
        self._kept: KeptLease | None = None

    def __enter__(self) -> Self:
        self._take()
        keeper = self._keeper or process_keeper()
        self._kept = keeper.keep(f"the lease of the follower {self._storage.uri}", self._renew, RENEWED_EVERY_S)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._kept is not None:
            self._kept.stop()
        with suppress(StorageError, FollowerTakenError):
            self.require()
            self._release()

    def require(self, *, look: bool = True) -> None:
        """Raise `FollowerTakenError` when another mirror has taken the follower meanwhile; `StorageError`.

        `look` into the store; else it goes by the last look, of a second ago.
        """
        if look and self._numbers()[-1:] != [self.number]:
            self._lost = True
        if self._lost:
            raise FollowerTakenError(
                f"Another mirror has taken the follower {self._storage.uri}, because this one was silent for"
                f" {LASTS_S:g} s: this one stops. The other goes on."
            )

    def _take(self) -> None:
        while True:
            newest = max(self._numbers(), default=0)
            if newest:
                self._wait(newest)
            self.number = newest + 1
            self._lease = self._of(self.number)
            if self._lease.take() or self._is_ours():
                numbers = self._numbers()
                for number in numbers:
                    if number < self.number:
                        self._of(number).release()
                if numbers[-1:] == [self.number]:
                    return
                self._lease.release()  # it was frozen since it looked, and others have come and gone

    def _wait(self, number: int) -> None:
        """Wait until the newest lease is up. Raises `FollowerTakenError` when it is renewed."""
        timers: SilenceTimers[object] = SilenceTimers()
        first = lease = self._read(number)
        while lease is not None and not lease.get("released"):
            if lease != first:
                raise FollowerTakenError(
                    f"Another mirror writes to the follower {self._storage.uri}: process {lease.get('process')} on"
                    f" {lease.get('host')}. One is enough, and it goes on by itself. To replace it, stop it first."
                )
            if self._is_gone(lease) or timers.look("mirror", lease, LASTS_S, self._clock.elapsed_s()):
                return
            self._clock.sleep(_LOOK_S)
            lease = self._read(number)

    def _is_gone(self, body: Mapping[str, Any]) -> bool:
        """Whether a lease's process ran on this machine, and runs no more."""
        if self._place is None or body.get("place") != self._place:
            return False
        try:
            os.kill(int(body["process"]), 0)
        except ProcessLookupError:
            return True
        except (OSError, KeyError, ValueError, TypeError, OverflowError):
            return False
        return False

    def _is_ours(self) -> bool:
        """Whether the store repeated our own call, and so said that it is taken."""
        found = self._read(self.number)
        return found is not None and found.get("run") == self._says["run"]

    def _renew(self) -> None:
        if not self._lost:
            with suppress(FollowerTakenError):  # which the next round of the mirror raises
                self.require()
                self._lease.renew()

    def _release(self) -> None:
        """Say that the next mirror needs not wait."""
        self._lease.says["released"] = True
        self._lease.renew()

    def _of(self, number: int) -> Lease:
        return Lease(self._storage, _path(number), {**self._says, "released": False}, counted_as="count")

    def _read(self, number: int) -> Mapping[str, Any] | None:
        return read_object(self._storage, _path(number))

    def _numbers(self) -> list[int]:
        """The numbers of the leases there are, in order."""
        names = [o.path.rpartition("/")[2] for o in self._storage.list_after(LEASES)]
        return sorted(int(name) for name in names if name.isdigit())


def _path(number: int) -> str:
    return f"{LEASES}/{number:010d}"


def _place() -> str | None:
    """What tells this machine's processes from those of others; None where the system does not say."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None
