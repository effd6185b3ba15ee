"""Produce over a lake in memory: what lands, in which entries, and how each request is answered."""

import asyncio
import struct
import threading
from uuid import UUID, uuid4

import pytest
from support.group_commits import entries, lake_with
from support.logs import START_MS
from support.produce_requests import LZ4, NEWEST, ZSTD, batch, read_back, told, with_broker
from support.waiting import eventually_async

from tidelog.broker.produce.linger import NextRound
from tidelog.broker.produce.topic_pools import TopicPools
from tidelog.broker.records.batches import header_of
from tidelog.broker.records.codec import record_codec
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import UnacknowledgedError
from tidelog.log.base.errors import StorageUnavailableError

VERSIONS = range(OFFERED[ApiKey.PRODUCE].first, NEWEST + 1)


# --- what lands --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_every_version_appends(version, acks):
    lake, _, _ = lake_with(2)

    async def act(asked):
        topic = (await asked.broker._topics.get("t")).id if version >= 13 else "t"
        answer = await asked.ask(version, {topic: {0: batch(b"a", b"b"), 1: batch(b"c")}}, acks=acks)
        again = await asked.one(batch(b"d"), version, topic, acks=acks)
        return answer, again, topic

    answer, again, topic = with_broker(lake, act)
    (found,) = answer.responses
    assert (found.topic_id if version >= 13 else found.name) == topic
    assert [(p.index, *told(p)) for p in found.partition_responses] == [(0, 0, 0), (1, 0, 0)]
    assert told(again) == (0, 2)
    assert getattr(again, "log_start_offset", 0) == 0
    assert again.log_append_time is None
    assert read_back(lake) == {0: [b"a", b"b", b"d"], 1: [b"c"]}


def test_partitions_and_topics_of_a_request_are_answered_as_they_were_asked():
    lake, _, _ = lake_with(2)
    lake.create_topic("u", 1)

    async def act(asked):
        topics = {"u": {0: batch(b"1")}, "t": {1: batch(b"2"), 9: batch(b"3"), 0: batch(b"4"), -1: batch(b"5")}}
        return await asked.ask(9, topics)

    answer = with_broker(lake, act)
    assert [(one.name, [(p.index, *told(p)) for p in one.partition_responses]) for one in answer.responses] == [
        ("u", [(0, 0, 0)]),
        ("t", [(1, 0, 0), (9, 3, -1), (0, 0, 0), (-1, 3, -1)]),
    ]
    assert read_back(lake) == {0: [b"4"], 1: [b"2"]}
    assert entries(lake) == 1


def test_an_answer_tells_where_the_log_starts():
    lake, _, _ = lake_with(1)

    async def act(asked):
        await asked.one(batch(b"a", b"b", b"c"))
        lake.delete_records("t", {0: 2})
        return await asked.one(batch(b"d"))

    assert with_broker(lake, act).log_start_offset == 2


def test_the_broker_stamps_records_where_the_topic_wants_it():
    lake, _, clock = lake_with(1, message_timestamp_type="LogAppendTime")
    clock.ms = START_MS + 5_000

    async def act(asked):
        found = await asked.one(batch(b"a", timestamp=START_MS - 10**9))
        followed = await asked.broker._topics.get("t")
        return found, asked.broker._context.cache.get(followed.id, 0, 0)

    found, cached = with_broker(lake, act)
    assert found.log_append_time.timestamp() * 1000 == START_MS + 5_000
    assert header_of(cached).is_log_append_time
    assert header_of(cached).max_timestamp == START_MS + 5_000
    (records,) = lake.topic("t").read(0)
    assert records.column("timestamp")[0].as_py().timestamp() * 1000 == START_MS + 5_000


@pytest.mark.parametrize(
    ("records", "spare", "code"),
    [
        (batch(b"x" * 1000), 0, 0),
        (batch(b"x" * 1000), -1, 10),
        (batch(*[b"small"] * 50), -1, 10),  # no record is too large, and the batch is
        (batch(bytes(100_000), codec=ZSTD), 0, 0),  # unpacked it would be
        (batch(bytes(100_000), codec=ZSTD), -1, 10),
        (batch(bytes(100_000), codec=LZ4, headers=[("h", bytes(9_000))]), 0, 0),
    ],
    ids=["a record", "a larger one", "many records", "packed", "packed and larger", "packed, with headers"],
)
def test_the_largest_message_is_that_of_the_batch_as_it_came(records, spare, code):
    lake, _, _ = lake_with(1, max_message_bytes=str(len(records) + spare))

    async def act(asked):
        return await asked.one(records)

    assert told(with_broker(lake, act)) == (code, 0 if code == 0 else -1)
    assert bool(read_back(lake)[0]) is (code == 0)


# --- entries -----------------------------------------------------------------------------------------------


def test_what_waits_of_all_requests_is_one_entry_read_at_once(monkeypatch):
    lake, _, _ = lake_with(4)
    reads = []

    def counted(real):
        def read(self, batches, *more):
            found = real(self, batches, *more)
            if found is not None:  # noted, or read into columns
                reads.append(len(batches))
            return found

        return read

    for name in ("noted", "columns"):
        monkeypatch.setattr(type(record_codec()), name, counted(getattr(type(record_codec()), name)))

    async def act(asked):
        await asked.one(batch(b"first"))
        return await asyncio.gather(*(asked.one(batch(b"%d" % at), partition=at % 4) for at in range(100)))

    found = with_broker(lake, act)
    assert [told(one) for one in found] == [(0, at // 4 + (at % 4 == 0)) for at in range(100)]
    assert entries(lake) == 2
    assert reads == [1, 100]


@pytest.mark.parametrize(("fault", "code"), [(MemoryError, 2), (RuntimeError, 87)])
def test_a_batch_that_the_reader_fails_at_fails_no_other(fault, code, monkeypatch):
    lake, _, _ = lake_with(2)

    def failing(real):
        def read(self, batches, *more):
            if any(b"poison" in bytes(one) for one in batches):
                raise fault
            return real(self, batches, *more)

        return read

    for name in ("noted", "columns"):
        monkeypatch.setattr(type(record_codec()), name, failing(getattr(type(record_codec()), name)))
    values = [b"poison" if at == 5 else b"%d" % at for at in range(10)]

    async def act(asked):
        await asked.one(batch(b"first"))
        return await asyncio.gather(*(asked.one(batch(value), partition=at % 2) for at, value in enumerate(values)))

    found = [told(one) for one in with_broker(lake, act)]
    assert found[5] == (code, -1)
    assert [error for at, (error, _) in enumerate(found) if at != 5] == [0] * 9
    assert read_back(lake) == {0: [b"first", *values[::2]], 1: [v for v in values[1::2] if v != b"poison"]}


def holding(version):
    """A hook that holds an entry of topic t; whether it has come to be written, and what lets it go on."""
    begun, go_on = threading.Event(), threading.Event()

    def hook(method, path, phase):
        if (method, phase) == ("put_if_absent", "before") and path == f"t/_delta_log/{version:020}.json":
            begun.set()
            assert go_on.wait(30)

    return hook, begun, go_on


def test_what_comes_while_an_entry_is_written_shares_the_next():
    hook, begun, go_on = holding(2)
    lake, _, _ = lake_with(1, hook)

    async def act(asked):
        await asked.one(batch(b"first"))
        sent = [asyncio.ensure_future(asked.one(batch(b"0")))]
        await eventually_async(begun.is_set, "an entry that is written")
        for at in range(1, 30):
            sent.append(asyncio.ensure_future(asked.one(batch(b"%d" % at))))
            await asyncio.sleep(0)
        go_on.set()
        return [told(await one) for one in sent]

    assert with_broker(lake, act) == [(0, at + 1) for at in range(30)]
    assert entries(lake) == 3
    assert read_back(lake)[0][1:] == [b"%d" % at for at in range(30)]


def test_the_next_entry_waits_for_the_producers_that_were_answered(monkeypatch):
    real = NextRound.answered

    def answered(self, units, waiting, took_s, now_s):
        real(self, units, waiting, took_s + 1.0, now_s)  # as on a disk

    monkeypatch.setattr(NextRound, "answered", answered)
    lake, _, _ = lake_with(1)

    async def act(asked):
        await asyncio.gather(*(asked.one(batch(b"%d" % at)) for at in range(3)))
        sent = []
        for at in range(3):
            assert entries(lake) == 1
            sent.append(asyncio.ensure_future(asked.one(batch(b"%d" % at))))
            for _ in range(20):  # its entry would begin
                await asyncio.sleep(0)
        return [told(await one) for one in sent]

    assert with_broker(lake, act) == [(0, 3), (0, 4), (0, 5)]
    assert entries(lake) == 2


def test_batches_that_were_read_at_different_times_keep_their_order_in_each_partition():
    hook, _, go_on = holding(1)
    lake, _, _ = lake_with(3, hook, max_message_bytes="10000000")

    async def act(asked):
        sent = []
        for at in range(60):
            rows = (b"%d-%d" % (at, row) + bytes(1000) for row in range(500))
            one = batch(*rows, producer=(7, 0, at // 3 * 500))
            sent.append(asyncio.ensure_future(asked.one(one, partition=2 - at % 3)))
            await asyncio.sleep(0)
        go_on.set()
        return [told(await one) for one in sent]

    assert with_broker(lake, act) == [(0, at // 3 * 500) for at in range(60)]
    assert entries(lake) < 60
    assert {p: [value.rstrip(b"\0") for value in values] for p, values in read_back(lake).items()} == {
        p: [b"%d-%d" % (at, row) for at in range(2 - p, 60, 3) for row in range(500)] for p in range(3)
    }


def test_large_batches_are_read_while_the_entry_before_is_written():
    lake, _, _ = lake_with(1, max_message_bytes="10000000")
    large = [batch(*(b"%d-%d" % (at, row) + bytes(1000) for row in range(700))) for at in range(40)]

    async def act(asked):
        sent = []
        for one in large:
            sent.append(asyncio.ensure_future(asked.one(one)))
            await asyncio.sleep(0)
        return [told(await one) for one in sent]

    assert with_broker(lake, act) == [(0, at * 700) for at in range(40)]
    assert [value.rstrip(b"\0") for value in read_back(lake)[0]] == [
        b"%d-%d" % (at, row) for at in range(40) for row in range(700)
    ]


def test_requests_keep_their_order_while_their_topic_is_looked_up():
    lake, _, _ = lake_with(1)
    lake.create_topic("new", 1)

    async def act(asked):
        producer = [asked.one(batch(b"%d" % at, producer=(7, 0, at)), topic="new") for at in range(20)]
        return await asyncio.gather(*producer)

    assert [told(one) for one in with_broker(lake, act)] == [(0, at) for at in range(20)]
    assert read_back(lake, "new")[0] == [b"%d" % at for at in range(20)]


# --- refusals ----------------------------------------------------------------------------------------------


def torn(records):
    """The same batch with one byte of its records changed."""
    return records[:-1] + bytes((records[-1] ^ 1,))


OLD_FORMAT = batch(b"a")[:16] + b"\1" + batch(b"a")[17:]


@pytest.mark.parametrize(
    ("records", "version", "code"),
    [
        (None, 9, 87),
        (b"", 9, 87),
        (batch(b"a") + batch(b"b"), 9, 87),
        (batch(b"a")[:-1], 9, 2),
        (torn(batch(b"a")), 9, 2),
        (OLD_FORMAT, 9, 43),
        (batch(b"a", codec=ZSTD), 6, 76),
        (batch(b"a", codec=ZSTD), 7, 0),
        (batch(bytes(2_000_000)), 9, 10),
        (batch(b"a", transactional=True, producer=(1, 0, 0)), 9, 53),
        (batch(b"a", timestamp=START_MS + 10**9), 9, 32),
    ],
)
def test_a_batch_is_refused_by_kafkas_code_and_the_others_are_taken(records, version, code):
    lake, _, _ = lake_with(2)

    async def act(asked):
        return await asked.ask(version, {"t": {0: records, 1: batch(b"good")}})

    found = with_broker(lake, act).responses[0].partition_responses
    assert [told(one) for one in found] == [(code, -1 if code else 0), (0, 0)]
    assert read_back(lake) == {0: [] if code else [b"a"], 1: [b"good"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_records_to_blame_are_named_since_version_8(version):
    lake, _, _ = lake_with(1, cleanup_policy="compact")

    async def act(asked):
        topic = (await asked.broker._topics.get("t")).id if version >= 13 else "t"
        return await asked.one(batch(b"a", b"b", key=None), version, topic)

    found = with_broker(lake, act)
    assert told(found) == (87, -1)
    if version >= 8:
        assert [one.batch_index for one in found.record_errors] == [0, 1]
        assert "without a key" in found.record_errors[0].batch_index_error_message
        assert "rejected" in found.error_message


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(acks):
    lake, _, _ = lake_with(1)
    assert told(with_broker(lake, lambda asked: asked.one(batch(b"a"), acks=acks))) == (21, -1)
    assert read_back(lake) == {0: []}


def test_without_acks_there_is_no_answer():
    lake, _, _ = lake_with(1)
    assert with_broker(lake, lambda asked: asked.ask(9, {"t": {0: batch(b"a")}}, acks=0)) is None
    assert read_back(lake) == {0: [b"a"]}


def test_without_acks_an_error_ends_the_connection():
    lake, _, _ = lake_with(1)
    with pytest.raises(UnacknowledgedError, match="no partition 5"):
        with_broker(lake, lambda asked: asked.ask(9, {"t": {5: batch(b"a")}}, acks=0))


def old_request(acks):
    """A request of version 2 for partition 3 of topic t."""
    return memoryview(struct.pack(">hiih1siii2s", acks, 100, 1, 1, b"t", 1, 3, 2, b"xx"))


def test_versions_that_are_shown_only_are_refused_in_their_own_format():
    lake, _, _ = lake_with(1)

    async def act(asked):
        call = asked.call(2, old_request(-1))
        return await asked.broker.handlers[ApiKey.PRODUCE](call)

    payload = b"".join(with_broker(lake, act).pieces)
    assert payload == struct.pack(">ih1siihqqi", 1, 1, b"t", 1, 3, 35, -1, -1, 0)


def test_and_end_the_connection_where_no_answer_is_wanted():
    lake, _, _ = lake_with(1)

    async def act(asked):
        return await asked.broker.handlers[ApiKey.PRODUCE](asked.call(2, old_request(0)))

    with pytest.raises(UnacknowledgedError):
        with_broker(lake, act)


# --- topics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_producing_makes_no_topic_as_in_kafka_where_metadata_does(allowed):
    lake, _, _ = lake_with(1)
    lake.alter_config({"auto.create.topics.enable": allowed})
    assert told(with_broker(lake, lambda asked: asked.one(batch(b"a"), topic="new"))) == (3, -1)
    assert lake.topics() == ["t"]


def test_records_for_a_topic_whose_deletion_comes_between_are_refused_as_for_one_that_is_not_there(monkeypatch):
    """The follower has noticed the deletion after the topic was found, and before its pool is made."""
    lake, _, _ = lake_with(1)
    real = TopicPools._topic

    async def found_and_gone(self, ref):
        found = await real(self, ref)
        lake.delete_topic("t")
        found.log.refresh()
        return found

    monkeypatch.setattr(TopicPools, "_topic", found_and_gone)
    assert told(with_broker(lake, lambda asked: asked.one(batch(b"a")))) == (3, -1)


@pytest.mark.parametrize("name", ["", "a b", "__consumer_offsets", "__transaction_state", "x" * 250])
def test_a_name_that_no_topic_has_is_refused(name):
    lake, _, _ = lake_with(1)
    assert told(with_broker(lake, lambda asked: asked.one(batch(b"a"), topic=name))) == (17, -1)


@pytest.mark.parametrize("topic_id", [uuid4(), UUID(int=0)])
def test_an_id_that_no_topic_has(topic_id):
    lake, _, _ = lake_with(1)
    assert told(with_broker(lake, lambda asked: asked.one(batch(b"a"), NEWEST, topic_id))) == (100, -1)


def test_records_for_a_topic_that_was_made_anew_do_not_land_in_it():
    lake, _, _ = lake_with(1)

    async def act(asked):
        old = (await asked.broker._topics.get("t")).id
        found = [await asked.one(batch(b"a"), NEWEST, old)]
        lake.delete_topic("t")
        lake.create_topic("t", 1)
        found += [await asked.one(batch(b"b"), NEWEST, old) for _ in range(2)]
        return [told(one) for one in found], told(await asked.one(batch(b"c")))

    by_id, by_name = with_broker(lake, act)
    assert by_id == [(0, 0), (100, -1), (100, -1)]
    assert by_name == (0, 0)
    assert read_back(lake) == {0: [b"c"]}


def test_a_topic_that_grew_elsewhere_takes_records_for_its_new_partitions():
    lake, _, _ = lake_with(1)

    async def act(asked):
        await asked.one(batch(b"a"))
        lake.alter_topic("t", partitions=3)
        return await asked.one(batch(b"b"), partition=2)

    assert told(with_broker(lake, act)) == (0, 0)


# --- what consumers get ------------------------------------------------------------------------------------


def test_a_batch_is_served_as_it_came_once_it_is_committed():
    lake, _, _ = lake_with(1)
    sent = batch(b"a", b"b", codec=LZ4, headers=[("h", None)])

    async def act(asked):
        await asked.one(batch(b"before"))
        rung = []
        followed = await asked.broker._topics.get("t")
        followed.on_change(lambda: rung.append(asked.broker._context.cache.get(followed.id, 0, 1)), [0])
        await asked.one(sent)
        return rung

    cached = next(one for one in with_broker(lake, act) if one is not None)
    assert header_of(cached).base_offset == 1
    assert cached[16:] == sent[16:]


def test_what_is_not_committed_is_not_served():
    refused = []

    def hook(method, path, at):
        if path.endswith(".parquet") and (method, at) == ("put", "before"):
            refused.append(path)
            raise StorageUnavailableError("the store says no")

    lake, _, _ = lake_with(1, hook)

    async def act(asked):
        found = asyncio.ensure_future(asked.one(batch(b"a")))
        await eventually_async(lambda: refused, "a segment is put")
        followed = await asked.broker._topics.get("t")
        seen = asked.broker._context.cache.get(followed.id, 0, 0)
        found.cancel()
        return seen

    assert with_broker(lake, act) is None


def test_records_without_a_timestamp_are_served_from_their_segment():
    lake, _, _ = lake_with(1)

    async def act(asked):
        found = await asked.one(batch(b"a", timestamp=-1))
        followed = await asked.broker._topics.get("t")
        return told(found), asked.broker._context.cache.get(followed.id, 0, 0)

    assert with_broker(lake, act) == ((0, 0), None)
    (records,) = lake.topic("t").read(0)
    assert records.column("timestamp")[0].as_py().timestamp() * 1000 == START_MS
