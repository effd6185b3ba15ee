"""Input for `produce`: bytes from a pipe, a terminal or files, cut into records."""

import io
import os
import select
from typing import BinaryIO, NamedTuple

from tidelog.log.base.errors import RecordTooLargeError

CHUNK_BYTES = 1 << 20

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """A record to produce. `timestamp_us`: since the epoch, None for now; `partition` None: by key."""

    key: bytes | None
    value: bytes | None
    headers: Headers | None = None
    timestamp_us: int | None = None
    partition: int | None = None


class RecordInput:
    """One input, read as it comes. `read` waits no longer than asked, and no longer than until a stop is asked."""

    def __init__(self, name: str, stream: BinaryIO, wakeup: int) -> None:
        self.name = name
        self._stream = stream
        self._wakeup = wakeup
        try:
            self._descriptor = stream.fileno()
        except (OSError, io.UnsupportedOperation):  # bytes in memory: they never keep a reader waiting
            self._descriptor = -1

    def read(self, timeout_s: float | None) -> bytes | None:
        """What is there next, b"" at the end; None when nothing came within `timeout_s` or a stop was asked."""
        if self._descriptor < 0:
            return self._stream.read(CHUNK_BYTES)
        ready, _, _ = select.select([self._descriptor, self._wakeup], [], [], timeout_s)
        if self._descriptor not in ready or self._wakeup in ready:
            return None
        return os.read(self._descriptor, CHUNK_BYTES)


class Splitter:
    """Cuts bytes at a delimiter. A record may come in pieces; what follows the last delimiter is one, too.

    `limit` (bytes) bounds what waits for a delimiter.
    """

    def __init__(self, delimiter: bytes, limit: int) -> None:
        self._delimiter = delimiter
        self._limit = limit
        self._rest = bytearray()

    @property
    def waiting(self) -> int:
        """How many bytes wait for their delimiter."""
        return len(self._rest)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The records that end in `chunk`. Raises `RecordTooLargeError` for one that never ends."""
        # A delimiter may lie across two chunks, so the search starts a little before the new bytes.
        since = max(0, len(self._rest) - len(self._delimiter) + 1)
        self._rest += chunk
        if self._rest.find(self._delimiter, since) < 0:
            if len(self._rest) > self._limit:
                raise RecordTooLargeError(
                    f"it has over {self._limit} bytes and no delimiter {self._delimiter!r} yet, far more than the"
                    " topic's max.message.bytes. Give the delimiter that divides the records (-D)."
                )
            return []
        *records, rest = bytes(self._rest).split(self._delimiter)
        self._rest = bytearray(rest)
        return records

    def finish(self) -> list[bytes]:
        """The record after the last delimiter, if there is one."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest] if rest else []


class LineRule:
    """How a line becomes a key and a value, as kcat does it.

    `key_delimiter`: what divides key and value; a line without it has no key.
    `empty_is_null`: an empty value, and an empty key in front of the delimiter, are null.
    """

    def __init__(self, key_delimiter: bytes | None, *, empty_is_null: bool) -> None:
        self._key_delimiter = key_delimiter
        self._empty_is_null = empty_is_null

    def parse(self, line: bytes) -> Record:
        """The line as a record."""
        key, value = None, line
        if self._key_delimiter is not None:
            before, found, after = line.partition(self._key_delimiter)
            if found:
                key, value = (before or None) if self._empty_is_null else before, after
        return Record(key, (value or None) if self._empty_is_null else value)
