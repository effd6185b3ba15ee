"""Connections between brokers: each keeps one to every other, and asks over it whether that one answers.

The question is ApiVersions, which a broker answers to every client.
"""

import asyncio
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import LENGTH
from tidelog.cluster.model import RegisteredBroker
from tidelog.log.base.clock import Clock

# Between two questions, in seconds, and how long an answer, or a connection, may take.
ASK_EVERY_S: Final = 0.25
ANSWER_WITHIN_S: Final = 0.5
# An answer is a list of versions: more is no broker's.
_MOST_BYTES: Final = 64 * 1024
_QUESTION: Final = struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 0, -1)


class BrokerLinks:
    """The connections of one broker to the others, by registration. They live in the loop that made this.

    `answers` and `keep` may be called from any thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._links: dict[str, asyncio.Task[None]] = {}
        # When each broker answered last, on the elapsed clock; those whose connection is lost are not in it.
        self._heard: dict[str, float] = {}
        self._closed = asyncio.Event()

    def answers(self, broker: RegisteredBroker) -> bool:
        """Whether a broker answers by now. The first call begins to ask."""
        heard_s = self._heard.get(broker.registration)
        if heard_s is None:
            self._on_loop(self._begin, broker)
            return False
        return self._clock.elapsed_s() - heard_s <= ASK_EVERY_S + ANSWER_WITHIN_S

    def keep(self, registrations: Iterable[str]) -> None:
        """Give up the connections to all others."""
        self._on_loop(self._keep, frozenset(registrations))

    async def close(self) -> None:
        """Give up all connections."""
        self._closed.set()
        links = list(self._links.values())
        self._keep(frozenset())
        await asyncio.gather(*links, return_exceptions=True)

    def _on_loop(self, call: object, *args: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, *args)  # type: ignore[arg-type]

    def _begin(self, broker: RegisteredBroker) -> None:
        if broker.registration not in self._links and not self._closed.is_set() and broker.listeners:
            self._links[broker.registration] = self._loop.create_task(self._ask_on(broker))

    def _keep(self, registrations: frozenset[str]) -> None:
        for name in [name for name in self._links if name not in registrations]:
            self._links.pop(name).cancel()
            self._heard.pop(name, None)

    async def _ask_on(self, broker: RegisteredBroker) -> None:
        """Ask again and again; connect again when the connection is lost."""
        where = broker.listeners[0]
        while not self._closed.is_set():
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                opening = asyncio.open_connection(where.host, where.port)
                reader, writer = await asyncio.wait_for(opening, ANSWER_WITHIN_S)
                try:
                    while not self._closed.is_set():
                        await asyncio.wait_for(_ask(reader, writer), ANSWER_WITHIN_S)
                        self._heard[broker.registration] = self._clock.elapsed_s()
                        await self._pause()
                finally:
                    self._heard.pop(broker.registration, None)
                    writer.transport.abort()
            await self._pause()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), ASK_EVERY_S)


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One question and its answer. Raises `OSError` for what is no answer."""
    writer.write(LENGTH.pack(len(_QUESTION)) + _QUESTION)
    (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if not 0 < size <= _MOST_BYTES:
        raise ConnectionError(f"an answer of {size} bytes")
    await reader.readexactly(size)
