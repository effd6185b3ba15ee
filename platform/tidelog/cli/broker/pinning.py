"""Processes pinned to cores: a process that wanders between two costs up to 1.6 times the time (Linux only)."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

import pyarrow as pa

from tidelog.log.base.clock import SystemIds

_PROC: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")


def cores_for(processes: int, proc: Path = _PROC, groups: Path = _GROUPS) -> list[int | None]:
    """A core for each of some processes; None for each where there is none of its own.

    They are taken from those that this process may use, from any on: another command on the machine may do the same.
    Where a cgroup has a quota of processor time, cores are shared with others, and none is taken.
    """
    if sys.platform != "linux":
        return [None] * processes
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < processes or has_quota(proc, groups):
        return [None] * processes
    first = UUID(SystemIds().new()).int % len(cores)
    return [cores[(first + number) % len(cores)] for number in range(processes)]


def pin(core: int) -> None:
    """Keep this process, and the threads that it begins from now on, on a core; Arrow's pools get a thread each."""
    if sys.platform == "linux":
        with suppress(OSError):  # the core was taken away since
            os.sched_setaffinity(0, {core})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def has_quota(proc: Path, groups: Path) -> bool:
    """Whether a cgroup of this process bounds its processor time: `proc` lists them, `groups` is where they are."""
    try:
        lines = proc.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds and "cpu" not in kinds.split(","):
            continue
        root, name = (groups / "cpu", "cpu.cfs_quota_us") if kinds else (groups, "cpu.max")
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            with suppress(OSError):
                if (group / name).read_text(encoding="utf-8").split()[0] not in ("max", "-1"):
                    return True
            if group == root:
                break
    return False
