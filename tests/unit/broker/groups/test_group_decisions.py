"""Decisions over groups on their way to the log: what waits shares an entry, and each caller gets its own outcome."""

import asyncio

import pytest

from tidelog.broker.groups.decisions import MOST_AT_ONCE, Decisions


class Log:
    """A log of groups that notes how many decisions come at once."""

    def __init__(self):
        self.entries = []

    def decide_all(self, requests):
        self.entries.append(len(requests))
        if any(rule is None for _, rule in requests):
            raise OSError("the store is away")
        return [(rule, None) for _, rule in requests]


def decided(*rules):
    log = Log()
    released = asyncio.Event()

    async def blocking(call, *args):
        await released.wait()
        return call(*args)

    async def run():
        decisions = Decisions(log, blocking)
        first = asyncio.ensure_future(decisions.decide("g", "first"))
        await asyncio.sleep(0)  # its entry is begun
        await asyncio.sleep(0)
        rest = [asyncio.ensure_future(decisions.decide(f"g{at}", rule)) for at, rule in enumerate(rules)]
        await asyncio.sleep(0)
        released.set()
        return await asyncio.gather(first, *rest, return_exceptions=True)

    return log.entries, asyncio.run(run())


@pytest.mark.parametrize("waiting", [1, 100, MOST_AT_ONCE])
def test_what_waits_while_an_entry_is_written_is_the_next(waiting):
    rules = [f"rule{at}" for at in range(waiting)]
    entries, outcomes = decided(*rules)
    assert entries == [1, waiting]
    assert outcomes == ["first", *rules]


def test_an_entry_takes_no_more_than_its_most():
    entries, _ = decided(*["rule"] * (MOST_AT_ONCE + 1))
    assert entries == [1, MOST_AT_ONCE, 1]


def test_each_that_waits_hears_of_a_failure_and_later_ones_go_on():
    entries, outcomes = decided("rule", None)
    assert entries == [1, 2]
    assert outcomes[0] == "first"
    assert [str(one) for one in outcomes[1:]] == ["the store is away"] * 2
