"""Pauses of a broker's loop."""

import asyncio

from tidelog.server.base.blocking import in_turns, pause


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


def test_others_have_the_loop_between_a_few_items_and_the_next():
    told = []
    taken = told.append

    async def goes_through():
        async for item in in_turns(range(10), 4):
            taken(item)

    async def other():
        for _ in range(3):
            told.append("other")
            await asyncio.sleep(0)

    async def run():
        await asyncio.gather(goes_through(), other())

    asyncio.run(run())
    assert [one for one in told if one != "other"] == list(range(10))
    assert told.index("other") == 4
