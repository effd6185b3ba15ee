"""Fetches that memory has an answer to take no task, and get the bytes of the general way."""

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from support.broker_connections import Client, request, settle
from support.broker_requests import request_of
from support.logs import CountingIds, memory_lake
from support.short_ways import CountedWay
from support.strange_requests import Strange
from support.waiting import eventually_async

from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.broker import Broker
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import here

FETCH = ApiKey.FETCH
VERSIONS = (4, 6, 7, 9, 11, 12, 13, 16, 18)
# Of the first session, as ids have the same fraction each time.
SESSION = 1 + int(0.4 * (2**31 - 1))


class SteadyIds(CountingIds):
    def fraction(self):
        return 0.4


def fetch_of(version, topic_id, asked, **fields):
    """A request for {partition: offset} of the topic, or of no topic."""
    name = {"topic_id": topic_id} if version >= 13 else {"topic": "t"}
    partitions = [{"partition": p, "fetch_offset": o, "partition_max_bytes": 1 << 20} for p, o in asked.items()]
    topics = [name | {"partitions": partitions}] if asked else []
    body = {"topics": topics, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 25, "replica_id": -1}
    return request_of(FETCH, version, body | fields)


def framed(version, number, body):
    return request(FETCH, version, number, b"\0" + body if version >= 12 else body)


def requests_of(seed, topic_id):
    """Frames of Fetch, outside of sessions and in them, some of them strange."""
    chance, strange, epoch = random.Random(seed), Strange(seed, texts=("t",), ids=(str(topic_id),)), 0
    for number in range(1, chance.randrange(2, 9)):
        version = chance.choice(VERSIONS)
        asked = {p: chance.choice((0, 0, 1, 2, 3, 9, -1)) for p in chance.sample((0, 1, 2, 7), chance.randrange(4))}
        fields = {"min_bytes": chance.choice((0, 1, 1, 500)), "session_epoch": -1}
        if chance.random() < 0.6:
            version = max(version, 12) if topic_id.int & 1 else chance.choice((11, 12))
            fields |= {"session_id": SESSION * (epoch > 0), "session_epoch": epoch}
            epoch += chance.random() < 0.9
        body = fetch_of(version, topic_id, asked, isolation_level=chance.randrange(2), **fields)
        kind = chance.randrange(10)
        if kind == 0:
            body = strange.request(FETCH, version)
        elif kind == 1:
            body = strange.mutated(body)
        yield framed(version, number, body)


async def answers(frames_of, *, short):
    """What a broker writes, whether it closed the connection, what it counted, and how many took the short way."""
    _, storage, clock = memory_lake()
    lake = Lake(storage.uri, storage=storage, clock=clock, ids=SteadyIds(1))
    lake.create_topic("t", 3)
    for partition, count in ((0, 3), (1, 1)):
        lake.topic("t").append([{"value": b"v%d" % n * 90, "partition": partition} for n in range(count)])
    broker = Broker(lake, BrokerSettings({}, 1), here)
    try:
        way = CountedWay(broker.connections.short[FETCH])
        topic_id = (await broker._topics.get("t")).id
        client = Client(broker.connections)

        async def ask(frames):
            for frame in frames:
                client.send(frame)
                await eventually_async(lambda: client.transport.closing or not client.protocol.waiting, "an answer")
            await settle()

        broker.connections.short = {}
        await ask([framed(11, 0, fetch_of(11, topic_id, {0: 0, 1: 0, 2: 0}, session_epoch=-1))])  # now it is in memory
        broker.connections.short = {FETCH: way} if short else {}
        await ask(frames_of(topic_id))
        meter, topic = broker.meter.api("FETCH"), broker._context.meter.topic("t")
        counted = meter.requests, meter.errors, meter.bytes_in, meter.bytes_out, topic.bytes_out, topic.fetch_requests
        return client.transport.take(), client.transport.lost, counted, way.begun
    finally:
        await broker.close()


@settings(max_examples=80)
@given(seed=st.integers(0, 2**32))
def test_both_ways_write_the_same_bytes(seed):
    general = asyncio.run(answers(lambda topic_id: requests_of(seed, topic_id), short=False))
    short = asyncio.run(answers(lambda topic_id: requests_of(seed, topic_id), short=True))
    assert general[3] == 0
    assert short[:3] == general[:3]


def test_plain_requests_that_memory_answers_take_the_short_way():
    def frames(topic_id):
        for number, version in enumerate(VERSIONS):
            yield framed(version, number, fetch_of(version, topic_id, {0: 1, 1: 0}, session_epoch=-1))

    assert asyncio.run(answers(frames, short=True))[3] == len(VERSIONS)


def test_requests_of_a_session_take_the_short_way_once_it_has_begun():
    def frames(topic_id):
        yield framed(12, 1, fetch_of(12, topic_id, {0: 3, 1: 0}, session_epoch=0))
        for epoch, asked in enumerate(({0: 0}, {0: 1, 1: 1}, {1: 0}), 1):
            yield framed(12, epoch, fetch_of(12, topic_id, asked, session_id=SESSION, session_epoch=epoch))

    assert asyncio.run(answers(frames, short=True))[3] == 3


def test_what_has_to_wait_or_to_be_looked_up_takes_the_general_way():
    def frames(topic_id):
        yield framed(11, 1, fetch_of(11, topic_id, {0: 3}, session_epoch=-1))
        yield framed(11, 2, fetch_of(11, topic_id, {0: 4}, session_epoch=-1))
        yield framed(11, 3, fetch_of(11, topic_id, {0: 0}, session_epoch=-1, min_bytes=1 << 20))
        yield framed(11, 4, fetch_of(11, topic_id, {}, session_epoch=-1))

    assert asyncio.run(answers(frames, short=True))[3] == 0
