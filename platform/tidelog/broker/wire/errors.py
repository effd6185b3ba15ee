"""What a broker refuses requests for, and the codes by which Kafka's clients know errors. Source: `Errors`."""

from typing import Final

from kio.schema.errors import ErrorCode

from tidelog.log.base.errors import AuthenticationError, TidelogError, TopicChangedError, UnknownTopicError

UNKNOWN_SERVER_ERROR: Final = -1
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_OR_PARTITION: Final = UnknownTopicError.kafka_code
LEADER_NOT_AVAILABLE: Final = 5
NOT_LEADER_OR_FOLLOWER: Final = 6
COORDINATOR_NOT_AVAILABLE: Final = 15
UNSUPPORTED_SASL_MECHANISM: Final = 33
LISTENER_NOT_FOUND: Final = 72
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 76
INCONSISTENT_TOPIC_ID: Final = TopicChangedError.kafka_code


def error_name(code: int) -> str:
    """Kafka's name of an error code, as in UNKNOWN_TOPIC_OR_PARTITION; NONE for 0."""
    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return str(code)


class ClosedConnectionError(TidelogError):
    """What only the end of a connection can say to its client, as in Kafka: there is no answer for it."""


class MalformedRequestError(ClosedConnectionError, kafka_code=42):
    """Bytes that are no request of Kafka's protocol."""


class IllegalSaslStateError(ClosedConnectionError, kafka_code=34):
    """A request of a client that must log in first, or that logs in out of turn."""


class LoginClosedError(ClosedConnectionError, kafka_code=58):
    """A log-in that failed, or is not heard, without an answer; or a session that is over."""


class UnacknowledgedError(ClosedConnectionError):
    """Records that were sent with acks=0, and so have no answer, could not be appended."""


class UnsupportedVersionError(TidelogError, kafka_code=35):
    """An API, or a version of one, that the broker does not offer."""


class InvalidRequestError(TidelogError, kafka_code=42):
    """A request that contradicts itself, or asks for what its version does not have."""


class ThrottlingQuotaExceededError(TidelogError, kafka_code=89):
    """A client has changed more partitions than its controller_mutation_rate allows (KIP-599)."""


class UnknownTopicIdError(UnknownTopicError, kafka_code=100):
    """No topic has the id, or none has it any more."""


class TopicAuthorizationError(TidelogError, kafka_code=29):
    """The principal may not do this to the topic."""


class GroupAuthorizationError(TidelogError, kafka_code=30):
    """The principal may not do this to the group."""


class ClusterAuthorizationError(TidelogError, kafka_code=31):
    """The principal may not do this to the cluster."""


class TransactionalIdAuthorizationError(TidelogError, kafka_code=53):
    """The principal may not do this under the transactional id."""


# Of errors that are answered without being raised.
UNSUPPORTED_VERSION: Final = UnsupportedVersionError.kafka_code
INVALID_REQUEST: Final = InvalidRequestError.kafka_code
UNKNOWN_TOPIC_ID: Final = UnknownTopicIdError.kafka_code
TOPIC_AUTHORIZATION_FAILED: Final = TopicAuthorizationError.kafka_code
ILLEGAL_SASL_STATE: Final = IllegalSaslStateError.kafka_code
SASL_AUTHENTICATION_FAILED: Final = AuthenticationError.kafka_code
