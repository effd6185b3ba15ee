"""Pauses of a broker's loop."""

import asyncio

from tidelog.broker.base.blocking import pause


def test_a_pause_that_is_given_up_as_it_ends_says_nothing():
    failures = []

    async def run():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context))
        paused = asyncio.create_task(pause(0))
        await asyncio.sleep(0)  # it has begun: its end is due
        loop.call_soon(paused.cancel)
        await asyncio.wait([paused])
        assert paused.cancelled()

    asyncio.run(run())
    assert failures == []
