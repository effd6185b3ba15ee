"""What is read of a Fetch request without kio is what kio reads, or it is left to kio."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.broker_requests import request_of as encoded
from support.strange_requests import Strange

from tidelog.broker.base.calls import Call, Peer
from tidelog.broker.fetch.plain_fetch import plain_fetch
from tidelog.broker.fetch.requests import FetchRequest, request_of
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import LargeRequestError, MalformedRequestError
from tidelog.broker.wire.messages import decode

FETCH = ApiKey.FETCH
VERSIONS = pytest.mark.parametrize("version", range(OFFERED[FETCH].first, OFFERED[FETCH].last + 1))
INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TOPICS = st.dictionaries(
    st.tuples(st.text(max_size=30), st.uuids()), st.dictionaries(INT, st.tuples(LONG, INT, INT), max_size=4), max_size=3
)


def read_by_kio(version: int, data: bytes) -> FetchRequest | None:
    """None for what kio refuses, or would read beside the loop."""
    try:
        body = decode(FETCH, version, memoryview(data))
    except (MalformedRequestError, LargeRequestError):
        return None
    return request_of(Call(FETCH, version, None, body, Peer(), 0.0))


def fetch_of(version, topics, **fields):
    """The bytes of a request for {(name, id): {partition: (offset, most bytes, leader's epoch)}}."""
    key = "topic_id" if version >= 13 else "topic"
    asked = [
        {
            key: topic_id if version >= 13 else name,
            "partitions": [
                {"partition": p, "fetch_offset": offset, "partition_max_bytes": most, "current_leader_epoch": epoch}
                for p, (offset, most, epoch) in partitions.items()
            ],
        }
        for (name, topic_id), partitions in topics.items()
    ]
    return encoded(FETCH, version, {"topics": asked, "replica_id": -1} | fields)


@VERSIONS
@given(topics=TOPICS, numbers=st.tuples(INT, INT, INT, INT), rack=st.text(max_size=9), wait_ms=INT)
def test_plain_requests_are_read(version, topics, numbers, rack, wait_ms):
    least, most, session, epoch = numbers
    fields = {"min_bytes": least, "max_bytes": most, "session_id": session, "session_epoch": epoch, "rack_id": rack}
    data = fetch_of(version, topics, **fields, max_wait=wait_ms)
    found = plain_fetch(version, memoryview(data))
    assert found is not None
    assert found == read_by_kio(version, data)
    assert all(plain_fetch(version, memoryview(data[:end])) is None for end in range(len(data)))


@VERSIONS
@settings(max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_whatever_is_read_is_what_kio_reads(version, seed):
    strange = Strange(seed)
    data = strange.request(FETCH, version)
    usual = fetch_of(version, {("t", UUID(int=seed)): {0: (5, 1 << 20, -1)}})
    for sent in (data, strange.mutated(data), strange.mutated(usual)):
        found = plain_fetch(version, memoryview(sent))
        if found is not None:
            assert found == read_by_kio(version, sent)
