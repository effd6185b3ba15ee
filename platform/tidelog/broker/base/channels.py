"""Requests from broker to broker, each over a connection that no other request waits for.

The connections of `BrokerLinks` say whether a broker answers, which must not wait behind a commit. So what brokers ask
each other has connections of its own: as many to a broker as there are requests at once, kept for the next ones.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from tidelog.broker.base.dialing import BrokerConnection, BrokerDialer
from tidelog.broker.wire.frames import LENGTH

Address = tuple[str, int]

# An answer is small: more is no broker's.
_MOST_BYTES: Final = 16 * 1024 * 1024


class NotAskedError(Exception):
    """The request did not leave this process."""


class NoAnswerError(Exception):
    """The request may have arrived, and no answer came."""


class BrokerChannels:
    """The connections of one broker to others, by address. For the loop's thread."""

    def __init__(self, dialer: BrokerDialer) -> None:
        self._dialer = dialer
        self._idle: defaultdict[Address, list[BrokerConnection]] = defaultdict(list)
        self._kept: frozenset[Address] | None = None
        self._closed = False

    async def ask(self, address: Address, request: bytes, within_s: float) -> bytes:
        """The answer's frame, without its length. Raises `NotAskedError`, `NoAnswerError`."""
        reader, writer = await self._connection(address)
        try:
            async with asyncio.timeout(within_s):
                writer.write(LENGTH.pack(len(request)) + request)
                (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                if not 0 < size <= _MOST_BYTES:
                    raise NoAnswerError(f"an answer of {size} bytes")
                answer = await reader.readexactly(size)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as e:
            writer.transport.abort()
            raise NoAnswerError(repr(e)) from e
        except BaseException:
            writer.transport.abort()
            raise
        if self._closed or (self._kept is not None and address not in self._kept):
            writer.transport.abort()
        else:
            self._idle[address].append((reader, writer))
        return answer

    def keep(self, addresses: Iterable[Address]) -> None:
        """Give up the connections to all others, once they are idle."""
        self._kept = frozenset(addresses)
        for address in [address for address in self._idle if address not in self._kept]:
            for _, writer in self._idle.pop(address):
                writer.transport.abort()

    def close(self) -> None:
        """Give up all connections, once they are idle."""
        self._closed = True
        self.keep(())

    async def _connection(self, address: Address) -> BrokerConnection:
        idle = self._idle[address]
        while idle:
            reader, writer = idle.pop()
            if not reader.at_eof() and not writer.transport.is_closing():
                return reader, writer
            writer.transport.abort()
        try:
            return await self._dialer.connect(*address)
        except (OSError, TimeoutError) as e:
            raise NotAskedError(repr(e)) from e
