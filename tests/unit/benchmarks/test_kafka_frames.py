"""The load's requests are as brokers read them, and it understands the answers that brokers give."""

import kafka_frames
import pytest

from tidelog.broker.records.batches import require_one, split
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.fetch_answer import FetchAnswer, PartitionAnswer, encode_fetch
from tidelog.broker.wire.frames import LENGTH, header_of
from tidelog.broker.wire.messages import decode
from tidelog.broker.wire.produce_answer import ProducedPartition, produce_answer

HEAD = b"\0\0\0\1\0"  # correlation id and tags


def read(frame: bytes) -> tuple[ApiKey, object]:
    view = memoryview(frame)
    assert LENGTH.unpack(view[:4]) == (len(frame) - 4,)
    header = header_of(view[LENGTH.size :])
    return header.key, decode(header.key, header.version, view[LENGTH.size + header.end :])


@pytest.mark.parametrize("codec", kafka_frames.CODECS)
@pytest.mark.parametrize("mixed", [False, True])
def test_a_produce_has_a_batch_for_each_partition_with_acks_all(codec: str, mixed: bool) -> None:
    batches = {p: kafka_frames.batch(20, codec, mixed=mixed, seed=p) for p in (3, 11)}
    key, body = read(kafka_frames.produce("a-topic", batches))
    (topic,) = body.topic_data
    assert (key, body.acks, body.transactional_id, topic.name) == (ApiKey.PRODUCE, -1, None, "a-topic")
    assert [partition.index for partition in topic.partition_data] == [3, 11]
    for partition in topic.partition_data:
        batch, _ = require_one(split(partition.records), 9)
        assert (batch.count, batch.producer_id) == (20, -1)


def test_mixed_values_are_100_bytes_on_average() -> None:
    same, mixed = (len(kafka_frames.batch(2_000, mixed=mixed)) for mixed in (False, True))
    assert mixed == pytest.approx(same, rel=0.02)


@pytest.mark.parametrize(
    ("codes", "taken"),
    [([0], 1), ([0] * 12, 12), ([6], 0), ([0, 0, 6], 0)],
)
def test_an_answer_of_produce_says_how_many_took_theirs(codes: list[int], taken: int) -> None:
    assert kafka_frames.taken(produced(codes), "t") == taken


@pytest.mark.parametrize("codes", [[0, 87, 0], [0, 300], [2] * 12])
def test_any_other_refusal_is_an_error(codes: list[int]) -> None:
    with pytest.raises(kafka_frames.AnswerError, match=str(max(codes))):
        kafka_frames.taken(produced(codes), "t")


def produced(codes: list[int]) -> memoryview:
    partitions = [
        ProducedPartition(at, code, 7, -1, 0, error_message="why" if code else None) for at, code in enumerate(codes)
    ]
    return memoryview(HEAD + produce_answer(9, [("t", partitions)]))


def test_a_fetch_asks_from_offsets_outside_of_sessions() -> None:
    key, body = read(kafka_frames.fetch("t", {0: 5, 7: 2**40}, max_wait_ms=20))
    (topic,) = body.topics
    assert (key, body.session_epoch, topic.topic) == (ApiKey.FETCH, -1, "t")
    assert [(one.partition, one.fetch_offset) for one in topic.partitions] == [(0, 5), (7, 2**40)]
    assert body.max_wait.total_seconds() == pytest.approx(0.02)


def test_an_answer_of_fetch_leads_on_to_the_next_offset() -> None:
    first, second = kafka_frames.batch(10), kafka_frames.batch(5, seed=1)
    later = (40).to_bytes(8, "big") + second[8:]
    parts = [
        PartitionAnswer(2, 0, 45, 45, 0, [first, later], len(first) + len(later)),
        PartitionAnswer(4, 0, 99, 99, 0, [first, later[:-1]], len(first) + len(later) - 1),
        PartitionAnswer(5, 6),
    ]
    answer = memoryview(HEAD + b"".join(encode_fetch(12, FetchAnswer([("t", parts)]))))
    found = list(kafka_frames.fetched(answer))
    assert [(one.partition, one.code, one.end) for one in found] == [(2, 0, 45), (4, 0, 99), (5, 6, -1)]
    assert [one.next_offset(3) for one in found] == [45, 10, 3]


def test_a_refused_fetch_is_an_error() -> None:
    answer = memoryview(HEAD + b"".join(encode_fetch(12, FetchAnswer(error_code=70))))
    with pytest.raises(kafka_frames.AnswerError, match="70"):
        list(kafka_frames.fetched(answer))
