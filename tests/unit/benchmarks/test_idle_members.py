"""Members that only send heartbeats: what they say, and what they take from an answer."""

import io
import uuid
from datetime import timedelta

import pytest
from idle_members import AnswerError, IdleMember
from kio.schema.consumer_group_heartbeat.v1 import request as requests
from kio.schema.consumer_group_heartbeat.v1 import response as responses
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32, i32Timedelta

TOPIC = uuid.uuid4()


def said(member: IdleMember) -> requests.ConsumerGroupHeartbeatRequest:
    frame = member._says()
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    _, at = entity_reader(RequestHeader)(frame, 4)
    request, size = entity_reader(requests.ConsumerGroupHeartbeatRequest)(frame, 4 + at)
    assert 4 + at + size == len(frame)
    return request


def answer(*partitions: int, epoch: int = 3, error: ErrorCode = ErrorCode.none) -> bytes:
    places = responses.TopicPartitions(topic_id=TOPIC, partitions=tuple(map(i32, partitions)))
    out = io.BytesIO()
    body = responses.ConsumerGroupHeartbeatResponse(
        throttle_time=i32Timedelta.parse(timedelta()),
        error_code=error,
        error_message="no" if error is not ErrorCode.none else None,
        member_id="m",
        member_epoch=i32(epoch),
        heartbeat_interval=i32Timedelta.parse(timedelta(seconds=5)),
        assignment=responses.Assignment(topic_partitions=(places,)) if partitions else None,
    )
    entity_writer(responses.ConsumerGroupHeartbeatResponse)(out, body)
    return bytes(5) + out.getvalue()


def test_a_member_says_once_what_has_changed() -> None:
    member = IdleMember("g", "t")
    joining = said(member)
    assert (joining.member_epoch, joining.subscribed_topic_names, joining.topic_partitions) == (0, ("t",), ())
    assert member._hears(answer(1, 2)) == 5.0
    told = said(member)
    assert (told.member_epoch, told.subscribed_topic_names) == (3, None)
    assert [(one.topic_id, one.partitions) for one in told.topic_partitions or ()] == [(TOPIC, (1, 2))]
    member._hears(answer())
    assert said(member).topic_partitions is None
    assert member.owned == {TOPIC: (1, 2)}


def test_a_member_asks_again_of_a_broker_that_is_not_sure() -> None:
    member = IdleMember("g", "t")
    assert member._hears(answer(error=ErrorCode.not_coordinator)) < 5.0
    assert member.refused
    assert said(member).member_epoch == 0
    member._hears(answer(1))
    assert not member.refused


def test_a_refusal_is_said() -> None:
    with pytest.raises(AnswerError, match="fenced_member_epoch, no"):
        IdleMember("g", "t")._hears(answer(error=ErrorCode.fenced_member_epoch))
