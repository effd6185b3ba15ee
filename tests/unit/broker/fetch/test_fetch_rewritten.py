"""What a broker remembers follows the log: no rewrite's records are served out of its memory."""

from uuid import UUID

import pytest
from support.broker_fetches import fetch, follow
from support.fetched import position_after, records_of
from support.logs import memory_lake, read_offsets
from support.produce_requests import batch
from support.rewrites import TAKE_RECORDS_AWAY, append_new, fill_rounds, merge

from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.fetch.segment_stream import SegmentStream
from tidelog.log.state.rewrites import Rewrite

KINDS = pytest.mark.parametrize("kind", TAKE_RECORDS_AWAY)
# Where a consumer stands that has read the first rounds, amid one.
MIDDLE = 13


@pytest.fixture
def lake():
    lake = memory_lake()[0]
    fill_rounds(lake)
    return lake


def served(requests, offset, **partition):
    """All that a consumer gets from an offset on, as (offset, text), and where it goes on; the log start if asked."""
    found, position = [], offset
    while True:
        asked = {"fetch_offset": position, **partition}
        answer = fetch(requests, {"t": {0: asked}}, 12)["t", 0]
        if answer.error_code == 1:  # out of range: as a client that resets to the earliest
            position = requests.broker._context.topics._followed["t"].state.start(0)
            continue
        if not answer.records:
            return found
        found += [(r.offset, r.value.decode()) for r in records_of(answer.records, position)]
        position = position_after(answer.records, position)


def remember(requests, lake, how):
    """Have the broker remember all of the topic: as it was produced by it, or as it was read from segments."""
    if how == "read":
        return served(requests, 0)
    fetch(requests, {"t": {0: 30}}, 12)  # it is followed from now on
    cache, topic = requests.broker._context.cache, UUID(lake.topic("t").id)
    for offset, text in read_offsets(lake, "t"):
        sent = bytearray(batch(text.encode()))
        sent[:8] = offset.to_bytes(8)
        cache.add(topic, 0, offset, offset, bytes(sent))
    return served(requests, 0)


@KINDS
@pytest.mark.parametrize("how", ["produced", "read"])
def test_a_consumer_that_begins_again_and_one_amid_get_what_the_log_holds(lake, requests, kind, how):
    before = remember(requests, lake, how)
    assert before == read_offsets(lake, "t")
    TAKE_RECORDS_AWAY[kind](lake, "t")
    follow(requests, "t")
    left = read_offsets(lake, "t")
    assert len(left) < len(before)
    assert served(requests, 0) == left
    assert served(requests, MIDDLE) == [one for one in left if one[0] >= MIDDLE]
    append_new(lake)
    follow(requests, "t")
    assert served(requests, 0) == [*left, (30, "new")]


@pytest.mark.parametrize("how", ["produced", "read"])
def test_a_merge_leaves_what_is_remembered(lake, requests, how):
    before = remember(requests, lake, how)
    size = requests.broker._context.cache.size
    merge(lake, "t")
    follow(requests, "t")
    assert requests.broker._context.cache.size == size
    assert served(requests, 0) == before


@KINDS
def test_a_stream_of_segments_that_is_open_is_begun_again(lake, requests, kind, monkeypatch):
    """It was planned before the rewrite, and holds files that are not of the topic any more."""
    monkeypatch.setattr("tidelog.broker.fetch.segment_stream.MOST_SEGMENTS", 1)
    monkeypatch.setattr("tidelog.broker.fetch.fetching.Fetching._read_ahead", lambda *_: None)
    fetch(requests, {"t": {0: {"fetch_offset": 0, "partition_max_bytes": 1}}}, 12)
    TAKE_RECORDS_AWAY[kind](lake, "t")
    follow(requests, "t")
    left = read_offsets(lake, "t")
    assert [one for one in served(requests, 5) if one[0] >= 5] == [one for one in left if one[0] >= 5]


@KINDS
def test_what_was_read_before_a_rewrite_and_comes_after_it_is_not_kept(lake, requests, kind, monkeypatch):
    """The rewrite comes between the read of the segments and the moment in which the cache gets it."""
    real, done = SegmentStream.read, []

    def read(self, *args):
        chunk = real(self, *args)
        if not done:
            done.append(True)
            TAKE_RECORDS_AWAY[kind](lake, "t")
            requests.broker._context.topics._followed["t"].log.refresh()
        return chunk

    monkeypatch.setattr(SegmentStream, "read", read)
    fetch(requests, {"t": {0: 30}}, 12)
    served(requests, 0)
    assert done
    assert served(requests, 0) == read_offsets(lake, "t")


def test_a_topic_that_is_deleted_is_forgotten(lake, requests):
    remember(requests, lake, "read")
    assert requests.broker._context.cache.size
    lake.delete_topic("t")
    follow(requests, "t")
    assert not requests.broker._context.cache.size


def test_a_topic_that_is_made_again_is_forgotten_too(lake, requests):
    remember(requests, lake, "read")
    lake.delete_topic("t")
    lake.create_topic("t", 1)
    follow(requests, "t")
    assert not requests.broker._context.cache.size
    assert served(requests, 0) == []


def test_a_batch_whose_offsets_were_rewritten_before_it_is_settled_is_not_kept(lake, requests):
    followed = None

    async def look():
        nonlocal followed
        followed = await requests.broker._context.topics.find("t")

    requests.loop.run_until_complete(look())
    TAKE_RECORDS_AWAY["forget"](lake, "t")
    followed.log.refresh()
    topic = UUID(lake.topic("t").id)
    assert followed.is_rewritten(topic, 0, 0, 5)
    assert not followed.is_rewritten(topic, 0, 30, 31)
    assert followed.is_rewritten(UUID(int=5), 0, 30, 31)


def test_the_cache_counts_what_it_forgets():
    cache, topic = BatchCache(1 << 20), UUID(int=1)
    for at in range(4):
        cache.add(topic, at % 2, at, at, bytes(300_000))
    cache.forget(topic, [Rewrite(9, 0, 0, 1)])
    assert [cache.get(topic, at % 2, at) is None for at in range(4)] == [True, False, False, False]
    cache.forget(topic, None)
    assert cache.size == 0
