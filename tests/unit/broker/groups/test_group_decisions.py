"""Decisions over groups on their way to the log: what waits shares an entry, and each caller gets its own outcome."""

import asyncio
from types import SimpleNamespace

import pytest

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.groups.decisions import GOOD_S, MOST_AT_ONCE, MOST_TRIES, Decisions
from tidelog.broker.groups.errors import NotCoordinatorError
from tidelog.groups.model import Decision, Group

VIEW = ClusterView("c", 1, [BrokerNode(1, {})], 1)


class Log:
    """A log of groups that notes how many decisions come at once, and whose store may be away."""

    def __init__(self):
        self.entries = []
        self.fails_at = None

    def decide_all(self, requests):
        self.entries.append(len(requests))
        if len(self.entries) == self.fails_at:
            raise OSError("the store is away")
        return [(rule(None).response, None) for _, rule in requests]


def decided(*responses, fails_at=None):
    """How many decisions each entry has, and the outcomes of "first", and of those that wait meanwhile."""
    log = Log()
    log.fails_at = fails_at

    async def run():
        released = asyncio.Event()

        async def blocking(call, *args):
            await released.wait()
            return call(*args)

        clock = SimpleNamespace(elapsed_s=lambda: 0.0)
        context = SimpleNamespace(blocking=blocking, clock=clock, cluster=lambda: VIEW, confirmed=lambda: VIEW)
        decisions = Decisions(log, context)

        def ask(group, response):
            return asyncio.ensure_future(decisions.decide(group, lambda _: Decision(response=response)))

        first = ask("g", "first")
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # its entry is begun
        rest = [ask(f"g{at}", response) for at, response in enumerate(responses)]
        await asyncio.sleep(0)
        released.set()
        return await asyncio.gather(first, *rest, return_exceptions=True)

    outcomes = asyncio.run(run())
    return log.entries, outcomes


@pytest.mark.parametrize("waiting", [1, 100, MOST_AT_ONCE])
def test_what_waits_while_an_entry_is_written_is_the_next(waiting):
    responses = [f"response {at}" for at in range(waiting)]
    entries, outcomes = decided(*responses)
    assert entries == [1, waiting]
    assert outcomes == ["first", *responses]


def test_an_entry_takes_no_more_than_its_most():
    entries, _ = decided(*["any"] * (MOST_AT_ONCE + 1))
    assert entries == [1, MOST_AT_ONCE, 1]


def test_each_that_waits_hears_of_a_failure():
    entries, outcomes = decided("one", "other", fails_at=2)
    assert entries == [1, 2]
    assert outcomes[0] == "first"
    assert [str(one) for one in outcomes[1:]] == ["the store is away"] * 2


# --- a coordinator that was frozen -------------------------------------------------------------------------


def view(epoch=1, serving=(1,)):
    """The cluster as broker 1 sees it."""
    return ClusterView("c", epoch, [BrokerNode(number, {}) for number in serving], 1)


def outcome(rule, confirmed, epoch=None, takes_s=(0.0,)):
    """Of a decision that was asked for in epoch 1, by a broker whose look at the cluster then finds this one.

    `takes_s`: from that look to the decision, at each try.
    """
    now = [0.0]
    times = iter(takes_s)

    class SlowLog:
        def decide_all(self, requests):
            now[0] += next(times)
            try:
                return [(rule(None).response, None) for _, rule in requests]
            except NotCoordinatorError as e:
                return [(None, e)]

    async def run():
        async def blocking(call, *args):
            return call(*args)

        clock = SimpleNamespace(elapsed_s=lambda: now[0])
        context = SimpleNamespace(blocking=blocking, clock=clock, cluster=view, confirmed=lambda: confirmed)
        return await Decisions(SlowLog(), context).decide("g", rule, epoch)

    return asyncio.run(run())


def writing(_):
    return Decision(response="done", group=Group("g"))


def reading(_):
    return Decision(response="seen")


@pytest.mark.parametrize(
    ("confirmed", "takes_s"),
    [
        (view(2, serving=(2,)), [0.0]),  # another broker has its place
        (view(3), [0.0]),  # it was taken for dead, and has registered again since
        (view(), [GOOD_S + 0.1] * MOST_TRIES),  # each look is too old by then
    ],
)
def test_a_former_coordinator_writes_nothing(confirmed, takes_s):
    with pytest.raises(NotCoordinatorError):
        outcome(writing, confirmed, takes_s=takes_s)
    assert outcome(reading, confirmed, takes_s=takes_s) == "seen"


def test_the_coordinator_writes():
    assert outcome(writing, view(), takes_s=[GOOD_S]) == "done"
    assert outcome(writing, view(), takes_s=[GOOD_S + 0.1] * (MOST_TRIES - 1) + [0.0]) == "done"  # by another look
    assert outcome(writing, view(2), epoch=2) == "done"


def test_what_those_before_it_leave_no_time_for_is_decided_by_another_look():
    now, looks, made = [0.0], [], []

    class InTurn:
        def decide_all(self, requests):
            answers = []
            for _, rule in requests:
                try:
                    answers.append((rule(None).response, None))
                except NotCoordinatorError as e:
                    answers.append((None, e))
            return answers

    def slow(number):
        def rule(_):
            made.append(number)
            now[0] += 0.7
            return Decision(response=number, group=Group("g"))

        return rule

    def confirmed():
        looks.append(now[0])
        return view()

    async def run():
        async def blocking(call, *args):
            return call(*args)

        clock = SimpleNamespace(elapsed_s=lambda: now[0])
        context = SimpleNamespace(blocking=blocking, clock=clock, cluster=view, confirmed=confirmed)
        decisions = Decisions(InTurn(), context)
        return await asyncio.gather(*(decisions.decide("g", slow(number)) for number in range(4)))

    assert asyncio.run(run()) == [0, 1, 2, 3]
    assert len(looks) == 4
    assert sorted(set(made)) == [0, 1, 2, 3]
