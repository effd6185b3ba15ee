"""What waits in a producer: counters of all its records, and a queue for each topic.

`produce` takes no lock: a lock costs as much as all the rest of it. It counts by one statement without a call, in
which an interpreter with a global lock changes no thread, and a deque's append is whole by itself. Without that lock
(free-threaded Python) counts would be lost: `require_global_lock`.
"""

import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from tidelog.clients.producer.records import Chunk, Part, Row, Rows

# About what one entry takes at most.
MOST_ROWS: Final = 250_000
MOST_BYTES: Final = 32 * 1024 * 1024

# More than ever waits: a committer that is at work needs no waking.
_NEVER: Final = 1 << 62


@dataclass
class InFlight:
    """Counters of a producer's records, and of their bytes: how many were handed in, and how many are completed.

    A record is completed once it needs nothing more: it was committed or given up, and its callback was made. `changed`
    is notified when records are completed or callbacks wait. `flushing`: how many calls wait until all is completed, so
    that nothing lingers. `lock` guards all but what is handed in.
    """

    added: int = 0
    added_size: int = 0
    completed: int = 0
    completed_size: int = 0
    flushing: int = 0
    closing: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.changed = threading.Condition(self.lock)

    @property
    def count(self) -> int:
        """How many records are not completed."""
        return self.added - self.completed


def require_global_lock() -> None:
    """Refuse a free-threaded interpreter whose global lock is off. Raises RuntimeError."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise RuntimeError(
            "Producer can't run on free-threaded Python: it counts its records without a lock of its own, and would"
            " lose some of them. Start Python with PYTHON_GIL=1, or take a build with the global interpreter lock."
        )


class TopicQueue:
    """The records of one topic that wait for their entry.

    A caller that appends to `items` wakes the committer where there are `wake_rows` of them, or where `added_size`
    has reached `wake_size`. `urgent`: what waits lingers no longer. `closed`: the committer has ended, and every append
    wakes.
    """

    def __init__(self, in_flight: InFlight) -> None:
        self.items: deque[Row | Part] = deque()
        self.parts = 0
        self.urgent = False
        self.wake_rows = _NEVER
        self.wake_size = _NEVER
        self.closed = False
        self._in_flight = in_flight
        self._ready = threading.Condition(in_flight.lock)

    def wake(self) -> None:
        """Wake the committer."""
        with self._in_flight.lock:
            self.wake_locked()

    def hurry(self) -> None:
        """Wake the committer, and have it wait for no more."""
        self.urgent = True
        self.wake()

    def wake_locked(self) -> None:
        """Wake the committer, with the lock held."""
        if not self.closed:
            self.wake_rows = self.wake_size = _NEVER
        self._ready.notify()

    def close_locked(self) -> None:
        """Note that the committer has ended."""
        self.closed = True
        self.wake_rows = self.wake_size = 0

    def wait_locked(self, rows: int, size: int, timeout_s: float | None) -> None:
        """Sleep until `rows` rows or `size` more bytes wait, `wake` is called, or the time is up."""
        self.wake_rows, self.wake_size = rows, self._in_flight.added_size + size
        if len(self.items) < rows:  # what came before the line above doesn't wake
            self._ready.wait(timeout_s)
        self.wake_rows = self.wake_size = _NEVER

    def add_locked(self, part: Part) -> None:
        """Append a part of a table."""
        self.parts += 1
        self.items.append(part)

    def size(self) -> int:
        """The bytes of the rows that wait."""
        # A list of it is made at once, while an iterator would meet the rows that come meanwhile.
        return sum(item.size if isinstance(item, Part) else item[4] for item in list(self.items))

    def take_locked(self) -> Chunk:
        """What comes first and fits into one entry. Something waits."""
        items = self.items
        self.urgent = False
        first = items[0]
        if isinstance(first, Part):
            self.parts -= 1
            items.popleft()
            return first
        rows: list[Row] = []
        if not self.parts:
            rows = [items.popleft() for _ in range(min(len(items), MOST_ROWS))]  # type: ignore[misc] # no part
        else:
            while items and len(rows) < MOST_ROWS and not isinstance(items[0], Part):
                rows.append(items.popleft())  # type: ignore[arg-type]
        sizes = [row[4] for row in rows]
        size = sum(sizes)
        if size > MOST_BYTES:
            ends = np.cumsum(sizes)
            fitting = max(1, int(np.searchsorted(ends, MOST_BYTES, side="right")))
            items.extendleft(reversed(rows[fitting:]))
            rows, size = rows[:fitting], int(ends[fitting - 1])
        return Rows.of(rows, size)


def parts_of(table: pa.Table) -> list[pa.Table]:
    """A table in parts of the size of an entry."""
    if not table.num_rows:
        return []
    by_size = max(1, MOST_BYTES * table.num_rows // max(table.nbytes, 1))
    step = min(MOST_ROWS, by_size)
    return [table.slice(at, step) for at in range(0, table.num_rows, step)]
