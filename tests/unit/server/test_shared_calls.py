"""A call that many want done after they ask."""

import asyncio

import pytest

from tidelog.server.base.shared_calls import SharedCall


class Call:
    """A call that ends when it is let go on; `begun`: how many were."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> None:
        self.begun += 1
        await self.go_on.wait()
        if self.error is not None:
            raise self.error


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_those_that_ask_while_one_runs_share_the_next():
    async def run():
        call = Call()
        shared = SharedCall(call)
        first = [asyncio.ensure_future(shared()) for _ in range(5)]
        await turns()
        assert call.begun == 1
        later = [asyncio.ensure_future(shared()) for _ in range(5)]
        await turns()
        assert call.begun == 1
        call.go_on.set()
        await asyncio.gather(*first, *later)
        assert call.begun == 2
        await shared()
        assert call.begun == 3

    asyncio.run(run())


def test_none_is_answered_by_a_call_that_began_before_it_asked():
    async def run():
        call = Call()
        shared = SharedCall(call)
        first = asyncio.ensure_future(shared())
        await turns()
        later = asyncio.ensure_future(shared())
        await turns()
        of_first, call.go_on = call.go_on, asyncio.Event()
        of_first.set()
        await first
        await turns()
        assert call.begun == 2
        assert not later.done()
        call.go_on.set()
        await later

    asyncio.run(run())


def test_one_that_waits_no_more_ends_the_call_of_no_other():
    async def run():
        call = Call()
        shared = SharedCall(call)
        one, other = asyncio.ensure_future(shared()), asyncio.ensure_future(shared())
        await turns()
        one.cancel()
        await turns()
        call.go_on.set()
        await other
        assert one.cancelled()
        assert call.begun == 1

    asyncio.run(run())


def test_a_call_that_fails_says_so_to_all_that_share_it_and_to_none_after():
    async def run():
        call = Call()
        call.error = ValueError("broken")
        call.go_on.set()
        shared = SharedCall(call)
        results = await asyncio.gather(shared(), shared(), return_exceptions=True)
        assert [str(e) for e in results] == ["broken", "broken"]
        call.error = None
        await shared()
        call.error = ValueError("again")
        with pytest.raises(ValueError, match="again"):
            await shared()

    asyncio.run(run())
