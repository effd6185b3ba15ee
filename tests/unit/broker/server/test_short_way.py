"""Requests that need no task: begun in order, answered in order, and with the bytes of the general way."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.broker_connections import Client, Handler, connections, request, settle
from support.logs import CountingIds, memory_lake
from support.native import native_produce
from support.produce_requests import Produced, batch, encoded_produce
from support.short_ways import CountedSingles, CountedWay
from support.strange_requests import Strange
from support.waiting import eventually_async

from tidelog.access.quotas import Entity as QuotaEntity
from tidelog.access.quotas import Quota
from tidelog.broker.base.calls import Encoded
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.broker import Broker
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import UnacknowledgedError
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import here

PRODUCE, LIST_GROUPS = ApiKey.PRODUCE, ApiKey.LIST_GROUPS
GROUPS = {"error_code": 0, "groups": []}
DONE = Encoded([b"done"])


class ShortHandler(Handler):
    """A handler with a short way, for requests whose body does not end with an x. `short`: those that went it."""

    def __init__(self) -> None:
        super().__init__(DONE)
        self.short = []
        self.replies = {}
        self.broken = False

    def begin(self, call, done):
        if self.broken:
            raise ZeroDivisionError
        if bytes(call.body[-1:]) == b"x":
            return None
        self.short.append(done)
        at = len(self.short) - 1

        def reply():
            answer = self.replies.get(at, DONE)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return reply


def produce(correlation_id, body=b""):
    plain = encoded_produce(3, {}) + body
    return request(PRODUCE, 3, correlation_id, plain)


def run(scenario):
    """Run the scenario in a loop, and see that nothing of it fell silently."""

    async def whole():
        unhandled = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unhandled.append(what))
        await scenario()
        await settle()
        assert unhandled == []

    asyncio.run(whole())


def test_short_requests_begin_as_they_come_and_are_answered_in_order():
    async def scenario():
        handler = ShortHandler()
        all_ = connections({PRODUCE: handler})
        client = Client(all_)
        client.send(produce(1) + produce(2) + produce(3))
        assert (len(handler.short), handler.begun) == (3, [])
        handler.short[2]()
        handler.short[1]()
        assert await client.answered() == []
        handler.short[0]()
        assert await client.answered() == [1, 2, 3]
        assert (all_.requests.used, all_.waiting) == (0, 0)
        meter = all_.meter.api("PRODUCE")
        assert (meter.requests[3], meter.errors, meter.total.count) == (3, {0: 3}, 3)

    run(scenario)


def test_a_request_that_takes_the_general_way_is_not_overtaken():
    async def scenario():
        handler = ShortHandler()
        client = Client(connections({PRODUCE: handler}))
        client.send(produce(1, b"x") + produce(2) + produce(3))
        await settle()
        assert (len(handler.begun), handler.short) == (3, [])
        for at in range(3):
            handler.end(at)
        assert await client.answered() == [1, 2, 3]
        client.send(produce(4))
        assert len(handler.short) == 1

    run(scenario)


def test_a_short_request_waits_for_another_kind_of_request():
    async def scenario():
        groups, handler = Handler(GROUPS), ShortHandler()
        client = Client(connections({LIST_GROUPS: groups, PRODUCE: handler}))
        client.send(request(LIST_GROUPS, 0, 1) + produce(2))
        await settle()
        assert handler.short == []
        groups.end(0)
        assert await client.answered() == [1]
        handler.short[0]()
        assert await client.answered() == [2]

    run(scenario)


def test_a_client_with_quotas_takes_the_general_way():
    async def scenario():
        handler = ShortHandler()
        limits = {QuotaEntity(client_id=""): {Quota.PRODUCER_BYTE_RATE: 1e9}}
        client = Client(connections({PRODUCE: handler}, limits))
        client.send(produce(1))
        await settle()
        assert (len(handler.begun), handler.short) == (1, [])
        handler.end(0)
        assert await client.answered() == [1]

    run(scenario)


@pytest.mark.parametrize("error", [UnacknowledgedError("not appended"), ZeroDivisionError()])
def test_a_request_that_can_only_fail_ends_the_connection(error):
    async def scenario():
        handler = ShortHandler()
        all_ = connections({PRODUCE: handler})
        client = Client(all_)
        client.send(produce(1) + produce(2))
        handler.replies[0] = error
        handler.short[0]()
        assert await client.answered() == []
        assert client.transport.lost
        handler.short[1]()
        await settle()
        assert (all_.requests.used, len(all_)) == (0, 0)

    run(scenario)


def test_a_beginning_that_fails_ends_the_connection():
    async def scenario():
        handler = ShortHandler()
        handler.broken = True
        client = Client(connections({PRODUCE: handler}))
        client.send(produce(1))
        assert await client.answered() == []
        assert client.transport.lost

    run(scenario)


def test_short_requests_outlive_their_client():
    async def scenario():
        handler = ShortHandler()
        all_ = connections({PRODUCE: handler})
        client = Client(all_)
        client.send(produce(1))
        client.transport.abort()
        await settle()
        assert all_.requests.used > 0
        handler.short[0]()
        await settle()
        assert all_.requests.used == 0

    run(scenario)


def test_no_more_than_64_short_requests_are_begun():
    async def scenario():
        handler = ShortHandler()
        client = Client(connections({PRODUCE: handler}))
        client.send(b"".join(produce(number) for number in range(70)))
        assert len(handler.short) == 64
        assert not client.transport.reading
        for done in handler.short[:64]:
            done()
        assert await client.answered() == list(range(64))
        assert len(handler.short) == 70

    run(scenario)


# --- the same bytes ----------------------------------------------------------------------------------------


def requests_of(seed, topic_id):
    """Frames of Produce as clients send them, in versions of all kinds, some of them strange."""
    chance, strange = random.Random(seed), Strange(seed, texts=("t",), blobs=(batch(b"v"),), ids=(str(topic_id),))
    alone = chance.randrange(2)  # whether most requests have one batch
    for number in range(chance.randrange(1, 6)):
        version = chance.choice((9, 11, 13) if alone else (3, 7, 8, 9, 11, 12, 13))
        topic = topic_id if version >= 13 else "t"
        producer = chance.choice(((-1, -1, -1), (-1, -1, -1), (7, 0, number), (7, 0, 0)))
        whole = (batch(b"a", producer=producer), batch(b"a", b"b"))
        records = chance.choice(
            (*whole, *whole, *whole, b"", None, b"x" * 70) if alone else (*whole, b"", None, b"x" * 70)
        )
        partitions = {chance.choice((0, 0, 1, 1, 9, -1)): records, 2: batch(b"c")}
        if alone:
            del partitions[2]
        acks = chance.choice((-1, -1, -1, 1, 0, 5))
        body = encoded_produce(version, {topic: partitions}, acks=acks)
        kind = chance.randrange(24 if alone else 8)
        if kind == 0:
            body = strange.request(PRODUCE, version)
        elif kind == 1:
            body = strange.mutated(body)
        yield request(PRODUCE, version, number, b"\0" + body if version >= 9 else body)


async def answers(seed, *, short, single=False):
    """What a broker writes, whether it closed the connection, how many took its ways, and what it counted."""
    _, storage, clock = memory_lake()
    lake = Lake(storage.uri, storage=storage, clock=clock, ids=CountingIds(1))  # the same ids each time
    lake.create_topic("t", 3)
    broker = Broker(lake, BrokerSettings({}, 1), here)
    try:
        way = CountedWay(broker.connections.short[PRODUCE])
        broker.connections.short = {PRODUCE: way} if short else {}
        one_way = CountedSingles(broker.connections.single)
        broker.connections.single = one_way if single else None
        topic_id = (await broker._topics.get("t")).id
        for version, topic in ((9, "t"), (13, topic_id)):  # found by name and by id, so that all follows in order
            await Produced(broker).one(batch(b"first"), version, topic)
        client = Client(broker.connections)
        for frame in requests_of(seed, topic_id):
            client.send(frame)
        await eventually_async(lambda: client.transport.closing or not client.protocol.waiting, "every answer")
        await settle()
        written = client.transport.take()
        meter = broker.meter.api("PRODUCE")
        counted = (meter.requests, meter.errors, meter.bytes_in, meter.bytes_out)
        return written, client.transport.lost, (way.begun, one_way.begun), counted
    finally:
        await broker.close()


@given(seed=st.integers(0, 2**32))
def test_all_ways_write_the_same_bytes(seed):
    general = asyncio.run(answers(seed, short=False))
    short = asyncio.run(answers(seed, short=True))
    single = asyncio.run(answers(seed, short=True, single=True))
    assert general[2] == (0, 0)
    for way in (short, single):
        assert (way[0], way[1], way[3]) == (general[0], general[1], general[3])


def test_plain_requests_take_the_short_way():
    assert sum(asyncio.run(answers(seed, short=True))[2][0] for seed in range(20)) > 20


def test_requests_of_one_batch_take_the_single_way():
    native_produce()
    assert sum(asyncio.run(answers(seed, short=True, single=True))[2][1] for seed in range(40)) > 10
