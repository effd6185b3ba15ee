"""Fetches that wait: long polls, and what is read once for many or ahead."""

import asyncio
from uuid import UUID, uuid4

from kio.schema.errors import ErrorCode
from support.broker_connections import settle
from support.broker_fetches import append, fetch, follow
from support.fetched import position_after, records_of

from tidelog.broker.fetch.fetching import Fetching
from tidelog.broker.fetch.segment_stream import SegmentStream
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.follow.cursor import FollowedLog

VALUES = [f"v{n}".encode() for n in range(10)]


async def begun(requests, topics, **fields):
    """A request that waits, once it does."""
    body = {"max_bytes": 1 << 25, "min_bytes": 1, "max_wait": 60_000, "session_epoch": -1} | fields
    asked = [
        {"topic": t, "partitions": [{"partition": p, "partition_max_bytes": 1 << 20, "fetch_offset": o} for p, o in ps]}
        for t, ps in topics.items()
    ]
    task = asyncio.ensure_future(requests.answer(ApiKey.FETCH, 11, body | {"topics": asked}))
    await settle()
    return task


def values_of(answer):
    return [r.value for t in answer.responses for p in t.partitions for r in records_of(p.records)]


def test_a_long_poll_ends_with_the_first_record_of_any_topic(lake, requests):
    lake.create_topic("t", 2)
    lake.create_topic("u")

    async def run(topic, partition, read=0):
        task = await begun(requests, {"t": [(0, 0), (1, read)], "u": [(0, 0)]})
        assert not task.done()
        append(lake, topic, topic.encode(), partition=partition)
        requests.broker._context.topics.committed(topic)
        return values_of(await asyncio.wait_for(task, 10))

    assert requests.loop.run_until_complete(run("t", 1)) == [b"t"]
    assert requests.loop.run_until_complete(run("u", 0, read=1)) == [b"u"]


def test_what_is_appended_wakes_only_what_waits_for_its_partition(lake, requests, monkeypatch):
    """A topic that hundreds of consumers share: each record is for one of them."""
    lake.create_topic("t", 3)
    looks = []
    fill = Fetching._fill
    monkeypatch.setattr(
        Fetching, "_fill", lambda self, request, ps: looks.append([p.key[1] for p in ps]) or fill(self, request, ps)
    )

    async def run():
        tasks = [await begun(requests, {"t": [(p, 0)]}) for p in range(3)]
        looks.clear()
        append(lake, "t", b"x", partition=1)
        requests.broker._context.topics.committed("t", [1])
        await requests.broker._context.topics.look("t")  # as the store reports it
        await settle()
        found = values_of(await asyncio.wait_for(tasks[1], 10))
        assert not tasks[0].done()
        assert not tasks[2].done()
        append(lake, "t", b"y", partition=2)  # another broker's
        await requests.broker._context.topics.look("t")
        found += values_of(await asyncio.wait_for(tasks[2], 10))
        assert not tasks[0].done()
        tasks[0].cancel()
        return found

    assert requests.loop.run_until_complete(run()) == [b"x", b"y"]
    assert [0] not in looks


def test_a_look_for_something_else_wakes_what_waits(lake, requests):
    """Whatever has the log looked at first, what it shows is for all."""
    lake.create_topic("t", 2)
    of_none = {"partition_index": 99, "committed_offset": 0, "committed_metadata": ""}
    commit = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": []}

    async def run():
        task = await begun(requests, {"t": [(0, 0)]})
        append(lake, "t", b"x")  # another broker's
        body = commit | {"topics": [{"name": "t", "partitions": [of_none]}]}
        await requests.answer(ApiKey.OFFSET_COMMIT, 8, body)
        return values_of(await asyncio.wait_for(task, 10))

    assert requests.loop.run_until_complete(run()) == [b"x"]


def test_a_commit_wakes_what_waits_for_what_others_have_appended(lake, requests):
    """This broker's entry comes after theirs, so that it has seen these."""
    lake.create_topic("t", 2)

    async def run():
        task = await begun(requests, {"t": [(0, 0)]})
        append(lake, "t", b"x", partition=0)
        requests.broker._context.topics._followed["t"].log.refresh()
        requests.broker._context.topics.committed("t", [1])
        return values_of(await asyncio.wait_for(task, 10))

    assert requests.loop.run_until_complete(run()) == [b"x"]


def test_those_that_ask_for_a_topics_end_together_share_a_look_at_it(lake, requests, monkeypatch):
    lake.create_topic("t", 3)
    looks = []
    refresh = FollowedLog.refresh
    monkeypatch.setattr(FollowedLog, "refresh", lambda self: looks.append(self.name) or refresh(self))
    ends = {"name": "t", "partitions": [{"partition_index": p, "timestamp": -1} for p in range(3)]}

    async def run():
        await requests.answer(ApiKey.LIST_OFFSETS, 5, {"replica_id": -1, "topics": [ends]})
        append(lake, "t", b"x")
        looks.clear()
        asked = [requests.answer(ApiKey.LIST_OFFSETS, 5, {"replica_id": -1, "topics": [ends]}) for _ in range(100)]
        return await asyncio.gather(*asked)

    for answer in requests.loop.run_until_complete(run()):
        assert [p.offset for p in answer.topics[0].partitions] == [1, 0, 0]
    assert len(looks) <= 3


def test_a_long_poll_waits_for_as_many_bytes_as_asked(lake, requests):
    lake.create_topic("t", 2)

    async def run():
        task = await begun(requests, {"t": [(0, 0), (1, 0)]}, min_bytes=1500)
        append(lake, "t", b"x" * 1000, partition=0)
        requests.broker._context.topics.committed("t")
        await settle()
        assert not task.done()
        append(lake, "t", b"y" * 1000, partition=1)
        requests.broker._context.topics.committed("t")
        return values_of(await asyncio.wait_for(task, 10))

    assert sorted(requests.loop.run_until_complete(run())) == [b"x" * 1000, b"y" * 1000]


def test_a_long_poll_ends_in_time(lake, requests):
    lake.create_topic("t")
    append(lake, "t", b"x")

    async def run(offset):
        task = await begun(requests, {"t": [(0, offset)]}, min_bytes=1000, max_wait=20)
        return values_of(await asyncio.wait_for(task, 10))

    assert requests.loop.run_until_complete(run(1)) == []
    assert requests.loop.run_until_complete(run(0)) == [b"x"]


def test_a_long_poll_ends_when_its_topic_goes(lake, requests):
    lake.create_topic("t")

    async def run():
        task = await begun(requests, {"t": [(0, 0)]})
        lake.delete_topic("t")
        follow(requests, "t")
        return await asyncio.wait_for(task, 10)

    ((partition,),) = [t.partitions for t in requests.loop.run_until_complete(run()).responses]
    assert partition.error_code is ErrorCode.unknown_topic_or_partition


def test_a_client_that_has_gone_leaves_nothing_behind(lake, requests):
    lake.create_topic("t")

    async def run():
        task = await begun(requests, {"t": [(0, 0)]})
        task.cancel()
        await settle()
        return task.cancelled()

    assert requests.loop.run_until_complete(run())
    assert not requests.broker._context.topics._followed["t"]._waits


def test_many_readers_at_one_place_decode_once(lake, requests, monkeypatch):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    reads = []
    read = SegmentStream.read
    monkeypatch.setattr(SegmentStream, "read", lambda self, *args: reads.append(self.position) or read(self, *args))

    gate = asyncio.Event()

    async def slowly(call, *args):
        await gate.wait()
        return call(*args)

    async def run():
        await begun(requests, {"t": [(0, 10)]}, max_wait=0)  # the topic is known
        object.__setattr__(requests.broker._context, "blocking", slowly)
        tasks = [await begun(requests, {"t": [(0, 0)]}) for _ in range(10)]
        gate.set()
        return [values_of(answer) for answer in await asyncio.gather(*tasks)]

    assert requests.loop.run_until_complete(run()) == [VALUES] * 10
    assert reads == [0]


def test_a_reader_that_goes_on_has_its_next_chunk_read_meanwhile(lake, requests):
    lake.create_topic("t")
    for n in range(3):
        append(lake, "t", *[bytes([n]) * 500_000] * 3)
    answer = fetch(requests, {"t": {0: 0}}, 11)["t", 0]
    after = position_after(answer.records, 0)
    requests.loop.run_until_complete(settle())
    cache, place = requests.broker._context.cache, (UUID(lake.topic("t").id), 0, 0)
    first = cache.find(place, 0)
    assert after <= first.end < 9
    assert cache.find(place, first.end) is not None


def test_a_broker_that_stops_answers_what_waits(lake, requests):
    lake.create_topic("t")

    async def run():
        task = await begun(requests, {"t": [(0, 0)]})
        for close in requests.broker._context.at_close:
            await close()
        return values_of(await asyncio.wait_for(task, 10))

    assert requests.loop.run_until_complete(run()) == []


def test_an_id_that_no_topic_has_is_not_looked_for_at_each_request(lake, requests, monkeypatch):
    lake.create_topic("t")
    lists, unknown = [], uuid4()
    topics = lake.topics
    monkeypatch.setattr(lake, "topics", lambda **more: lists.append(1) or topics(**more))
    for _ in range(5):
        assert fetch(requests, {unknown: {0: 0}})[unknown, 0].error_code is ErrorCode.unknown_topic_id
    assert lists == [1]
    lake.clock.pass_s(2)
    fetch(requests, {unknown: {0: 0}})
    assert lists == [1, 1]


def test_what_clients_take_is_counted(lake, requests):
    lake.create_topic("t", 2)
    append(lake, "t", *VALUES)
    answers = fetch(requests, {"t": {0: 0, 1: 5}}, 11)
    meter = requests.broker._context.meter.topic("t")
    assert meter.bytes_out == len(answers["t", 0].records)
    assert (meter.fetch_requests, meter.failed_fetch_requests) == (1, 1)
