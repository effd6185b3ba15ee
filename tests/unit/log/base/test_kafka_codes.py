"""The names and numbers of Kafka's errors are those of its protocol, all of them."""

import pytest
from kio.schema.errors import ErrorCode

from tidelog.broker.fetch import sessions
from tidelog.broker.wire import errors
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode


def test_every_code_is_the_protocols():
    assert {one.name: one.value for one in KafkaCode} == {one.name.upper(): int(one) for one in ErrorCode}


@pytest.mark.parametrize("name", sorted(name for name in vars(errors) if name in KafkaCode.__members__))
def test_constants_have_the_code_of_their_name(name):
    assert getattr(errors, name) == KafkaCode[name]


def test_constants_are_there():
    assert errors.UNKNOWN_LEADER_EPOCH == 75
    assert (sessions.SESSION_ID_NOT_FOUND, sessions.INVALID_SESSION_EPOCH, sessions.SESSION_TOPIC_ID_ERROR) == (
        70,
        71,
        106,
    )


def test_an_error_has_its_code_as_a_number():
    class OwnError(TidelogError, kafka_code=KafkaCode.POLICY_VIOLATION):
        """One."""

    assert type(OwnError.kafka_code) is int
    assert OwnError.kafka_code == 44
