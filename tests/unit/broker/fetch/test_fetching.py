"""Fetch over a lake in memory: what consumers get, from memory and from segments, and what they are refused."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from support.broker_fetches import VERSIONS, append, fetch, follow, named, whole
from support.broker_requests import Requests
from support.examples import one_in
from support.fetched import FetchedRecord, position_after, records_of
from support.logs import memory_lake

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.records.codec import record_codec
from tidelog.log.base.clock import SystemIds
from tidelog.retention.compaction.run import LocalCompactor, compact

VALUES = [f"v{n}".encode() for n in range(10)]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_reads_records(lake, requests, version):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    answer = fetch(requests, {named(version, lake, "t"): {0: 3}}, version)[named(version, lake, "t"), 0]
    assert answer.error_code is ErrorCode.none
    assert [(r.offset, r.value) for r in records_of(answer.records, 3)] == list(enumerate(VALUES))[3:]
    assert answer.high_watermark == answer.last_stable_offset == 10
    if version >= 5:
        assert answer.log_start_offset == 0


def test_a_record_is_read_as_it_was_written(lake, requests):
    lake.create_topic("t")
    lake.topic("t").append(
        [
            {"key": b"k", "value": b"v", "timestamp": 1_700_000_000_123, "headers": [("h", b"1"), ("h", None)]},
            {"key": None, "value": None, "timestamp": 5},
            {"key": b"", "value": b"", "timestamp": 0},
        ]
    )
    assert records_of(fetch(requests, {"t": {0: 0}}, 12)["t", 0].records) == [
        FetchedRecord(0, b"v", b"k", 1_700_000_000_123, (("h", b"1"), ("h", None))),
        FetchedRecord(1, None, None, 5),
        FetchedRecord(2, b"", b"", 0),
    ]


def test_what_was_produced_here_is_given_as_it_came(lake, requests):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    topic, cache = UUID(lake.topic("t").id), requests.broker._context.cache
    batch = encoded(3, VALUES[3:7])
    cache.add(topic, 0, 3, 6, batch)
    assert fetch(requests, {"t": {0: 5}}, 11)["t", 0].records.startswith(batch)
    rest = fetch(requests, {"t": {0: 7}}, 11)["t", 0].records
    assert [r.value for r in records_of(rest)] == VALUES[7:]
    before = fetch(requests, {"t": {0: 0}}, 11)["t", 0].records
    assert [r.value for r in records_of(before)] == VALUES
    assert before.endswith(batch + rest)


def encoded(first, values):
    """Records as one batch."""
    lake = memory_lake()[0]
    lake.create_topic("other")
    append(lake, "other", *[b"-"] * first, *values)
    (records,) = lake.topic("other").read(0, first, include_headers=True)
    (batch,) = record_codec().batches(records, 0, 0, 1 << 20)
    return batch.data


def test_only_a_topic_that_asks_for_zstd_is_read_packed_and_not_by_old_clients(lake, requests):
    lake.create_topic("t")
    lake.create_topic("packed", config={"compression.type": "zstd"})
    sizes = {}
    for topic in ("t", "packed"):
        append(lake, topic, b"a" * 10_000)
        for version in (11, 12, 11):
            sizes[topic, version] = len(fetch(requests, {topic: {0: 0}}, version)[topic, 0].records)
    assert sizes.pop(("packed", 12)) < 1000
    assert min(sizes.values()) > 10_000


@pytest.mark.parametrize("cache_bytes", [0, 1000, 1 << 27])
def test_a_partition_is_read_to_its_end(lake, cache_bytes):
    lake.create_topic("t")
    values = [bytes([n]) * 20_000 for n in range(200)]
    for at in range(0, 200, 10):
        append(lake, "t", *values[at : at + 10])
    with Requests(lake, cache_bytes=cache_bytes) as requests:
        assert read_all(requests, "t") == list(enumerate(values))


def read_all(requests, topic, version=11):
    found, position, end = [], 0, 1
    while position < end:
        answer = fetch(requests, {topic: {0: position}}, version)[topic, 0]
        assert answer.error_code is ErrorCode.none
        found += [(r.offset, r.value) for r in records_of(answer.records, position)]
        after, end = position_after(answer.records, position), answer.high_watermark
        assert after > position
        position = after
    return found


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "0",
}


@one_in(3)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.just(b"v")), min_size=1, max_size=8),
        min_size=1,
        max_size=5,
    )
)
def test_what_compaction_left_is_read_and_the_end_is_reached(appends):
    """There are gaps anywhere, at the end, too, where tombstones have gone."""
    lake, _, clock = memory_lake()
    lake.create_topic("t", config=COMPACTED)
    for records in appends:
        lake.topic("t").append([{"key": key.encode(), "value": value} for key, value in records])
    for _ in range(2):
        clock.pass_s(10)
        compact(lake, "t", now_ms=clock.now_ms(), compactor=LocalCompactor(lake.storage, lake.ids))
    left = [(r["offset"], r["value"]) for b in lake.topic("t").read(0) for r in b.to_pylist()]
    with Requests(lake) as requests:
        assert read_all(requests, "t") == left


def test_a_partition_of_which_nothing_is_left_is_passed():
    lake, _, clock = memory_lake()
    lake.create_topic("t", config=COMPACTED)
    lake.topic("t").append([{"key": b"k", "value": b"v"}, {"key": b"k", "value": None}])
    for _ in range(2):
        clock.pass_s(10)
        compact(lake, "t", now_ms=clock.now_ms(), compactor=LocalCompactor(lake.storage, lake.ids))
    assert list(lake.topic("t").read(0)) == []
    with Requests(lake) as requests:
        answer = fetch(requests, {"t": {0: 0}}, 12)["t", 0]
        assert records_of(answer.records) == []
        assert position_after(answer.records, 0) == answer.high_watermark == 2


def test_errors_of_one_partition_spare_the_others(lake, requests):
    lake.create_topic("t", 3)
    append(lake, "t", *VALUES, partition=0)
    append(lake, "t", *VALUES, partition=1)
    (segment,) = lake.topic("t").known.live(1)
    lake.storage.delete(f"{lake.topic('t').folder}/{segment.path}")
    asked = {"t": {0: 0, 1: 0, 2: 1, 3: 0}, "absent": {0: 0}, "no/name": {0: 0}}
    answers = fetch(requests, asked, 12)
    assert {key: answer.error_code.value for key, answer in answers.items()} == {
        ("t", 0): 0,
        ("t", 1): 2,
        ("t", 2): 1,
        ("t", 3): 3,
        ("absent", 0): 3,
        ("no/name", 0): 17,
    }
    assert [r.value for r in records_of(answers["t", 0].records)] == VALUES


def test_offsets_out_of_range(lake, requests):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    lake.delete_records("t", {0: 4})
    codes = {o: fetch(requests, {"t": {0: o}}, 12)["t", 0].error_code.value for o in (-1, 0, 3, 4, 9, 10, 11)}
    assert codes == {-1: 1, 0: 1, 3: 1, 4: 0, 9: 0, 10: 0, 11: 1}


def test_topics_by_id(lake, requests):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    first = UUID(lake.topic("t").id)
    unknown = uuid4()
    answers = fetch(requests, {first: {0: 0, 1: 0}, unknown: {0: 0}})
    assert {key: a.error_code.value for key, a in answers.items()} == {(first, 0): 0, (first, 1): 3, (unknown, 0): 100}
    lake.delete_topic("t")
    lake.create_topic("t")
    append(lake, "t", b"new")
    assert fetch(requests, {first: {0: 0}})[first, 0].error_code.value in (100, 103)
    follow(requests, "t")
    assert fetch(requests, {first: {0: 0}})[first, 0].error_code.value == 100
    second = UUID(lake.topic("t").id)
    assert [r.value for r in records_of(fetch(requests, {second: {0: 0}})[second, 0].records)] == [b"new"]


def view(epoch=7, node_id=1, running=(1, 2)):
    nodes = [BrokerNode(n, {"PLAINTEXT": (f"h{n}", 9000 + n)}, f"r{n}") for n in running]
    return ClusterView("lake", epoch, nodes, node_id)


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (7, 0), (6, 74), (8, 75)])
def test_leader_epochs(lake, epoch, code):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    asked = {"fetch_offset": 0, "current_leader_epoch": epoch}
    with Requests(lake, view) as requests:
        for version in (9, 12):
            assert fetch(requests, {"t": {0: asked}}, version)["t", 0].error_code.value == code
        assert fetch(requests, {"t": {0: asked}}, 8)["t", 0].error_code.value == 0
        topic = UUID(lake.topic("t").id)
        answer = whole(requests, {topic: {0: asked}})
        partition = answer.responses[0].partitions[0]
        if code == 74:
            leader = view().leader(topic, 0).id
            assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (leader, 7)
            assert [(n.node_id, n.host, n.port, n.rack) for n in answer.node_endpoints] == [
                (leader, f"h{leader}", 9000 + leader, f"r{leader}")
            ]
        else:
            assert partition.current_leader.leader_id == -1
            assert answer.node_endpoints == ()


def test_a_broker_that_drains_sends_its_clients_away(lake):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    with Requests(lake, lambda: view(node_id=3)) as requests:
        answer = fetch(requests, {"t": {0: 0}}, 12)["t", 0]
    assert answer.error_code is ErrorCode.not_leader_or_follower
    assert answer.current_leader.leader_id in (1, 2)
    assert answer.records == b""


@pytest.mark.parametrize(("rack", "preferred"), [("r1", -1), ("r2", 2), ("elsewhere", -1), ("", -1)])
def test_consumers_are_sent_to_their_rack(lake, rack, preferred):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    with Requests(lake, view) as requests:
        answer = fetch(requests, {"t": {0: 0}}, 11, rack_id=rack)["t", 0]
    assert answer.preferred_read_replica == preferred
    assert bool(answer.records) == (preferred == -1)


def test_limits_count_over_partitions(lake, requests):
    lake.create_topic("t", 4)
    for p in range(4):
        append(lake, "t", b"x" * 1000, b"y" * 1000, partition=p)
    sizes = sorted(
        len(a.records) for a in fetch(requests, {"t": dict.fromkeys(range(4), 0)}, 11, max_bytes=10).values()
    )
    assert sizes[:3] == [0, 0, 0]
    assert sizes[3] > 1000


def test_no_partition_starves(lake):
    """One that always has enough for a whole answer leaves room for the others."""
    lake.ids = SystemIds()
    lake.create_topic("t", 3)
    for p in range(3):
        append(lake, "t", b"x" * 1000, partition=p)
    served = set()
    with Requests(lake) as requests:
        for _ in range(50):
            answers = fetch(requests, {"t": dict.fromkeys(range(3), 0)}, 11, max_bytes=10)
            served |= {p for (_, p), answer in answers.items() if answer.records}
    assert served == {0, 1, 2}


def test_partitions_of_a_session_take_turns(lake, requests):
    lake.create_topic("t", 3)
    for p in range(3):
        append(lake, "t", b"x" * 1000, partition=p)
    session, served = 0, []
    for epoch in range(4):
        topics = {"t": dict.fromkeys(range(3), 0)} if not epoch else {}
        answer = whole(requests, topics, 11, max_bytes=10, session_id=session, session_epoch=epoch)
        session = answer.session_id
        served += [p.partition_index for t in answer.responses for p in t.partitions if p.records]
    assert sorted(served[1:]) == [0, 1, 2]


def test_isolation_levels_read_the_same(lake, requests):
    lake.create_topic("t")
    append(lake, "t", *VALUES)
    answers = [fetch(requests, {"t": {0: 0}}, 11, isolation_level=level)["t", 0] for level in (0, 1)]
    assert answers[0].records == answers[1].records
    assert [a.aborted_transactions for a in answers] == [None, ()]


def test_sessions(lake, requests):
    lake.create_topic("t", 3)
    append(lake, "t", b"a", partition=0)
    first = whole(requests, {"t": {0: 1, 1: 0, 2: 0}}, 11, session_epoch=0, min_bytes=0)
    assert first.session_id > 0
    assert sorted(p.partition_index for t in first.responses for p in t.partitions) == [0, 1, 2]

    def go_on(epoch, topics=(), **fields):
        return whole(
            requests, dict(topics), 11, session_id=first.session_id, session_epoch=epoch, min_bytes=0, **fields
        )

    assert go_on(1).responses == ()
    append(lake, "t", b"b", partition=2)
    (topic,) = go_on(2).responses
    assert [(p.partition_index, [r.value for r in records_of(p.records)]) for p in topic.partitions] == [(2, [b"b"])]
    assert go_on(3, {"t": {2: 1}}).responses == ()
    (topic,) = go_on(4, {"t": {0: 0}}, forgotten_topics_data=[{"topic": "t", "partitions": (2,)}]).responses
    assert [p.partition_index for p in topic.partitions] == [0]
    assert go_on(4).error_code is ErrorCode.invalid_fetch_session_epoch
    other = whole(requests, {}, 11, session_id=first.session_id + 1, session_epoch=1)
    assert (other.error_code, other.session_id) == (ErrorCode.fetch_session_id_not_found, 0)
