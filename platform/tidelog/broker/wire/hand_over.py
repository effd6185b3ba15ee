"""What a broker asks a topic's committer, and its answer: staged segments as small values, in JSON.

Both ends are brokers of one cluster and of one release: the request's version is its format's.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tidelog.broker.wire.apis import BETWEEN_BROKERS, ApiKey
from tidelog.broker.wire.errors import MalformedRequestError
from tidelog.log.rules.appends import CommitOutcome, Ranges, StagedShare
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.segments.writer import Staged

_HEADER: Final = struct.Struct(">hhih")
_CORRELATION_ID: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class HandOver:
    """A share of a topic's next entry. `sender`: the registration of the broker that has staged it."""

    cluster_id: str
    sender: str
    topic: str
    topic_id: str
    share: StagedShare


@dataclass(frozen=True, slots=True)
class HandedOverAnswer:
    """COMMITTED, REFUSED or UNKNOWN. `files_left`: the topic's budget of files, as of now; `why`: for the log."""

    outcome: CommitOutcome
    ranges: Ranges
    files_left: float
    why: str = ""


def encode_hand_over(request: HandOver) -> bytes:
    """The request's frame, with its header and without its length."""
    share = request.share
    body = {
        "cluster": request.cluster_id,
        "sender": request.sender,
        "topic": request.topic,
        "id": request.topic_id,
        "configuration": share.configuration,
        "acks": share.acks,
        "segments": [
            [s.partition, s.path, s.records, s.size, s.min_timestamp_ms, s.max_timestamp_ms, s.known_version]
            for s in share.segments
        ],
        "producers": [
            [b.producer_id, b.epoch, [[p, first, count] for p, (first, count) in b.sequences.items()]]
            for b in share.producers
        ],
    }
    version = BETWEEN_BROKERS[ApiKey.HAND_OVER].last
    return _HEADER.pack(ApiKey.HAND_OVER, version, 0, -1) + orjson.dumps(body)


def decode_hand_over(payload: bytes | memoryview) -> HandOver:
    """The request. Raises `MalformedRequestError`."""
    try:
        body: Mapping[str, Any] = orjson.loads(payload)
        topic_id = str(body["id"])
        segments = tuple(
            Staged(*[*(_of(kind, value) for kind, value in zip(_KINDS, row, strict=True)), topic_id])
            for row in body["segments"]
        )
        producers = tuple(
            ProducerBatch(int(one), int(epoch), {int(p): (int(first), int(count)) for p, first, count in rows}, True)
            for one, epoch, rows in body["producers"]
        )
        share = StagedShare(segments, str(body["configuration"]), producers, int(body["acks"]))
        if not segments or min(segment.records for segment in segments) < 1:
            raise ValueError("no records")
        return HandOver(str(body["cluster"]), str(body["sender"]), str(body["topic"]), topic_id, share)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise MalformedRequestError(f"What was handed over can't be read: {e!r}.") from e


_KINDS: Final = (int, str, int, int, int, int, int)


def _of(kind: type, value: object) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def encode_answer(answer: HandedOverAnswer) -> bytes:
    """The answer's body."""
    ranges = [[p, first, end] for p, (first, end) in answer.ranges.items()]
    return orjson.dumps({"fate": answer.outcome, "ranges": ranges, "files": answer.files_left, "why": answer.why})


def decode_answer(frame: bytes) -> HandedOverAnswer:
    """The answer of a frame, with its header. Raises `ValueError` for what is none."""
    try:
        body: Mapping[str, Any] = orjson.loads(frame[_CORRELATION_ID.size :])
        ranges = {int(p): (int(first), int(end)) for p, first, end in body["ranges"]}
        return HandedOverAnswer(CommitOutcome(body["fate"]), ranges, float(body["files"]), str(body["why"]))
    except (KeyError, TypeError) as e:
        raise ValueError(f"no answer: {e!r}") from e
