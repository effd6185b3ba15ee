"""Connections between brokers: what one knows of another by them, over real sockets."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from support.waiting import eventually_async

from tidelog.broker.base.dialing import BrokerDialer
from tidelog.broker.cluster.links import BrokerLinks, Link
from tidelog.cluster.model import Listener, RegisteredBroker
from tidelog.log.base.clock import SystemClock

ANSWER = b"\0\0\0\4\0\0\0\0"


class Other:
    """The other broker: it answers what is asked, as long as `answers`."""

    def __init__(self) -> None:
        self.answers = True
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self, port: int = 0) -> RegisteredBroker:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]
        return RegisteredBroker(2, "r", (Listener("PLAINTEXT", "127.0.0.1", self.port),))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        while await reader.read(1000):
            if self.answers:
                writer.write(ANSWER)

    def die(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()


def against(test: Callable[[BrokerLinks, Other, RegisteredBroker, list[int]], Awaitable[None]]) -> None:
    async def run() -> None:
        lost: list[int] = []
        links, other = BrokerLinks(SystemClock(), BrokerDialer("PLAINTEXT"), lambda: lost.append(1)), Other()
        try:
            await test(links, other, await other.start(), lost)
        finally:
            await links.close()
            other.die()

    asyncio.run(run())


def test_a_broker_that_answers_and_dies_refuses() -> None:
    async def test(links: BrokerLinks, other: Other, broker: RegisteredBroker, lost: list[int]) -> None:
        assert links.reached(broker) is Link.SILENT
        await eventually_async(lambda: links.reached(broker) is Link.ANSWERS, "an answer")
        other.die()
        await eventually_async(lambda: lost, "the loss is told")
        assert links.reached(broker) is not Link.ANSWERS
        await eventually_async(lambda: links.reached(broker) is Link.REFUSED, "the refusal")
        await other.start(other.port)
        await eventually_async(lambda: links.reached(broker) is Link.ANSWERS, "an answer again")

    against(test)


def test_the_loss_of_a_connection_is_told_between_two_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.broker.cluster.links.ASK_EVERY_S", 3600)

    async def test(links: BrokerLinks, other: Other, broker: RegisteredBroker, lost: list[int]) -> None:
        links.reached(broker)
        await eventually_async(lambda: links.reached(broker) is Link.ANSWERS, "an answer")
        other.die()
        await eventually_async(lambda: lost, "the loss is told")

    against(test)


def test_a_broker_that_is_silent_is_not_taken_for_refusing() -> None:
    async def test(links: BrokerLinks, other: Other, broker: RegisteredBroker, lost: list[int]) -> None:
        links.reached(broker)
        await eventually_async(lambda: links.reached(broker) is Link.ANSWERS, "an answer")
        other.answers = False
        await eventually_async(lambda: lost, "the loss is told")
        assert links.reached(broker) is Link.SILENT

    against(test)


def test_a_broker_that_others_ask_is_asked_when_it_is_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(links: BrokerLinks, other: Other, broker: RegisteredBroker, lost: list[int]) -> None:
        links.ask([])
        links.reached(broker)
        await eventually_async(lambda: links.reached(broker) is Link.ANSWERS, "an answer")
        other.answers = False
        links._heard["r"] -= 60
        assert links.reached(broker) is Link.ANSWERS, "its connection holds"
        links.ask(["r"])
        assert links.reached(broker) is Link.SILENT, "until it answers"
        await eventually_async(lambda: lost, "that no answer comes is told")

    monkeypatch.setattr("tidelog.broker.cluster.links.REST_S", 3600)
    against(test)


def test_a_broker_that_others_ask_dies_and_that_is_told() -> None:
    async def test(links: BrokerLinks, other: Other, broker: RegisteredBroker, lost: list[int]) -> None:
        links.ask([])
        links.reached(broker)
        await eventually_async(lambda: links.reached(broker) is Link.ANSWERS, "an answer")
        other.die()
        await eventually_async(lambda: lost, "the loss is told")
        assert links.reached(broker) is not Link.ANSWERS

    against(test)


def test_a_late_answer_is_told_before_the_connection_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.broker.cluster.links.ANSWER_WITHIN_S", 3600)

    async def test(links: BrokerLinks, other: Other, broker: RegisteredBroker, lost: list[int]) -> None:
        other.answers = False
        links.reached(broker)
        await eventually_async(lambda: lost, "that it is late is told")
        assert links.reached(broker) is Link.SILENT

    against(test)


def test_links_that_are_given_up_ask_no_more() -> None:
    async def test(links: BrokerLinks, _: Other, broker: RegisteredBroker, lost: list[int]) -> None:
        links.reached(broker)
        await eventually_async(lambda: links.reached(broker) is Link.ANSWERS, "an answer")
        links.keep([])
        await eventually_async(lambda: lost, "the connection is gone")
        await asyncio.gather(*(task for task in asyncio.all_tasks() if "_ask_on" in repr(task)), return_exceptions=True)

    against(test)
