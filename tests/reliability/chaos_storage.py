"""A local disk that is full, forbids, loses answers, and loses at a power cut what was not synced.

Workers of a chaos run reach their lake through `ChaosStorage`. Its faults are switched on and off by a file, so that
they strike all processes at once; root would not notice modes of files, and one machine has one disk. What was written
and not synced is noted in a file of each process; `cut_power` goes by those once all processes are dead.
"""

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, TypeVar

from tidelog.log.base.errors import StorageFullError, StoragePermissionError, StorageUnavailableError
from tidelog.log.storage import LocalStorage, ObjectInfo

T = TypeVar("T")

LOST_ANSWERS = 0.3
# Errors that the run makes say so.
MARK = "the chaos run says"


@dataclass(frozen=True)
class Faults:
    """What goes wrong now. `denied`, `lost`: names of workers; `stopped`: roles that are to end."""

    full: bool = False
    denied: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


class Switch:
    """The faults, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = (0, 0)
        self._faults = Faults()

    def set(self, faults: Faults) -> None:
        """Let this go wrong from now on."""
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(asdict(faults)))
        os.replace(beside, self._path)

    def get(self) -> Faults:
        """What goes wrong now."""
        stat = os.stat(self._path)
        changed = (stat.st_mtime_ns, stat.st_ino)  # two changes may have one time, but not one file
        if changed != self._seen:
            found = json.loads(self._path.read_text())
            self._faults = Faults(**{k: v if isinstance(v, bool) else tuple(v) for k, v in found.items()})
            self._seen = changed
        return self._faults


class PowerNotes:
    """What one process wrote and deleted, and what it synced: a line each, the first before, the other after."""

    def __init__(self, folder: Path, name: str) -> None:
        self._fd = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._grave = folder / f"{name}.graves"
        self._grave.mkdir()
        self._count = count()

    def will_change(self, kind: str, root: Path, path: str) -> None:
        """An object is about to be written or deleted: keep what is there."""
        grave = f"{self._grave}/{next(self._count)}"
        try:
            os.link(root / path, grave)
        except FileNotFoundError:
            grave = ""
        os.write(self._fd, f"{kind}\t{time.monotonic_ns()}\t{path}\t{grave}\n".encode())

    def synced(self, since_ns: int, paths: Iterable[str]) -> None:
        """A sync that began at `since_ns` succeeded."""
        os.write(self._fd, "".join(f"synced\t{since_ns}\t{path}\t\n" for path in paths).encode())


class ChaosStorage:
    """The storage port over a folder, with faults."""

    def __init__(self, root: Path, worker: str, switch: Switch, notes: PowerNotes, rng: Random) -> None:
        self._root = root
        self._inner = LocalStorage(root)
        self._worker = worker
        self._switch = switch
        self._notes = notes
        self._rng = rng

    @property
    def uri(self) -> str:
        return self._inner.uri

    @property
    def is_shared(self) -> bool:
        return self._inner.is_shared

    def local_path(self, folder: str) -> str:
        return self._inner.local_path(folder)

    def get(self, path: str) -> bytes:
        self._require(path)
        return self._inner.get(path)

    def head(self, path: str) -> ObjectInfo:
        self._require(path)
        return self._inner.head(path)

    def open(self, path: str, size: int | None = None) -> Any:
        self._require(path)
        return self._inner.open(path, size)

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        self._require(folder)
        return self._inner.list_after(folder, after)

    def list_folders(self, folder: str) -> list[str]:
        self._require(folder)
        return self._inner.list_folders(folder)

    def unfinished(self, folder: str) -> list[ObjectInfo]:
        self._require(folder)
        return self._inner.unfinished(folder)

    def discard_unfinished(self, path: str) -> None:
        self._require(path)
        self._inner.discard_unfinished(path)

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        self._require(path, writes=True)
        since_ns = time.monotonic_ns()
        stored = self._inner.put_if_absent(path, data, before)
        self._notes.synced(since_ns, [path])
        return self._answer(path, stored)

    def put(self, path: str, data: bytes | memoryview) -> None:
        self._require(path, writes=True)
        self._notes.will_change("wrote", self._root, path)
        self._inner.put(path, data)
        self._answer(path, None)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        self._require(path, writes=True)
        self._notes.will_change("wrote", self._root, path)
        with self._inner.create(path) as file:
            yield _File(file, lambda: self._require(path, writes=True))  # type: ignore[misc]
        self._answer(path, None)

    def sync(self, paths: Iterable[str]) -> list[str]:
        wanted = list(paths)
        for path in wanted:
            self._require(path)
        since_ns = time.monotonic_ns()
        missing = self._inner.sync(wanted)
        self._notes.synced(since_ns, wanted)
        if wanted:
            self._answer(wanted[0], None)
        return missing

    def delete(self, path: str) -> None:
        self._require(path)
        self._notes.will_change("deleted", self._root, path)
        self._inner.delete(path)
        self._answer(path, None)

    # --- faults --------------------------------------------------------------------------------------------

    def _require(self, path: str, *, writes: bool = False) -> None:
        faults = self._switch.get()
        if self._worker in faults.denied:
            raise StoragePermissionError(f"Could not reach {path}: permission denied, {MARK}.")
        if writes and faults.full:
            raise StorageFullError(f"Could not write {path}: no space left, {MARK}.")

    def _answer(self, path: str, answer: T) -> T:
        if self._worker in self._switch.get().lost and self._rng.random() < LOST_ANSWERS:
            raise StorageUnavailableError(f"The answer for {path} was lost, {MARK}.")
        return answer


class _File:
    """A file of `create` on a disk that may fill up meanwhile."""

    def __init__(self, file: BinaryIO, require: Callable[[], None]) -> None:
        self._file = file
        self._require = require

    def write(self, data: Any) -> int:
        self._require()
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


# --- the power cut -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Change:
    at_ns: int
    kind: str
    path: str
    grave: str


def cut_power(root: Path, notes: Path, rng: Random, spared: tuple[str, ...] = ()) -> Counter[str]:
    """Let each object that was not synced be as it was, as it is, or torn, by chance; all processes must be dead.

    What is there afterwards is durable. `spared`: folders that nothing happens to. The answer counts what became of
    objects.
    """
    changes: dict[str, list[_Change]] = defaultdict(list)
    synced: dict[str, int] = {}
    folders: dict[str, int] = {}
    for log in sorted(notes.glob("*.log")):
        for line in log.read_text().split("\n")[:-1]:
            kind, at, path, grave = line.split("\t")
            if kind != "synced":
                changes[path].append(_Change(int(at), kind, path, grave))
                continue
            synced[path] = max(int(at), synced.get(path, 0))
            folder = path.rpartition("/")[0]
            folders[folder] = max(int(at), folders.get(folder, 0))
    fates: Counter[str] = Counter()
    for path, made in sorted(changes.items()):
        if path.startswith(spared):
            continue
        settled = max(synced.get(path, 0), folders.get(path.rpartition("/")[0], 0) if _is_gone(made) else 0)
        open_ones = [change for change in sorted(made, key=lambda c: c.at_ns) if change.at_ns > settled]
        if open_ones:
            fates[_suffer(root / path, open_ones, rng)] += 1
    for log in notes.glob("*.log"):
        log.unlink()
    return fates


def _is_gone(made: list[_Change]) -> bool:
    return max(made, key=lambda c: c.at_ns).kind == "deleted"


def _suffer(file: Path, changes: list[_Change], rng: Random) -> str:
    """Decide over one object; `changes` are those since it was durable, oldest first."""
    fate = rng.random()
    first = changes[0]
    if fate < 0.4:
        return "stayed"
    if file.exists() and not first.grave:
        if fate < 0.6:
            os.truncate(file, rng.choice([0, file.stat().st_size // 2]))
            return "torn"
        file.unlink()
        return "gone"
    if not first.grave:
        return "stayed"
    file.unlink(missing_ok=True)
    os.link(first.grave, file)
    return "back" if changes[-1].kind == "deleted" else "as before"
