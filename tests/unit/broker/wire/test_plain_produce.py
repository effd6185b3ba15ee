"""What is read of a Produce request without kio is what kio reads, or it is left to kio."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.produce_requests import encoded_produce
from support.strange_requests import Strange

from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import LargeRequestError, MalformedRequestError
from tidelog.broker.wire.messages import decode
from tidelog.broker.wire.plain_produce import ProduceBody, plain_produce, read_produce

VERSIONS = pytest.mark.parametrize("version", range(OFFERED[ApiKey.PRODUCE].first, OFFERED[ApiKey.PRODUCE].last + 1))
PARTITIONS = st.dictionaries(st.integers(-1, 2**31 - 1), st.none() | st.binary(max_size=300), max_size=4)
TOPICS = st.dictionaries(st.tuples(st.text(max_size=30), st.uuids()), PARTITIONS, max_size=3)


def read_by_kio(version: int, data: bytes) -> ProduceBody | None:
    """None for what kio refuses, or would read beside the loop."""
    try:
        return read_produce(version, decode(ApiKey.PRODUCE, version, memoryview(data)))
    except (MalformedRequestError, LargeRequestError):
        return None


def plain(version: int, data: bytes) -> ProduceBody | None:
    return plain_produce(version, memoryview(data))


@VERSIONS
@given(
    topics=TOPICS,
    acks=st.integers(-(2**15), 2**15 - 1),
    timeout_ms=st.integers(-(2**31), 2**31 - 1),
)
def test_plain_requests_are_read(version, topics, acks, timeout_ms):
    named = {(topic_id if version >= 13 else name): partitions for (name, topic_id), partitions in topics.items()}
    data = encoded_produce(version, named, acks=acks, timeout_s=timeout_ms / 1000)
    found = plain(version, data)
    assert found is not None
    assert found == read_by_kio(version, data)
    assert all(plain(version, data[:end]) is None for end in range(len(data)))


@VERSIONS
@given(seed=st.integers(0, 2**32))
def test_whatever_is_read_is_what_kio_reads(version, seed):
    strange = Strange(seed)
    data = strange.request(ApiKey.PRODUCE, version)
    mutated = strange.mutated(data)
    usual = strange.mutated(encoded_produce(version, {UUID(int=seed) if version >= 13 else "t": {0: b"x" * 200}}))
    for sent in (data, mutated, usual):
        found = plain(version, sent)
        if found is not None:
            assert found == read_by_kio(version, sent)


@VERSIONS
def test_what_is_not_plain_goes_the_general_way(version):
    topic = UUID(int=7) if version >= 13 else "t"
    data = encoded_produce(version, {topic: {0: b"records"}})
    assert plain(version, data) is not None
    assert plain(version, data + b"\0") is None
    assert plain(version, encoded_produce(version, {topic: {0: b"records"}}, transactional_id="x")) is None
    assert plain(version, encoded_produce(version, {topic: dict.fromkeys(range(300), b"")})) is None
    if version >= 9:
        assert data.endswith(b"\0\0\0")
        assert plain(version, data[:-1] + b"\x01\x07\x01x") is None  # a tagged field
