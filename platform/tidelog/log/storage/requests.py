"""What an object store is asked: requests by kind, which is what it charges for.

One call of the storage port can be several requests. Those that a store's client repeats after a failure are counted
where the adapter makes them, and not where the client repeats them inside.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

# Objects that one request of a listing names.
LISTED_AT_ONCE = 1000
# A `put` of more is an upload in parts; what `create` writes is one as soon as a part is full.
PUT_AT_MOST_BYTES = 16 * 1024 * 1024
PUT_PART_BYTES = 8 * 1024 * 1024
PART_BYTES = 10 * 1024 * 1024


class RequestKind(StrEnum):
    """A kind of request. Those of S3 are named in docs/object-stores.md."""

    GET = "get"
    RANGED_GET = "ranged_get"
    HEAD = "head"
    LIST = "list"
    PUT = "put"
    CONDITIONAL_PUT = "conditional_put"
    MULTIPART_CREATE = "multipart_create"
    MULTIPART_PART = "multipart_part"
    MULTIPART_COMPLETE = "multipart_complete"
    MULTIPART_ABORT = "multipart_abort"
    DELETE = "delete"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """How many requests of each kind there were, and the bytes of objects that they carried."""

    by_kind: Mapping[RequestKind, int] = field(default_factory=dict)
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_kind.values())

    def since(self, before: Self) -> "RequestCounts":
        """What came on top of an earlier count."""
        kinds = {kind: n - before.by_kind.get(kind, 0) for kind, n in self.by_kind.items()}
        return RequestCounts(
            {kind: n for kind, n in kinds.items() if n},
            self.sent_bytes - before.sent_bytes,
            self.received_bytes - before.received_bytes,
        )


class Requests:
    """Counts requests, from any threads. `tell(kind, path)` hears of each as it is made."""

    def __init__(self, tell: Callable[[RequestKind, str], None] | None = None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._kinds: dict[RequestKind, int] = {}
        self._sent = 0
        self._received = 0

    def note(self, kind: RequestKind, path: str, *, sent: int = 0, received: int = 0, times: int = 1) -> None:
        """Count a request about the object or folder `path`, or `times` of them."""
        with self._lock:
            self._kinds[kind] = self._kinds.get(kind, 0) + times
            self._sent += sent
            self._received += received
        if self._tell is not None:
            for _ in range(times):
                self._tell(kind, path)

    def note_received(self, received: int) -> None:
        """Count the bytes that a request which is counted already has brought."""
        with self._lock:
            self._received += received

    def note_listed(self, path: str, found: int) -> None:
        """Count a listing of a folder that named this number of objects and folders."""
        self.note(RequestKind.LIST, path, times=max(1, -(-found // LISTED_AT_ONCE)))

    def note_written(self, path: str, size: int, at_most: int, part: int) -> None:
        """Count how an object is stored: by one put below a size, else in parts of `part` bytes."""
        if size <= at_most:
            self.note(RequestKind.PUT, path, sent=size)
            return
        self.note(RequestKind.MULTIPART_CREATE, path)
        self.note(RequestKind.MULTIPART_PART, path, sent=size, times=-(-size // part))
        self.note(RequestKind.MULTIPART_COMPLETE, path)

    def note_aborted(self, path: str, size: int, part: int) -> None:
        """Count an upload of which `size` bytes were written when it was given up: its full parts were sent."""
        if size >= part:
            parts = size // part
            self.note(RequestKind.MULTIPART_CREATE, path)
            self.note(RequestKind.MULTIPART_PART, path, sent=parts * part, times=parts)
            self.note(RequestKind.MULTIPART_ABORT, path)

    def counts(self) -> RequestCounts:
        """What was counted so far."""
        with self._lock:
            return RequestCounts(dict(self._kinds), self._sent, self._received)
