"""The encoder of Fetch's answers makes, byte for byte, what kio makes of them; and copies no batch."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.endpoints import Endpoint
from tidelog.broker.wire.fetch_answer import FetchAnswer, PartitionAnswer, encode_fetch
from tidelog.broker.wire.messages import encode

VERSIONS = range(OFFERED[ApiKey.FETCH].first, OFFERED[ApiKey.FETCH].last + 1)
INTS, LONGS = st.integers(-1, 2**31 - 1), st.integers(-1, 2**63 - 1)
BATCHES = st.lists(st.binary(min_size=1, max_size=200), max_size=3)
LEADERS = st.none() | st.tuples(st.integers(0, 2**31 - 1), INTS)
PARTITIONS = st.builds(
    lambda records, **fields: PartitionAnswer(records=records, size=sum(map(len, records)), **fields),
    records=BATCHES,
    partition=INTS,
    error_code=st.sampled_from([0, 1, 2, 3, 6, 56, 74, 76, 100, 103]),
    high_watermark=LONGS,
    last_stable_offset=LONGS,
    log_start_offset=LONGS,
    preferred_read_replica=INTS,
    current_leader=LEADERS,
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=150)
NODES = st.lists(st.builds(Endpoint, INTS, NAMES, INTS, st.none() | NAMES), max_size=3)


def of(answer: FetchAnswer, *, ids: bool) -> dict:
    """The answer as a mapping for kio."""
    return {
        "throttle_time": answer.throttle_ms,
        "error_code": answer.error_code,
        "session_id": answer.session_id,
        "node_endpoints": [
            {"node_id": one.id, "host": one.host, "port": one.port, "rack": one.rack} for one in answer.nodes
        ],
        "responses": [
            {
                ("topic_id" if ids else "topic"): topic,
                "partitions": [
                    {
                        "partition_index": p.partition,
                        "error_code": p.error_code,
                        "high_watermark": p.high_watermark,
                        "last_stable_offset": p.last_stable_offset,
                        "log_start_offset": p.log_start_offset,
                        "aborted_transactions": [] if answer.read_committed else None,
                        "preferred_read_replica": p.preferred_read_replica,
                        "records": b"".join(p.records),
                    }
                    | ({} if p.current_leader is None else {"current_leader": leader(*p.current_leader)})
                    for p in partitions
                ],
            }
            for topic, partitions in answer.topics
        ],
    }


def leader(node_id: int, epoch: int) -> dict:
    return {"leader_id": node_id, "leader_epoch": epoch}


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_it_is_what_kio_makes(version: int, data: st.DataObject) -> None:
    topics = st.uuids() if version >= 13 else NAMES
    answer = data.draw(
        st.builds(
            FetchAnswer,
            topics=st.lists(st.tuples(topics, st.lists(PARTITIONS, max_size=4)), max_size=3),
            error_code=st.sampled_from([0, 70, 71, 106]),
            session_id=INTS,
            throttle_ms=st.integers(0, 2**31 - 1),
            read_committed=st.booleans(),
            nodes=NODES,
        )
    )
    expected = encode(ApiKey.FETCH, version, of(answer, ids=version >= 13))
    assert b"".join(encode_fetch(version, answer)) == expected


@pytest.mark.parametrize("size", [0, 126, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21])
@pytest.mark.parametrize("version", [11, 12])
def test_lengths_of_records(version: int, size: int) -> None:
    answer = FetchAnswer([("t", [PartitionAnswer(0, records=[bytes(size)] if size else (), size=size)])])
    assert b"".join(encode_fetch(version, answer)) == encode(ApiKey.FETCH, version, of(answer, ids=False))


def test_batches_are_not_copied() -> None:
    batches = [b"one" * 1000, b"two" * 1000]
    answer = FetchAnswer([(UUID(int=7), [PartitionAnswer(0, records=batches, size=6000), PartitionAnswer(1)])])
    pieces = encode_fetch(18, answer)
    assert [piece for piece in pieces if len(piece) == 3000] == batches
    assert all(any(piece is batch for piece in pieces) for batch in batches)
