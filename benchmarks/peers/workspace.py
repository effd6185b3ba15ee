"""The folder a run works in: locked while the run lives, removed after it, by the next run if need be."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX, LOCK = "tidelog-peers-", ".lock"


class SpaceError(Exception):
    """The disk has not enough room."""


@contextmanager
def own(below: str | None = None) -> Iterator[Path]:
    """A new folder, gone afterwards; first the folders of runs that died are removed.

    A run holds a lock on a file beside its folder. The system lets go of it when the run dies, however it dies.
    """
    parent = Path(below or tempfile.gettempdir()).resolve()
    sweep(parent)
    folder, held = _locked(parent)
    try:
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _lock_path(folder).unlink(missing_ok=True)
        os.close(held)


def sweep(parent: Path) -> list[Path]:
    """End the processes and remove the folders of runs that are dead; the folders removed."""
    removed = []
    for lock in sorted(parent.glob(f"{PREFIX}*{LOCK}")):
        held = _try_lock(lock, os.O_RDWR)
        if held is None:
            continue
        folder = lock.with_suffix("")
        _end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            lock.unlink(missing_ok=True)
            removed.append(folder)
        os.close(held)
    return removed


def require_free(folder: Path, gigabytes: float) -> None:
    """SpaceError unless the disk of `folder` has so much room."""
    free = shutil.disk_usage(folder).free / 1e9
    if free < gigabytes:
        raise SpaceError(
            f"{folder.parent} has {free:.1f} GB free, and a run may take up to {gigabytes:g}. "
            "Make room, or name a folder on another disk by --work."
        )


def _lock_path(folder: Path) -> Path:
    return folder.with_name(folder.name + LOCK)


def _locked(parent: Path) -> tuple[Path, int]:
    while True:
        folder = parent / f"{PREFIX}{uuid.uuid4().hex[:12]}"
        held = _try_lock(_lock_path(folder), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        if held is not None:
            return folder, held


def _try_lock(path: Path, flags: int) -> int | None:
    """The locked file, or None when another holds it or removed it meanwhile."""
    try:
        held = os.open(path, flags, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(held).st_ino:
            return held
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(held)
    return None


def _end_processes(folder: Path) -> None:
    """Kill what still works in the folder: its leash has seen the run die and is stopping it, but not yet done."""
    told = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,command="], capture_output=True, text=True, check=True).stdout
    for line in told.splitlines():
        pid, _, command = line.strip().partition(" ")
        if f"{folder}/" in command and int(pid) != os.getpid():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
