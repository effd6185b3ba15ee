"""A Fetch request as consumers send it, read straight from its bytes, without kio.

Plain is what most requests are: no tagged fields, a few partitions, and nothing behind the end. For all else the answer
is None, and the request goes the general way, which also says what is wrong with it. What is read here is what kio
reads. Source: `FetchRequest.json`; compact types: KIP-482.
"""

import struct
from typing import Final
from uuid import UUID

from tidelog.broker.fetch.requests import FINAL_EPOCH, TOPIC_IDS_SINCE, Asked, FetchRequest, Key

_FLEXIBLE_SINCE: Final = 12
_SESSIONS_SINCE: Final = 7
_RACKS_SINCE: Final = 11
_NO_REPLICA_SINCE: Final = 15
# Topics and partitions together: as many as the loop takes in without a pause.
_MOST: Final = 250
# Maximal wait, least and most bytes, isolation level; then the session's id and epoch. A replica's id comes first.
_HEAD: Final = struct.Struct(">iiib")
_SESSION: Final = struct.Struct(">ii")
_REPLICA_BYTES: Final = 4
# A partition: its number, the leader's epoch, the offset, the epoch last fetched, the log's start, and most bytes.
_V4: Final = struct.Struct(">iqi")
_V5: Final = struct.Struct(">iqqi")
_V9: Final = struct.Struct(">iiqqi")
_V12: Final = struct.Struct(">iiqiqi")
_LENGTH: Final = struct.Struct(">h")
_COUNT: Final = struct.Struct(">i")
_PARTITION: Final = struct.Struct(">i")


class _NotPlainFetchError(Exception):
    """The request goes the general way."""


def plain_fetch(version: int, body: memoryview) -> FetchRequest | None:
    """The request of an offered version that the bytes are; None where it is not a plain one."""
    try:
        return _PlainFetch(version, body).request()
    except (_NotPlainFetchError, IndexError, struct.error, UnicodeDecodeError):
        return None


class _PlainFetch:
    """A request on its way from its bytes, of which those up to `_at` are read."""

    def __init__(self, version: int, body: memoryview) -> None:
        self._version = version
        self._is_flexible = version >= _FLEXIBLE_SINCE
        self._body = body
        self._at = 0
        self._elements = 0

    def request(self) -> FetchRequest:
        version = self._version
        self._at = 0 if version >= _NO_REPLICA_SINCE else _REPLICA_BYTES
        wait_ms, min_bytes, max_bytes, isolation = self._take(_HEAD)
        session_id, epoch = self._take(_SESSION) if version >= _SESSIONS_SINCE else (0, FINAL_EPOCH)
        asked: dict[Key, Asked] = {}
        for _ in range(self._count()):
            topic = self._topic()
            for _ in range(self._count()):
                number, wanted = self._partition()
                asked[topic, number] = wanted
            self._no_tags()
        forgotten = self._forgotten() if version >= _SESSIONS_SINCE else ()
        rack = self._text() if version >= _RACKS_SINCE else ""
        self._no_tags()
        if self._at != len(self._body):
            raise _NotPlainFetchError
        return FetchRequest(
            version, asked, forgotten, session_id, epoch, wait_ms / 1000, min_bytes, max_bytes, isolation == 1, rack
        )

    def _partition(self) -> tuple[int, Asked]:
        version = self._version
        if version >= _FLEXIBLE_SINCE:
            number, epoch, offset, _, _, most_bytes = self._take(_V12)
            self._no_tags()
            return number, Asked(offset, most_bytes, epoch)
        if version >= 9:
            number, epoch, offset, _, most_bytes = self._take(_V9)
            return number, Asked(offset, most_bytes, epoch)
        if version >= 5:
            number, offset, _, most_bytes = self._take(_V5)
        else:
            number, offset, most_bytes = self._take(_V4)
        return number, Asked(offset, most_bytes)

    def _forgotten(self) -> list[Key]:
        forgotten: list[Key] = []
        for _ in range(self._count()):
            topic = self._topic()
            forgotten += [(topic, self._take(_PARTITION)[0]) for _ in range(self._count())]
            self._no_tags()
        return forgotten

    def _take(self, layout: struct.Struct) -> tuple[int, ...]:
        numbers = layout.unpack_from(self._body, self._at)
        self._at += layout.size
        return numbers

    def _count(self) -> int:
        """How many elements an array has, all of which are bounded together."""
        if self._is_flexible:
            count = self._byte() - 1
            if count >= 0x7F:
                raise _NotPlainFetchError
        else:
            (count,) = self._take(_COUNT)
        self._elements += count
        if count < 0 or self._elements > _MOST:
            raise _NotPlainFetchError
        return count

    def _topic(self) -> str | UUID:
        if self._version < TOPIC_IDS_SINCE:
            return self._text()
        return UUID(bytes=self._bytes(16))

    def _text(self) -> str:
        if self._is_flexible:
            length = self._byte() - 1
            if length >= 0x7F:
                raise _NotPlainFetchError
        else:
            (length,) = self._take(_LENGTH)
        return str(self._bytes(length), "utf-8")

    def _bytes(self, length: int) -> bytes:
        self._at += length
        if length < 0 or self._at > len(self._body):
            raise _NotPlainFetchError
        return bytes(self._body[self._at - length : self._at])

    def _byte(self) -> int:
        self._at += 1
        return self._body[self._at - 1]

    def _no_tags(self) -> None:
        if self._is_flexible and self._byte():
            raise _NotPlainFetchError
