"""Which mirror writes to a follower: a numbered lease in the follower, renewed while its mirror lives.

A lease is an object `__mirror/leases/<number>`: the mirror that creates the next number has the follower, and those
with smaller ones have lost it. Its mirror overwrites it each second; one that stays as it is belongs to a mirror that
is gone. A mirror that was frozen and has lost its lease does no harm: it puts entries as the source has them, and the
journal of its round carries its own number.
"""

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import orjson

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import LakeFollowsError, ObjectNotFoundError, StorageError
from tidelog.log.delta.layout import MIRROR_FOLDER
from tidelog.log.storage.port import Storage

LEASES: Final = f"{MIRROR_FOLDER}/leases"
RENEWED_EVERY_S: Final = 1.0
# A lease that stayed as it is for this time, by the clock of the mirror that waits for it, is up.
LASTS_S: Final = 5.0
_LOOK_S: Final = 0.2


class FollowerTakenError(LakeFollowsError):
    """Another mirror writes to the follower."""


class Lease:
    """A mirror's right to write to a follower, for the time of a `with` block.

    Entering waits for a mirror that is silent, up to `LASTS_S`. Raises `FollowerTakenError` while another one lives,
    `StorageError`.
    """

    def __init__(self, storage: Storage, clock: Clock, run: str) -> None:
        self._storage = storage
        self._clock = clock
        self._place = _place()
        self._body = {"run": run, "host": socket.gethostname(), "process": os.getpid(), "place": self._place}
        self._count = 0
        self._lost = False
        self.number = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._take()
        self._thread = threading.Thread(target=self._keep, name="tidelog-mirror-lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(StorageError, FollowerTakenError):
            self.require()
            self._put(released=True)

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
            number = max(self._numbers(), default=0)
            if number:
                self._wait(number)
            self.number = number + 1
            if self._storage.put_if_absent(self._path(self.number), self._encoded()) or self._is_ours():
                for old in self._numbers():
                    if old < self.number:
                        self._storage.delete(self._path(old))
                return

    def _wait(self, number: int) -> None:
        """Wait until the newest lease is up. Raises `FollowerTakenError` when it is renewed."""
        first = self._read(number)
        until_s = self._clock.elapsed_s() + LASTS_S
        while first is not None and not first.get("released") and not self._is_gone(first):
            if self._clock.elapsed_s() >= until_s:
                return
            self._clock.sleep(_LOOK_S)
            found = self._read(number)
            if found is not None and found != first and not found.get("released"):
                raise FollowerTakenError(
                    f"Another mirror writes to the follower {self._storage.uri}: process {found.get('process')} on"
                    f" {found.get('host')}. One is enough, and it goes on by itself. To replace it, stop it first."
                )
            if found is None or found.get("released"):
                return

    def _is_gone(self, body: dict[str, Any]) -> bool:
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

    def _keep(self) -> None:
        while not self._ended.wait(RENEWED_EVERY_S):
            with suppress(StorageError):
                try:
                    self.require()
                except FollowerTakenError:
                    return
                self._put()

    def _is_ours(self) -> bool:
        """Whether the store repeated our own call, and so said that it is taken."""
        found = self._read(self.number)
        return found is not None and found.get("run") == self._body["run"]

    def _put(self, *, released: bool = False) -> None:
        self._count += 1
        self._storage.put(self._path(self.number), self._encoded(released=released))

    def _encoded(self, *, released: bool = False) -> bytes:
        return orjson.dumps(self._body | {"count": self._count, "released": released})

    def _read(self, number: int) -> dict[str, Any] | None:
        try:
            found = orjson.loads(self._storage.get(self._path(number)))
        except (ObjectNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _numbers(self) -> list[int]:
        """The numbers of the leases there are, in order."""
        names = [o.path.rpartition("/")[2] for o in self._storage.list_after(LEASES)]
        return sorted(int(name) for name in names if name.isdigit())

    def _path(self, number: int) -> str:
        return f"{LEASES}/{number:010d}"


def _place() -> str | None:
    """What tells this machine's processes from those of others; None where the system does not say."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None
