"""What a lake needs of a store, tried on a store: `tidelog check --store`.

Everything is tried in a folder of its own, which is removed at the end. Each demand is a rule of the storage port
(`tidelog.log.storage.port`). That one holds now is no proof that it always does; that one fails is proof enough.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import median
from threading import Lock
from typing import Any, Final

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import ObjectNotFoundError, StorageError
from tidelog.log.storage.port import Storage, TakenOnTrust
from tidelog.log.storage.proving import RACERS, RACES, ways_to, winners

OBJECTS: Final = 12
LARGE_BYTES: Final = 11 * 1024 * 1024
# Ages go by the store's clock alone, so one that is off does no harm; but people would wonder.
CLOCK_OFF_MS: Final = 60_000


class TrialResult(StrEnum):
    """The result of a trial. A warning asks for a look and rules nothing out."""

    HOLDS = "holds"
    WARNING = "warning"
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class Trial:
    """One demand: what it is, its result, and what was seen."""

    demand: str
    verdict: TrialResult
    seen: str


@dataclass(frozen=True, slots=True)
class Latency:
    """How long calls of a kind took, in ms; those of a race are not among them."""

    calls: int
    median_ms: float
    most_ms: float


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What was tried at a store. `place`: its server, "" where there is none. `left`: what could not be removed."""

    uri: str
    place: str
    trials: tuple[Trial, ...]
    latencies: Mapping[str, Latency]
    left: tuple[str, ...]

    @property
    def fit(self) -> bool:
        """Whether nothing speaks against a lake there."""
        return all(trial.verdict is not TrialResult.FAILS for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"fit": self.fit}


def check_store(storage: Storage, clock: Clock, ids: Ids, races: int = RACES) -> StoreReport:
    """Try a store, which need not hold a lake, and remove what was written. `races`: names that many writers race for.

    A demand that fails is in the report. Raises `StorageError` when not even the first object can be written: then the
    store can't be reached, or denies it, and nothing is known of it.
    """
    bench = _Bench(storage, clock, f"__tidelog-check-{ids.new()}", races)
    trials: list[Trial] = []
    try:
        bench.put("first", b"first")
        for demand, trial in _TRIALS.items():
            trials.append(_tried(demand, trial, bench))
    finally:
        left = bench.clear()
    place = storage.place if isinstance(storage, TakenOnTrust) else ""
    return StoreReport(storage.uri, place, tuple(trials), bench.latencies(), left)


class _FailedError(Exception):
    """A demand is not met; the message says what was seen instead."""


class _DoubtError(Exception):
    """A demand is met, and yet an operator should look."""


class _Bench:
    """A folder to try things in. Every call is timed, every path that is written is remembered."""

    def __init__(self, storage: Storage, clock: Clock, folder: str, races: int) -> None:
        self.storage = storage
        self.races = races
        self.clock = clock
        self.folder = folder
        self._lock = Lock()
        self._took_ms: dict[str, list[float]] = {}
        self._written: set[str] = set()

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def put(self, name: str, data: bytes) -> None:
        with self._timed("put", name):
            self.storage.put(self.path(name), data)

    def put_if_absent(self, name: str, data: bytes) -> bool:
        with self._timed("put-if-absent", name):
            return self.storage.put_if_absent(self.path(name), data)

    def race(self, ways: list[Storage], start: int, name: str) -> list[bool | None]:
        """Writers at once, each with its own number as bytes: whether each won, None where the store left it open."""
        self._remember(name)
        # A node that gives no answer now may be back in the next race.
        return winners([*ways], start, self.path(name), [b"%d" % racer for racer in range(RACERS)])

    def by_each(self, ways: list[Storage], name: str) -> list[bytes | None]:
        """The object's bytes by each way: b"" for one that has no object, None for one without an answer."""

        def told(way: Storage) -> bytes | None:
            try:
                return way.get(self.path(name))
            except ObjectNotFoundError:
                return b""
            except StorageError:
                return None

        return [told(way) for way in ways]

    def get(self, name: str) -> bytes | None:
        with self._timed("get"):
            try:
                return self.storage.get(self.path(name))
            except ObjectNotFoundError:
                return None

    def names(self, folder: str, after: str = "") -> list[str]:
        where = self.path(folder)
        with self._timed("list"):
            return [found.path[len(where) + 1 :] for found in self.storage.list_after(where, after)]

    def delete(self, name: str) -> None:
        with self._timed("delete"):
            self.storage.delete(self.path(name))

    def create_large(self, name: str, data: bytes, halfway: Callable[[], None]) -> None:
        with self._timed("upload of 11 MB", name), self.storage.create(self.path(name)) as file:
            file.write(data[: len(data) // 2])
            halfway()
            file.write(data[len(data) // 2 :])

    def read_part(self, name: str, start: int, size: int) -> bytes:
        with self._timed("read of a part"), self.storage.open(self.path(name)) as file:
            file.seek(start)
            return bytes(file.read(size))

    def clear(self) -> tuple[str, ...]:
        """Remove what was written; what is left."""
        for path in sorted(self._written):
            with suppress(StorageError):
                self.storage.delete(path)
                self._written.discard(path)
        return tuple(sorted(self._written))

    def latencies(self) -> dict[str, Latency]:
        return {
            kind: Latency(len(took), round(median(took), 3), round(max(took), 3))
            for kind, took in self._took_ms.items()
        }

    def _remember(self, name: str) -> None:
        with self._lock:
            self._written.add(self.path(name))

    @contextmanager
    def _timed(self, kind: str, written: str | None = None) -> Iterator[None]:
        if written is not None:
            self._remember(written)
        began_s = self.clock.elapsed_s()
        yield
        took_ms = (self.clock.elapsed_s() - began_s) * 1000
        with self._lock:
            self._took_ms.setdefault(kind, []).append(took_ms)


def _tried(demand: str, trial: Callable[[_Bench], str], bench: _Bench) -> Trial:
    try:
        return Trial(demand, TrialResult.HOLDS, trial(bench))
    except _DoubtError as e:
        return Trial(demand, TrialResult.WARNING, str(e))
    except (_FailedError, StorageError) as e:
        return Trial(demand, TrialResult.FAILS, str(e))


def _read_what_was_written(bench: _Bench) -> str:
    for i in range(OBJECTS):
        bench.put(f"plain/{i:03}", b"%d" % i)
        if bench.get(f"plain/{i:03}") != b"%d" % i:
            raise _FailedError("An object that was just put was not there, or was another, when it was got.")
    bench.put("plain/000", b"again")
    if bench.get("plain/000") != b"again":
        raise _FailedError("An object that was just replaced still showed its old bytes.")
    return f"{OBJECTS} objects were there as soon as they were put, and a replaced one showed its new bytes."


def _refuse_what_is_there(bench: _Bench) -> str:
    for i in range(OBJECTS):
        if not bench.put_if_absent(f"log/{i:03}", b"first"):
            raise _FailedError("An object that was not there was not created.")
        if bench.put_if_absent(f"log/{i:03}", b"second"):
            raise _FailedError("An object was created again although it was there: acknowledged records would be lost.")
        if bench.get(f"log/{i:03}") != b"first":
            raise _FailedError("An object was put over although that was refused.")
    bench.put("log/put", b"put")
    if bench.put_if_absent("log/put", b"second") or bench.get("log/put") != b"put":
        raise _FailedError("An object that a plain put had stored was created again.")
    return f"{OBJECTS} objects were created, and refused when they were there."


def _one_winner(bench: _Bench) -> str:
    unanswered = missed = 0
    ways = ways_to(bench.storage)
    for i in range(bench.races):
        name = f"race/{i:05}"
        answers = bench.race(ways, i * RACERS, name)
        won = [racer for racer, one in enumerate(answers) if one]
        unanswered += answers.count(None)
        there = bench.get(name)
        if len(won) > 1:
            raise _FailedError(
                f"{len(won)} of {RACERS} writers at once believed that they had created one object:"
                " acknowledged records would be lost."
            )
        if won and there != b"%d" % won[0]:
            raise _FailedError("The store let a writer create an object, and another's bytes were there.")
        if not won and there is None and None not in answers:
            raise _FailedError(f"None of {RACERS} writers at once created the object that all of them wanted.")
        if not won and there is not None and answers[int(there)] is False:
            raise _FailedError("The store refused a writer's object, and its bytes were there.")
        seen = bench.by_each(ways[1:], name)
        if any(data not in (None, b"", there) for data in seen):
            raise _FailedError("Two nodes of the store showed other bytes of one object.")
        missed += seen.count(b"") if there is not None else 0
    where = f", through {len(ways) - 1} nodes" if len(ways) > 1 else ""
    told = f"{bench.races} objects, each wanted by {RACERS} writers at once{where}, were created by one of them."
    if unanswered:
        told += f" The store left {unanswered} of {bench.races * RACERS} calls without a clear answer."
    if missed:
        raise _DoubtError(
            f"{told} {missed} times a node said that an object was not there which another one had: list all nodes as"
            " lake.s3.endpoint, so that a second one is asked."
        )
    return told


def _list_in_order(bench: _Bench) -> str:
    written = [f"{i:03}" for i in range(OBJECTS)]
    if bench.names("plain") != written:
        raise _FailedError("A listing did not show the objects that were put before, each once and in order.")
    if bench.names("plain", "004") != written[5:]:
        raise _FailedError("A listing from a name on did not show the objects behind it, in order.")
    bench.put("plain/folder/x", b"")
    if bench.names("plain") != written or bench.storage.list_folders(bench.path("plain")) != ["folder"]:
        raise _FailedError("A listing did not keep objects of a folder and folders in it apart.")
    return f"{OBJECTS} objects were listed as soon as they were put, in order, and from a name on."


def _large_objects(bench: _Bench) -> str:
    block = bytes(range(256)) * 4096
    data = (block * (LARGE_BYTES // len(block) + 1))[:LARGE_BYTES]
    early: list[bytes] = []

    def halfway() -> None:
        if bench.get("large/a") is not None:
            early.append(b"")

    bench.create_large("large/a", data, halfway)
    if early:
        raise _FailedError("An object was there before its upload had ended.")
    if bench.read_part("large/a", LARGE_BYTES - 5000, 1000) != data[-5000:-4000]:
        raise _FailedError("A part of a large object was read wrong.")
    return "An upload of 11 MB was there when it had ended and not before, and a part of it was read."


def _delete_for_good(bench: _Bench) -> str:
    for name in ("plain/000", "plain/001", "plain/001"):
        bench.delete(name)
        if bench.get(name) is not None:
            raise _FailedError("An object was still there after it was deleted.")
    if bench.names("plain", "") != [f"{i:03}" for i in range(2, OBJECTS)]:
        raise _FailedError("A listing still showed an object after it was deleted.")
    return "Deleted objects were gone, also from listings; what is not there can be deleted."


def _tell_time(bench: _Bench) -> str:
    began_ms = bench.clock.now_ms()
    bench.put("clock/now", b"")
    ended_ms = bench.clock.now_ms()
    (found,) = bench.storage.list_after(bench.path("clock"))
    off_ms = max(began_ms - 1000 - found.modified_ms, found.modified_ms - ended_ms, 0)
    if off_ms > CLOCK_OFF_MS:
        raise _DoubtError(
            f"The store's clock and this machine's are {off_ms / 1000:.0f} s apart. A lake does not mind;"
            " set one of them right if times are to be compared."
        )
    return "The store's clock and this machine's agree."


_TRIALS: Final[Mapping[str, Callable[[_Bench], str]]] = {
    "what was written is read": _read_what_was_written,
    "what is there is not created again": _refuse_what_is_there,
    "of many writers that create at once one wins": _one_winner,
    "listings are complete and in order": _list_in_order,
    "large objects appear whole": _large_objects,
    "what was deleted is gone": _delete_for_good,
    "the store tells the time": _tell_time,
}
