"""Fetch of what memory dropped into files: as from memory, without a segment, and never what the log has no more."""

import os
from dataclasses import replace
from uuid import UUID

import pytest
from support.broker_fetches import append, fetch, follow
from support.broker_requests import Requests, request_of
from support.fetched import position_after, records_of

from tidelog.broker.base.batch_files import FiledRun
from tidelog.broker.base.calls import Call, Peer
from tidelog.broker.fetch import filed_reads
from tidelog.broker.fetch.segment_stream import SegmentStream
from tidelog.broker.records.batches import split
from tidelog.broker.records.codec import record_codec
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.storage.scratch import ScratchFile

VALUES = [bytes([n]) * 3000 for n in range(60)]


@pytest.fixture(params=[2, 1 << 30], ids=["written", "waiting"])
def filed(lake, request):
    """A broker that has taken in a topic, with hardly a cache, and the batches that it was sent."""
    lake.create_topic("t", partitions=2)
    with Requests(lake, cache_bytes=1024, cache_files_bytes=64 << 20) as requests:
        cache = requests.broker._context.cache
        cache.files._write_bytes = request.param
        for partition in range(2):
            append(lake, "t", *VALUES, partition=partition)
        fetch(requests, {"t": {0: 60}}, 12)
        for partition in range(2):
            (records,) = lake.topic("t").read(partition, 0, include_headers=True)
            for one in record_codec().batches(records, 0, 0, 20_000):
                requests.loop.run_until_complete(_add(cache, UUID(lake.topic("t").id), partition, one))
        yield requests


async def _add(cache, topic, partition, one):
    cache.add(topic, partition, one.first, one.last, one.data)
    while cache.files._writing is not None:
        await cache.files._writing


async def _follow(requests):
    follow(requests, "t")


@pytest.fixture
def no_segments(monkeypatch):
    def refuse(*_):
        raise AssertionError("a segment is read")

    monkeypatch.setattr(SegmentStream, "read", refuse)


def asked(requests, partition, offset, **fields):
    return fetch(requests, {"t": {partition: {"fetch_offset": offset} | fields}}, 12)["t", partition]


def read_all(requests, partition=0, most=1 << 20):
    records, position, end = [], 0, 1
    while position < end:
        answer = asked(requests, partition, position, partition_max_bytes=most)
        assert not answer.error_code
        records += [(r.offset, r.value) for r in records_of(answer.records, position)]
        after, end = position_after(answer.records, position), answer.high_watermark
        assert after > position
        position = after
    return records


@pytest.mark.usefixtures("no_segments")
@pytest.mark.parametrize("most", [1, 30_000, 1 << 20])
def test_all_is_read_without_a_segment(filed, most):
    assert isinstance(filed.broker._context.cache.files.find(_place(filed), 0), FiledRun) == (
        filed.broker._context.cache.files._write_bytes == 2
    )
    assert read_all(filed, 0, most) == read_all(filed, 1, most) == list(enumerate(VALUES))


def _place(requests):
    ((name, topic),) = requests.broker._context.topics._followed.items()
    assert name == "t"
    return topic.id, 0, 0


@pytest.mark.usefixtures("no_segments")
def test_an_answer_has_what_files_have_of_all_partitions(filed):
    answers = fetch(filed, {"t": {0: 10, 1: 59}}, 12)
    assert [len(records_of(answers["t", p].records, at)) for p, at in ((0, 10), (1, 59))] == [50, 1]


@pytest.mark.usefixtures("no_segments")
def test_a_plain_request_is_answered_at_once(filed, monkeypatch):
    context, way, done = filed.broker._context, filed.broker.connections.short[ApiKey.FETCH], []
    run = context.cache.files.find(_place(filed), 0)
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    body = {"topics": [{"topic": "t", "partitions": [partition]}], "min_bytes": 1, "max_bytes": 1 << 25}
    request = request_of(ApiKey.FETCH, 12, body | {"replica_id": -1, "session_epoch": -1})

    async def begin():
        call = Call(ApiKey.FETCH, 12, None, memoryview(request), Peer("PLAINTEXT"), context.clock.elapsed_s())
        return way.begin(call, lambda: done.append(1))

    reply = filed.loop.run_until_complete(begin())
    assert sum(map(len, reply().pieces)) > 180_000
    assert done
    if isinstance(run, FiledRun):  # a disk is waited for elsewhere
        monkeypatch.setattr(ScratchFile, "is_near", lambda *_: False)
        assert filed.loop.run_until_complete(begin()) is None
    monkeypatch.setattr(filed_reads, "AT_ONCE_BYTES", 1000)
    assert filed.loop.run_until_complete(begin()) is None
    assert done == [1]


@pytest.mark.parametrize("filed", [2], indirect=True)
def test_a_file_that_is_not_as_it_was_is_given_up_and_segments_are_read(filed, caplog):
    run = filed.broker._context.cache.files.find(_place(filed), 0)
    os.pwrite(run.file.scratch._number, b"\xff\xff", run.at + 200)
    assert read_all(filed) == list(enumerate(VALUES))
    assert "Batches are read from segments" in caplog.text
    assert filed.broker._context.cache.files.find(_place(filed), 0) is not run


def test_what_the_log_has_no_more_is_not_served(filed, lake):
    lake.delete_records("t", {0: 40})
    topics = filed.broker._context.topics
    topics._followed["t"].log.refresh()  # the cache has not heard of it
    assert [r.offset for r in records_of(asked(filed, 0, 45).records, 45)] == list(range(45, 60))
    filed.loop.run_until_complete(_follow(filed))
    assert asked(filed, 0, 39).error_code
    assert filed.broker._context.cache.files.find(_place(filed), 0) is None


def test_a_new_leader_epoch_is_in_what_files_give(filed):
    context = filed.broker._context
    view = replace(context.cluster(), epoch=7)
    object.__setattr__(context, "cluster", lambda: view)
    batches = split(asked(filed, 0, 0).records)
    assert len(batches) > 1
    assert {header.leader_epoch for header, _ in batches} == {7}
