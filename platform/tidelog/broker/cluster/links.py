"""Connections between brokers: each keeps one to every other, and asks over some of them whether that one answers.

The question is ApiVersions, which a broker answers to every client. A process that dies closes its connections, which
all others notice at once; only one that stands still, or whose machine is gone, must be asked.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from typing import Final

from tidelog.broker.base.dialing import BrokerDialer, LoginFailedError
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import LENGTH
from tidelog.cluster.model import Listener, RegisteredBroker
from tidelog.log.base.clock import Clock
from tidelog.server.base.blocking import pause

logger = logging.getLogger(__name__)

# Between two questions, in seconds; when an answer is late, and how long it may take.
ASK_EVERY_S: Final = 0.5
LATE_S: Final = 0.25
ANSWER_WITHIN_S: Final = 0.5
# Between two questions to brokers that others ask: less than any broker lets a connection idle.
REST_S: Final = 30.0
# Between two log-ins that fail: too many of an address are refused unheard.
LOGIN_EVERY_S: Final = 2.0
# An answer is a list of versions: more is no broker's.
_MOST_BYTES: Final = 64 * 1024
_QUESTION: Final = struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 0, -1)


class Link(Enum):
    """How a broker is reached: it answers; it says nothing; its address refuses connections."""

    ANSWERS = 1
    SILENT = 2
    REFUSED = 3


class BrokerLinks:
    """The connections of one broker to the others, by registration. They live in the loop that made this.

    `lost()` is called when one is lost, or an answer late, by the loop's thread. `reached`, `ask` and `keep` may be
    called from any thread.
    """

    def __init__(self, clock: Clock, dialer: BrokerDialer, lost: Callable[[], None]) -> None:
        self._dialer = dialer
        self._clock = clock
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._links: dict[str, asyncio.Task[None]] = {}
        # When each broker answered last, on the elapsed clock; those whose connection is lost are not in it.
        self._heard: dict[str, float] = {}
        self._refused: set[str] = set()
        # Those whose answer to the last question is late.
        self._late: set[str] = set()
        # Those that are asked all the time; None: all are.
        self._asked: frozenset[str] | None = None
        self._rests: dict[str, asyncio.Timeout] = {}
        self._closed = False

    def reached(self, broker: RegisteredBroker) -> Link:
        """How a broker is reached by now. The first call begins to ask.

        One that is not asked all the time is said to answer while its connection holds.
        """
        heard_s = self._heard.get(broker.registration)
        if heard_s is None:
            self._on_loop(self._begin, broker)
            return Link.REFUSED if broker.registration in self._refused else Link.SILENT
        if not self._is_asked(broker.registration):
            return Link.ANSWERS
        in_time = self._clock.elapsed_s() - heard_s < ASK_EVERY_S + LATE_S
        return Link.ANSWERS if in_time and broker.registration not in self._late else Link.SILENT

    def ask(self, registrations: Iterable[str]) -> None:
        """Ask these all the time, and the others now and then."""
        self._asked = frozenset(registrations)
        self._on_loop(self._wake)

    def keep(self, registrations: Iterable[str]) -> None:
        """Give up the connections to all others."""
        self._on_loop(self._keep, frozenset(registrations))

    async def close(self) -> None:
        """Give up all connections."""
        self._closed = True
        links = list(self._links.values())
        self._keep(frozenset())
        await asyncio.gather(*links, return_exceptions=True)

    def _on_loop(self, call: object, *args: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, *args)  # type: ignore[arg-type]

    def _is_asked(self, name: str) -> bool:
        return self._asked is None or name in self._asked

    def _rest_s(self, name: str) -> float:
        """How long until the next question, at moments that all questions of a machine share: it wakes up once."""
        return ASK_EVERY_S - self._loop.time() % ASK_EVERY_S if self._is_asked(name) else REST_S

    def _wake(self) -> None:
        """Ask at once those that were asked now and then, and are to be asked all the time."""
        now_s = self._loop.time()
        for name, rest in self._rests.items():
            when_s = rest.when()
            if self._is_asked(name) and when_s is not None and when_s > now_s + ASK_EVERY_S:
                rest.reschedule(now_s)

    def _begin(self, broker: RegisteredBroker) -> None:
        where = next((one for one in broker.listeners if one.name == self._dialer.listener), None)
        if broker.registration not in self._links and not self._closed and where is not None:
            self._links[broker.registration] = self._loop.create_task(self._ask_on(broker.registration, where))

    def _keep(self, registrations: frozenset[str]) -> None:
        for name in [name for name in self._links if name not in registrations]:
            self._links.pop(name).cancel()
            self._heard.pop(name, None)
            self._refused.discard(name)

    async def _ask_on(self, name: str, where: Listener) -> None:
        """Ask again and again; connect again when the connection is lost."""
        said = ""
        while True:
            wait_s = ASK_EVERY_S
            try:
                reader, writer = await self._dialer.connect(where.host, where.port)
                self._refused.discard(name)
                try:
                    while True:
                        late = self._loop.call_later(LATE_S, self._is_late, name)
                        try:
                            async with asyncio.timeout(ANSWER_WITHIN_S):
                                await _ask(reader, writer)
                        finally:
                            late.cancel()
                            self._late.discard(name)
                        self._heard[name] = self._clock.elapsed_s()
                        await self._until_lost(name, reader)
                finally:
                    self._heard.pop(name, None)
                    writer.transport.abort()
                    self._lost()
            except ConnectionRefusedError:
                self._refused.add(name)
            except LoginFailedError as e:
                self._refused.discard(name)
                if str(e) != said:
                    said = str(e)
                    logger.warning("The broker at %s:%d can't be asked: %s", where.host, where.port, said)
                wait_s = LOGIN_EVERY_S
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                self._refused.discard(name)
            await pause(wait_s)

    def _is_late(self, name: str) -> None:
        self._late.add(name)
        self._lost()

    async def _until_lost(self, name: str, reader: asyncio.StreamReader) -> None:
        """Wait until the next question is due. Raises `ConnectionError` as soon as the connection is lost."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rest_s(name)) as rest:
                self._rests[name] = rest
                try:
                    await reader.read(1)
                finally:
                    del self._rests[name]
            raise ConnectionError("the connection was closed, or an answer came that nothing had asked for")


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One question and its answer. Raises `OSError` for what is no answer."""
    writer.write(LENGTH.pack(len(_QUESTION)) + _QUESTION)
    (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if not 0 < size <= _MOST_BYTES:
        raise ConnectionError(f"an answer of {size} bytes")
    await reader.readexactly(size)
