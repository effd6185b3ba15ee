"""What brokers hand over, as bytes: it comes back as it was, and nothing else is taken for it."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.wire.apis import BETWEEN_BROKERS, OFFERED, ApiKey
from tidelog.broker.wire.errors import MalformedRequestError
from tidelog.broker.wire.frames import framed, header_of
from tidelog.broker.wire.hand_over import (
    HandedOverAnswer,
    HandOver,
    decode_answer,
    decode_hand_over,
    encode_answer,
    encode_hand_over,
)
from tidelog.log.rules.appends import CommitOutcome, StagedShare
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.segments.writer import Staged

TEXT = st.text(max_size=30)
LONGS = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(1, 2**40)
SEGMENTS = st.lists(
    st.builds(Staged, st.integers(0, 2**31 - 1), TEXT, COUNTS, COUNTS, LONGS, LONGS, COUNTS, st.just("id-1")),
    min_size=1,
    max_size=4,
)
SEQUENCES = st.dictionaries(st.integers(0, 2**31 - 1), st.tuples(st.integers(0, 2**31 - 1), COUNTS), max_size=3)
PRODUCERS = st.lists(
    st.builds(ProducerBatch, st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), SEQUENCES, st.just(True)), max_size=3
)
SHARES = st.builds(StagedShare, SEGMENTS.map(tuple), TEXT, PRODUCERS.map(tuple), st.sampled_from([1, -1]))
HAND_OVERS = st.builds(HandOver, TEXT, TEXT, TEXT, st.just("id-1"), SHARES)
ANSWERS = st.builds(
    HandedOverAnswer,
    st.sampled_from(CommitOutcome),
    st.dictionaries(st.integers(0, 2**31 - 1), st.tuples(LONGS, LONGS), max_size=3),
    st.floats(-1e6, 1e6),
    TEXT,
)


@given(HAND_OVERS)
def test_a_request_comes_back_as_it_was(request: HandOver) -> None:
    frame = memoryview(encode_hand_over(request))
    header = header_of(frame)
    assert (header.key, header.is_offered) == (ApiKey.HAND_OVER, True)
    assert decode_hand_over(frame[header.end :]) == request


@given(HAND_OVERS, ANSWERS)
def test_an_answer_comes_back_as_it_was(request: HandOver, answer: HandedOverAnswer) -> None:
    header = header_of(memoryview(encode_hand_over(request)))
    frame = b"".join(framed(header, [encode_answer(answer)]))
    assert decode_answer(frame[4:]) == answer


def test_it_is_no_api_of_kafkas() -> None:
    assert not BETWEEN_BROKERS.keys() & OFFERED.keys()
    assert min(BETWEEN_BROKERS) > 1000


GOOD = {
    "cluster": "c",
    "sender": "r",
    "topic": "t",
    "id": "i",
    "configuration": "d",
    "acks": -1,
    "segments": [[0, "p", 1, 2, 3, 4, 5]],
    "producers": [[7, 0, [[0, 0, 1]]]],
}


@pytest.mark.parametrize(
    "change",
    [
        {"segments": []},
        {"segments": [[0, "p", 0, 2, 3, 4, 5]]},
        {"segments": [[0, "p", 1, 2, 3, 4]]},
        {"segments": [["0", "p", 1, 2, 3, 4, 5]]},
        {"segments": [[0, 1, 1, 2, 3, 4, 5]]},
        {"segments": {"a": 1}},
        {"segments": None},
        {"producers": [[7, 0, [[0, 0]]]]},
        {"producers": 5},
        {"acks": "many"},
    ],
)
def test_what_is_none_is_refused(change: dict[str, object]) -> None:
    decode_hand_over(orjson.dumps(GOOD))
    with pytest.raises(MalformedRequestError, match="can't be read"):
        decode_hand_over(orjson.dumps(GOOD | change))


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"5", b"\xff\xfe", b"{}"])
def test_bytes_that_are_no_request_are_refused(payload: bytes) -> None:
    with pytest.raises(MalformedRequestError):
        decode_hand_over(payload)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"fate": "lost", "ranges": [], "files": 1, "why": ""}'])
def test_bytes_that_are_no_answer_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_answer(b"\0\0\0\0" + body)
