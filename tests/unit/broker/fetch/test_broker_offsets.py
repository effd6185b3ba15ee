"""ListOffsets in all its forms, and OffsetForLeaderEpoch."""

import pytest
from support.broker_requests import Requests
from support.logs import memory_lake

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.wire.apis import OFFERED, ApiKey

VERSIONS = range(OFFERED[ApiKey.LIST_OFFSETS].first, OFFERED[ApiKey.LIST_OFFSETS].last + 1)
VIEW = ClusterView("lake", 7, [BrokerNode(1, {"PLAINTEXT": ("h", 9)})], 1)
T0 = 1_700_000_000_000


@pytest.fixture
def lake():
    lake = memory_lake()[0]
    lake.create_topic("t", 3)
    topic = lake.topic("t")
    for times in ([0, 40, 20], [60, 60, 10], [30]):
        topic.append([{"value": b"x", "partition": 0, "timestamp": T0 + ms} for ms in times])
    topic.append([{"value": b"x", "partition": 1, "timestamp": T0}])
    return lake


@pytest.fixture
def requests(lake):
    with Requests(lake, lambda: VIEW) as requests:
        yield requests


def offsets(requests, asked, version=VERSIONS[-1], topic="t", **fields):
    """{partition: its answer}. `asked`: {partition: timestamp}."""
    partitions = [{"partition_index": p, "timestamp": ms} | fields for p, ms in asked.items()]
    body = {"replica_id": -1, "topics": [{"name": topic, "partitions": partitions}]}
    (answer,) = requests.ask(ApiKey.LIST_OFFSETS, version, body).topics
    return {p.partition_index: p for p in answer.partitions}


def offset_of(requests, timestamp, version=VERSIONS[-1], partition=0):
    answer = offsets(requests, {partition: timestamp}, version)[partition]
    assert answer.error_code.value == 0
    if version >= 4:
        assert answer.leader_epoch == (-1 if answer.offset == -1 else 7)
    return answer.offset, answer.timestamp


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version(requests, version):
    assert offset_of(requests, -1, version) == (7, -1)
    assert offset_of(requests, -2, version) == (0, -1)
    assert offset_of(requests, T0 + 30, version) == (1, T0 + 40)
    assert offset_of(requests, T0 + 61, version) == (-1, -1)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (0, T0)),
        (T0, (0, T0)),
        (T0 + 1, (1, T0 + 40)),
        (T0 + 41, (3, T0 + 60)),
        (2**63 - 1, (-1, -1)),
        (-3, (3, T0 + 60)),
        (-4, (0, -1)),
        (-5, (-1, -1)),
        (-6, (-1, -1)),
    ],
)
def test_times_and_what_stands_for_one(requests, timestamp, expected):
    assert offset_of(requests, timestamp) == expected


def test_an_empty_partition_has_no_record(requests):
    assert [offset_of(requests, t, partition=2) for t in (-1, -2, -3, 0)] == [(0, -1), (0, -1), (-1, -1), (-1, -1)]


def test_what_was_deleted_does_not_count(lake, requests):
    lake.delete_records("t", {0: 5})
    assert [offset_of(requests, t) for t in (-2, 0, -3)] == [(5, -1), (5, T0 + 10), (6, T0 + 30)]


@pytest.mark.parametrize(("timestamp", "since"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
def test_what_a_version_does_not_have_is_refused(requests, timestamp, since):
    for version in VERSIONS:
        code = offsets(requests, {0: timestamp}, version)[0].error_code.value
        assert code == (0 if version >= since else 35)


def test_errors_of_one_partition_spare_the_others(lake, requests):
    (first, *_) = lake.topic("t").known.live(0)
    lake.storage.delete(f"{lake.topic('t').folder}/{first.path}")
    found = offsets(requests, {0: T0, 1: T0, 5: T0})
    assert {p: (a.error_code.value, a.offset) for p, a in found.items()} == {0: (2, -1), 1: (0, 0), 5: (3, -1)}
    assert offsets(requests, {0: -1}, topic="absent")[0].error_code.value == 3


def test_a_partition_named_twice_is_refused(requests):
    asked = [{"partition_index": p, "timestamp": -1} for p in (0, 1, 0)]
    body = {"replica_id": -1, "topics": [{"name": "t", "partitions": asked}]}
    (answer,) = requests.ask(ApiKey.LIST_OFFSETS, 11, body).topics
    assert [(p.partition_index, p.error_code.value) for p in answer.partitions] == [(0, 42), (1, 0), (0, 42)]


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (7, 0), (6, 74), (8, 75)])
def test_leader_epochs(requests, epoch, code):
    assert offsets(requests, {0: -1}, current_leader_epoch=epoch)[0].error_code.value == code
    assert offsets(requests, {0: -1}, 3)[0].error_code.value == 0


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_epoch_ends_at_the_log_end(requests, version):
    def ends(partition, epoch, current=-1):
        asked = {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}
        body = {"replica_id": -1, "topics": [{"topic": "t", "partitions": [asked]}]}
        ((answer,),) = [t.partitions for t in requests.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, body).topics]
        return answer.error_code.value, answer.leader_epoch, answer.end_offset

    assert [ends(0, epoch) for epoch in (0, 3, 7)] == [(0, 0, 7), (0, 3, 7), (0, 7, 7)]
    assert [ends(0, epoch) for epoch in (-1, 8, 2**31 - 1)] == [(0, -1, -1)] * 3  # nothing is known of these
    assert [ends(1, 7, current) for current in (6, 7, 8)] == [(74, -1, -1), (0, 7, 1), (75, -1, -1)]
    assert ends(9, 0) == (3, -1, -1)
