"""Answers that last end with their right: those that are sent as fast as they are read, and those that wait."""

import asyncio

import pytest

from tidelog.server import lasting
from tidelog.server.lasting import RightEndedError, while_it_stands


class Asked:
    """A right that stands for a number of questions."""

    def __init__(self, times):
        self.left = times

    def __call__(self):
        self.left -= 1
        if self.left < 0:
            raise PermissionError("no more")


async def silent(closed):
    try:
        yield b"begun"
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        closed.append(True)


async def steady(closed):
    try:
        while True:
            yield b"piece"
            await asyncio.sleep(0)
    finally:
        closed.append(True)


@pytest.mark.parametrize("pieces", [silent, steady])
def test_an_answer_ends_with_its_right(monkeypatch, pieces):
    monkeypatch.setattr(lasting, "ASK_EVERY_S", 0.01)
    closed, found = [], []

    async def run():
        async for piece in while_it_stands(pieces(closed), Asked(3)):
            found.append(piece)  # noqa: PERF401 - they are wanted up to the error

    with pytest.raises(RightEndedError, match="no more"):
        asyncio.run(run())
    assert found
    assert closed == [True]


def test_an_answer_with_an_end_is_sent_whole(monkeypatch):
    monkeypatch.setattr(lasting, "ASK_EVERY_S", 0.0)

    async def three():
        for at in range(3):
            yield at

    async def run():
        return [piece async for piece in while_it_stands(three(), Asked(1_000))]

    assert asyncio.run(run()) == [0, 1, 2]


def test_what_an_answer_raises_is_raised():
    async def failing():
        yield 1
        raise ValueError("the store")

    async def run():
        return [piece async for piece in while_it_stands(failing(), Asked(1_000))]

    with pytest.raises(ValueError, match="the store"):
        asyncio.run(run())


def test_an_answer_whose_reader_leaves_is_closed():
    closed = []

    async def run():
        begun = asyncio.Event()

        async def read():
            async for _ in while_it_stands(silent(closed), Asked(1_000)):
                begun.set()

        reader = asyncio.create_task(read())
        await begun.wait()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        while not closed:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert closed == [True]
