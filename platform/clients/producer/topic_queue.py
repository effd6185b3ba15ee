"""What waits in a producer: one account of all its records, and a queue for each topic.

`produce` takes no lock: a lock costs as much as all the rest of it. What it does to the account is one statement
without a call, in which the interpreter changes no thread, and a deque's append is whole by itself.
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from tidelog.clients.producer.records import Chunk, Part, Row, Rows

# What one entry takes at most, about.
MOST_ROWS: Final = 250_000
MOST_BYTES: Final = 32 * 1024 * 1024

# More than ever waits: a committer that is at work needs no waking.
_NEVER: Final = 1 << 62


@dataclass
class Account:
    """A producer's records, and their bytes: how many were handed in, and how many are settled.

    A record is settled once it needs nothing more: it was committed or given up, and its callback was made. `changed`
    is notified when there is something to tell of. `flushing`: how many callers wait for everything to be settled, so
    that nothing lingers. `lock` guards all but what is handed in.
    """

    added: int = 0
    added_size: int = 0
    settled: int = 0
    settled_size: int = 0
    flushing: int = 0
    closing: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.changed = threading.Condition(self.lock)

    @property
    def count(self) -> int:
        """How many records are not settled."""
        return self.added - self.settled


class TopicQueue:
    """The records of one topic that wait for their entry.

    Whoever appends to `items` calls `wake` where there are `wake_rows` of them, or where the account's `added_size`
    has reached `wake_size`. `urgent`: what waits lingers no longer.
    """

    def __init__(self, account: Account) -> None:
        self.items: deque[Row | Part] = deque()
        self.parts = 0
        self.urgent = False
        self.wake_rows = _NEVER
        self.wake_size = _NEVER
        self._account = account
        self._ready = threading.Condition(account.lock)

    def wake(self) -> None:
        """Wake the committer."""
        with self._account.lock:
            self.wake_locked()

    def hurry(self) -> None:
        """Wake the committer, and have it wait for no more."""
        self.urgent = True
        self.wake()

    def wake_locked(self) -> None:
        """Wake the committer, with the lock held."""
        self.wake_rows = self.wake_size = _NEVER
        self._ready.notify()

    def wait_locked(self, rows: int, size: int, timeout_s: float | None) -> None:
        """Sleep until there are so many rows, so many more bytes, somebody wakes, or the time is up."""
        self.wake_rows, self.wake_size = rows, self._account.added_size + size
        if len(self.items) < rows:  # what came before the line above wakes nobody
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
        sizes = np.array([row[4] for row in rows], np.int64).cumsum()
        if sizes[-1] > MOST_BYTES:
            fitting = max(1, int(np.searchsorted(sizes, MOST_BYTES, side="right")))
            items.extendleft(reversed(rows[fitting:]))
            rows, sizes = rows[:fitting], sizes[:fitting]
        return Rows.of(rows, int(sizes[-1]))


def parts_of(table: pa.Table) -> list[pa.Table]:
    """A table in parts of the size of an entry."""
    if not table.num_rows:
        return []
    by_size = max(1, MOST_BYTES * table.num_rows // max(table.nbytes, 1))
    step = min(MOST_ROWS, by_size)
    return [table.slice(at, step) for at in range(0, table.num_rows, step)]
