"""The answer of Produce that is written by hand is what the generated codec writes, in every version."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.endpoints import Endpoint
from tidelog.broker.wire.errors import MalformedRequestError
from tidelog.broker.wire.messages import encode
from tidelog.broker.wire.primitives import string
from tidelog.broker.wire.produce_answer import ProducedPartition, produce_answer
from tidelog.broker.wire.refused_produce import partitions_of

VERSIONS = range(OFFERED[ApiKey.PRODUCE].first, OFFERED[ApiKey.PRODUCE].last + 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
OFFSETS = st.integers(-1, 2**63 - 1)
TEXTS = st.text(max_size=130)
MESSAGES = st.none() | TEXTS
# No later time is known to the codec's type.
TIMES = st.integers(-1, 253_402_300_799_000)
PARTITIONS = st.builds(
    ProducedPartition,
    INT32,
    st.sampled_from([code.value for code in ErrorCode]),
    OFFSETS,
    TIMES,
    OFFSETS,
    st.lists(st.tuples(INT32, MESSAGES), max_size=3),
    MESSAGES,
    # The default of the definition is not written.
    st.none() | st.tuples(INT32, INT32).filter(lambda leader: leader != (-1, -1)),
)
TOPICS = st.lists(st.tuples(TEXTS, st.uuids(), st.lists(PARTITIONS, max_size=3)), max_size=2)
ENDPOINTS = st.lists(st.builds(Endpoint, INT32, TEXTS, INT32, MESSAGES), max_size=2)


def generated(version, topics, endpoints, throttle_ms):
    """The answer by the generated codec."""
    return encode(
        ApiKey.PRODUCE,
        version,
        {
            "throttle_time": throttle_ms,
            "node_endpoints": [{"node_id": n.id, "host": n.host, "port": n.port, "rack": n.rack} for n in endpoints],
            "responses": [
                {
                    "name": name,
                    "topic_id": topic_id,
                    "partition_responses": [
                        {
                            "index": p.index,
                            "error_code": p.error_code,
                            "base_offset": p.base_offset,
                            "log_append_time": p.append_ms,
                            "log_start_offset": p.log_start_offset,
                            "record_errors": [
                                {"batch_index": at, "batch_index_error_message": why} for at, why in p.record_errors
                            ],
                            "error_message": p.error_message,
                            "current_leader": {
                                "leader_id": p.leader[0] if p.leader else -1,
                                "leader_epoch": p.leader[1] if p.leader else -1,
                            },
                        }
                        for p in partitions
                    ],
                }
                for name, topic_id, partitions in topics
            ],
        },
    )


@pytest.mark.parametrize("version", VERSIONS)
@given(topics=TOPICS, endpoints=ENDPOINTS, throttle_ms=st.integers(0, 2**31 - 1))
def test_bytes_are_those_of_the_generated_codec(version, topics, endpoints, throttle_ms):
    named = [(topic_id if version >= 13 else name, partitions) for name, topic_id, partitions in topics]
    assert produce_answer(version, named, endpoints, throttle_ms) == generated(version, topics, endpoints, throttle_ms)


@pytest.mark.parametrize("version", VERSIONS)
def test_many_partitions_with_long_texts_too(version):
    partitions = [
        ProducedPartition(at, 87, record_errors=[(at, "why" * 60)], error_message="x" * 300) for at in range(200)
    ]
    topics = [("t" * 249, UUID(int=7), partitions)]
    named = [(topics[0][version >= 13], partitions)]
    assert produce_answer(version, named) == generated(version, topics, [], 0)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, "00000001 0001 74 00000001 00000002 0023 ffffffffffffffff"),
        (1, "00000001 0001 74 00000001 00000002 0023 ffffffffffffffff 00000000"),
        (2, "00000001 0001 74 00000001 00000002 0023 ffffffffffffffff ffffffffffffffff 00000000"),
    ],
)
def test_versions_that_are_refused_are_written_too(version, expected):
    assert produce_answer(version, [("t", [ProducedPartition(2, 35)])]) == bytes.fromhex(expected)


def test_an_unknown_topic_id_is_written_as_none():
    nil = UUID(int=0)
    assert produce_answer(13, [(nil, [])]) == generated(13, [("", nil, [])], [], 0)


def test_a_text_too_long_for_an_older_version_loses_its_end():
    assert string("a" * 40_000) == b"\x7f\xff" + b"a" * 32_767
    assert string("é" * 20_000) == b"\x7f\xfe" + "é".encode() * 16_383


OLD = bytes.fromhex("ffff 00000064 00000001 0001 74 00000002 00000000 00000003 616263 00000007 ffffffff")


def test_partitions_of_a_refused_version_are_read():
    assert partitions_of(memoryview(OLD)) == (-1, [("t", [0, 7])])


@pytest.mark.parametrize(
    "payload",
    [
        *(OLD[:end] for end in range(len(OLD) - 8)),
        bytes.fromhex("ffff 00000064 7fffffff fffa 000000000000"),
        bytes.fromhex("ffff 00000064 00000001 0001 ff 00000000"),
    ],
)
def test_a_refused_version_may_be_garbage(payload):
    with pytest.raises(MalformedRequestError):
        partitions_of(memoryview(payload))
