"""Producing to a store behind a network, where each call takes 60 ms; and acknowledgements, by what a call takes."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from figures import Row
from plan import Plan

import tidelog
from tidelog.clients.producer.producer import Producer
from tidelog.log.storage import MemoryStorage, ObjectInfo, Storage

_CALL_S, _FAR_CALL_S = 0.06, 0.2
_VALUE_BYTES = 100
_PARTITIONS = 8
_PRODUCERS = 8
_ALONE_S, _TOGETHER_S = 10.0, 20.0
# Single records, the first ones of which are not counted; what may come on top of three calls.
_ACK_CALLS_S, _ACKS, _FIRST_ACKS, _OVERHEAD_S = (0.001, 0.005, 0.02, 0.06), 31, 5, 0.008
_TABLE_RECORDS, _WAITING_TABLES = 20_000, 2


def run(plan: Plan) -> list[Row]:
    """One producer, many on one topic, and many of which one is farther away: each has records all the time."""
    share = 0.5 if plan.quick else 1.0
    what = f"a store of {_CALL_S * 1e3:.0f} ms a call: "
    near, far = [_CALL_S] * _PRODUCERS, [_CALL_S] * (_PRODUCERS - 1) + [_FAR_CALL_S]
    alone, entries = _alone(_ALONE_S * share)
    return [
        Row(
            f"{what}`produce()` of {_VALUE_BYTES} B by one producer, {_PARTITIONS} partitions, acks=all",
            "≥ 100,000 rec/s",
            f"{alone:,.0f} rec/s ({entries:.1f} entries/s)",
            alone >= 100_000,
        ),
        _shared(f"{what}{_PRODUCERS} producers on one topic, the slowest's part of an even share", near, share, 25),
        *(_acks(call_s) for call_s in _ACK_CALLS_S),
        _shared(f"the same, the part of one for whom a call takes {_FAR_CALL_S * 1e3:.0f} ms", far, share, 5),
    ]


def _acks(call_s: float) -> Row:
    """How long one record waits for its acknowledgement, in calls of the store: a segment, an entry, its time."""
    memory = _new_topic()
    took_s = list[float]()
    with tidelog.Lake(memory.uri, storage=Slow(memory, call_s)) as lake, Producer(_conf(lake)) as producer:
        for value in _values(_ACKS + _FIRST_ACKS):
            began = time.perf_counter()
            producer.produce("records", value)
            producer.flush()
            took_s.append(time.perf_counter() - began)
    p50_s = sorted(took_s[_FIRST_ACKS:])[_ACKS // 2]
    most_s = 3 * call_s + _OVERHEAD_S
    return Row(
        f"a store of {call_s * 1e3:.0f} ms a call: one record at a time, acks=all, p50 of the acknowledgement",
        f"≤ 3 calls and {_OVERHEAD_S * 1e3:.0f} ms",
        f"{p50_s * 1e3:.1f} ms ({p50_s / call_s:.2f} calls)",
        p50_s <= most_s,
    )


def _shared(what: str, calls_s: list[float], share: float, least_percent: int) -> Row:
    """A row on the last producer where it is farther away, else on the slowest."""
    seconds = _TOGETHER_S * share
    counts, entries = _together(calls_s, seconds)
    parts = [count * len(counts) / max(1, sum(counts)) for count in counts]
    part = parts[-1] if calls_s[-1] > calls_s[0] else min(parts)
    return Row(
        what,
        f"≥ {least_percent}%",
        f"{part:.0%} (the fastest's {max(parts):.0%}; {sum(counts) / seconds:,.0f} rec/s in {entries / seconds:.1f}"
        " entries/s)",
        part >= least_percent / 100,
        {"records": counts, "entries": entries, "seconds": seconds},
    )


def _alone(seconds: float) -> tuple[float, float]:
    """Records and entries a second, from the first that is handed in to the last that is there."""
    memory = _new_topic()
    values = _values(10_000)
    with tidelog.Lake(memory.uri, storage=Slow(memory, _CALL_S)) as lake, Producer(_conf(lake)) as producer:
        producer.produce("records", values[0])
        producer.flush()
        began, sent = time.perf_counter(), 0
        while time.perf_counter() < began + seconds:
            try:
                for value in values:
                    producer.produce("records", value, value[:8])
                    sent += 1
            except BufferError:
                producer.poll(0.02)
        producer.flush()
        took = time.perf_counter() - began
    return sent / took, _version(memory) / took


def _together(calls_s: list[float], seconds: float) -> tuple[list[int], int]:
    """How many records of each producer were committed in time, and how many entries there were."""
    memory = _new_topic()
    counts = [0] * len(calls_s)
    until = time.perf_counter() + seconds

    def produce(number: int) -> None:
        table = pa.table({"value": pa.array(_values(_TABLE_RECORDS, number))})
        with tidelog.Lake(memory.uri, storage=Slow(memory, calls_s[number])) as lake, Producer(_conf(lake)) as producer:
            waiting: deque[Future[dict[int, tuple[int, int]]]] = deque()
            while time.perf_counter() < until:
                while len(waiting) < _WAITING_TABLES:
                    waiting.append(producer.produce_table("records", table))
                with suppress(TimeoutError):
                    waiting[0].result(max(0.0, until - time.perf_counter()))
                    waiting.popleft()
                    counts[number] += _TABLE_RECORDS
            producer.purge()
            producer.flush()

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(len(calls_s))]
    for thread in threads:
        thread.start()
    time.sleep(max(0.0, until - time.perf_counter()))
    entries = _version(memory)
    for thread in threads:
        thread.join()
    return counts, entries


def _conf(lake: tidelog.Lake) -> dict[str, Any]:
    return {"lake": lake, "acks": "all", "enable.idempotence": True, "compression.type": "none"}


def _values(count: int, seed: int = 1) -> list[bytes]:
    data = np.random.default_rng(seed).bytes(_VALUE_BYTES * count)
    return [data[at : at + _VALUE_BYTES] for at in range(0, len(data), _VALUE_BYTES)]


def _new_topic() -> MemoryStorage:
    memory = MemoryStorage("object-store")
    with tidelog.Lake(memory.uri, storage=memory) as lake:
        lake.create_topic("records", partitions=_PARTITIONS)
    return memory


def _version(memory: MemoryStorage) -> int:
    with tidelog.Lake(memory.uri, storage=memory, create=False) as lake:
        return lake.topic("records").state().version


class Slow:
    """A store in which each call takes `call_s`: half before it is executed, half after. Many go on at once."""

    def __init__(self, inner: Storage, call_s: float) -> None:
        self._inner = inner
        self._half_s = call_s / 2
        self._helpers = ThreadPoolExecutor(16)

    @property
    def uri(self) -> str:
        """The address of the store inside."""
        return self._inner.uri

    @contextmanager
    def _trip(self) -> Iterator[None]:
        time.sleep(self._half_s)
        try:
            yield
        finally:
            time.sleep(self._half_s)

    @property
    def is_shared(self) -> bool:
        """True, as of an object store."""
        return True

    def helpers(self) -> Executor:
        """Threads to call it from."""
        return self._helpers

    def get(self, path: str) -> bytes:
        """The object's bytes."""
        with self._trip():
            return self._inner.get(path)

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Create the object unless one is there."""
        with self._trip():
            return self._inner.put_if_absent(path, data, before)

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Create or replace the object."""
        with self._trip():
            self._inner.put(path, data)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file to write."""
        with self._trip(), self._inner.create(path) as file:
            yield file

    def head(self, path: str) -> ObjectInfo:
        """The object's size and time."""
        with self._trip():
            return self._inner.head(path)

    def sync(self, paths: Iterable[str]) -> list[str]:  # noqa: ARG002 - nothing is looked at
        """Every put is durable."""
        return []

    def open(self, path: str, size: int | None = None) -> Any:
        """A file to read."""
        with self._trip():
            return self._inner.open(path, size)

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects of a folder."""
        with self._trip():
            return self._inner.list_after(folder, after)

    def list_folders(self, folder: str) -> list[str]:
        """The folders of a folder."""
        with self._trip():
            return self._inner.list_folders(folder)

    def delete(self, path: str) -> None:
        """Delete the object."""
        with self._trip():
            self._inner.delete(path)
