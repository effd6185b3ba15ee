"""Time and chance, the only module that reads them from the machine.

Everything else takes a `Clock` and an `Ids`, so that a simulation can drive both from one seed.
"""

import secrets
import time
import uuid
from typing import Protocol


class Clock(Protocol):
    """What tidelog asks of time."""

    def now_ms(self) -> int:
        """Wall clock, ms since the epoch (UTC). May jump; never compare it across machines."""

    def elapsed_s(self) -> float:
        """Seconds on a clock that never jumps and goes on while the process or the machine is frozen."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


def processor_s() -> float:
    """Seconds of processor time that the calling thread has used."""
    return time.thread_time()


def process_processor_s() -> float:
    """Seconds of processor time that all threads of this process have used."""
    return time.process_time()


def machine_started_ms() -> float:
    """When this machine was started, ms since the epoch; infinity where it has no clock that tells."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return float("inf")
    return (time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)) * 1000


class Ids(Protocol):
    """What tidelog asks of chance."""

    def new(self) -> str:
        """A unique name: a UUID in its usual text form."""

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""

    def secret(self, size: int) -> bytes:
        """That many bytes that cannot be guessed."""


class SystemClock:
    """The machine's clocks: CLOCK_BOOTTIME where there is one, else the monotonic clock."""

    def __init__(self) -> None:
        self._elapsed_id = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now_ms(self) -> int:
        """Wall clock, ms since the epoch (UTC)."""
        return time.time_ns() // 1_000_000

    def elapsed_s(self) -> float:
        """Seconds since the machine started, suspended time included."""
        return time.clock_gettime(self._elapsed_id)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class SystemIds:
    """Ids from the machine's random source."""

    def new(self) -> str:
        """A random UUID."""
        return str(uuid.uuid4())

    def fraction(self) -> float:
        """A number in [0, 1) from a random UUID's bits."""
        return (uuid.uuid4().int & 0xFFFFFFFF) / 2**32

    def secret(self, size: int) -> bytes:
        """Bytes of the system's source for cryptography."""
        return secrets.token_bytes(size)
