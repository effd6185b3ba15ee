"""What a process gives up for good before it runs what others wrote."""

import ctypes
import os
import sys
from contextlib import suppress
from typing import Final

_NO_NEW_PRIVILEGES: Final = 38  # PR_SET_NO_NEW_PRIVS, prctl(2)
_NICER: Final = 5


def confine(memory: int, seconds: float, threads: int) -> None:
    """Open nothing more, no file, socket or pipe; take `memory` bytes more at most, and so much time of a processor.

    What is open stays open, so whatever is to be loaded must be loaded before. On Windows there is no such thing.
    """
    if sys.platform == "win32":
        return
    import resource

    def limit(what: int, most: int) -> None:
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))

    with suppress(OSError):
        os.nice(_NICER)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CPU, int(seconds * threads) + 5)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        limit(resource.RLIMIT_AS, pages * resource.getpagesize() + memory)
    limit(resource.RLIMIT_NOFILE, 0)
