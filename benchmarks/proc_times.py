"""Processor time and memory of processes with all that they have started, and of the others, from Linux' /proc."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """A process: which one has started it, what it is called, and processor time of all its threads, in seconds."""

    pid: int
    parent: int
    command: str
    processor_s: float


def processes(proc: Path = PROC) -> dict[int, Process]:
    """Those that run, by their id."""
    found = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                one = read(folder)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            found[one.pid] = one
    return found


def read(folder: Path) -> Process:
    """A process from its folder. Source: proc_pid_stat(5); a command may have spaces and brackets in it."""
    pid, _, rest = (folder / "stat").read_text(encoding="utf-8", errors="replace").partition(" (")
    command, _, numbers = rest.rpartition(") ")
    fields = numbers.split()
    return Process(int(pid), int(fields[1]), command, (int(fields[11]) + int(fields[12])) * _TICK_S)


def family(found: Mapping[int, Process], root: int) -> set[int]:
    """A process and all that it and they have started."""
    children: dict[int, list[int]] = {}
    for one in found.values():
        children.setdefault(one.parent, []).append(one.pid)
    members, left = set(), [root]
    while left:
        pid = left.pop()
        members.add(pid)
        left += children.get(pid, [])
    return members


def used_s(before: Mapping[int, Process], after: Mapping[int, Process], pids: Iterable[int]) -> float:
    """Processor time of some processes between two looks. What ended in between is not in it."""
    return sum(_since(before, after[pid]) for pid in pids if pid in after)


def others(
    before: Mapping[int, Process], after: Mapping[int, Process], own: Iterable[int], took_s: float
) -> dict[str, float]:
    """{command: cores} of all but our `own`, the busiest first; commands below a hundredth of a core are left out."""
    ours = set(own)
    cores: dict[str, float] = {}
    for pid, one in after.items():
        if pid not in ours:
            cores[one.command] = cores.get(one.command, 0.0) + _since(before, one) / took_s
    busy = {command: round(share, 2) for command, share in cores.items() if share >= 0.01}
    return dict(sorted(busy.items(), key=lambda item: -item[1]))


def memory_mib(pids: Iterable[int], proc: Path = PROC) -> float:
    """Memory of the largest of some processes."""
    largest = 0.0
    for pid in pids:
        try:
            pages = int((proc / str(pid) / "statm").read_text(encoding="ascii").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        largest = max(largest, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
    return largest


@contextmanager
def on_cores(cores: Iterable[int]) -> Iterator[None]:
    """What this thread starts in the block runs on these cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cores))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _since(before: Mapping[int, Process], one: Process) -> float:
    """What a process has used since; one that has its id from another began at nothing."""
    earlier = before.get(one.pid)
    began_s = earlier.processor_s if earlier and earlier.processor_s <= one.processor_s else 0.0
    return one.processor_s - began_s
