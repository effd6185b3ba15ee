"""What a broker refuses requests for, and the codes by which Kafka's clients know errors. Source: `Errors`."""

from typing import Final

from kio.schema.errors import ErrorCode

from tidelog.log.base.errors import AuthenticationError, TidelogError, TopicChangedError, UnknownTopicError
from tidelog.log.base.kafka_codes import KafkaCode

UNKNOWN_SERVER_ERROR: Final[int] = KafkaCode.UNKNOWN_SERVER_ERROR
OFFSET_OUT_OF_RANGE: Final[int] = KafkaCode.OFFSET_OUT_OF_RANGE
UNKNOWN_TOPIC_OR_PARTITION: Final = UnknownTopicError.kafka_code
LEADER_NOT_AVAILABLE: Final[int] = KafkaCode.LEADER_NOT_AVAILABLE
NOT_LEADER_OR_FOLLOWER: Final[int] = KafkaCode.NOT_LEADER_OR_FOLLOWER
COORDINATOR_NOT_AVAILABLE: Final[int] = KafkaCode.COORDINATOR_NOT_AVAILABLE
UNSUPPORTED_SASL_MECHANISM: Final[int] = KafkaCode.UNSUPPORTED_SASL_MECHANISM
LISTENER_NOT_FOUND: Final[int] = KafkaCode.LISTENER_NOT_FOUND
FENCED_LEADER_EPOCH: Final[int] = KafkaCode.FENCED_LEADER_EPOCH
UNKNOWN_LEADER_EPOCH: Final[int] = KafkaCode.UNKNOWN_LEADER_EPOCH
INCONSISTENT_TOPIC_ID: Final = TopicChangedError.kafka_code


def error_name(code: int) -> str:
    """Kafka's name of an error code, as in UNKNOWN_TOPIC_OR_PARTITION; NONE for 0."""
    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return str(code)


class ClosedConnectionError(TidelogError):
    """What only the end of a connection can say to its client, as in Kafka: there is no answer for it."""


class MalformedRequestError(ClosedConnectionError, kafka_code=KafkaCode.INVALID_REQUEST):
    """Bytes that are no request of Kafka's protocol."""


class LargeRequestError(TidelogError):
    """A request that is too large to be decoded while clients wait; no client hears of it."""


class IllegalSaslStateError(ClosedConnectionError, kafka_code=KafkaCode.ILLEGAL_SASL_STATE):
    """A request of a client that must log in first, or that logs in out of turn."""


class LoginClosedError(ClosedConnectionError, kafka_code=KafkaCode.SASL_AUTHENTICATION_FAILED):
    """A log-in that failed, or is not heard, without an answer; or a session that is over."""


class UnacknowledgedError(ClosedConnectionError):
    """Records that were sent with acks=0, and so have no answer, could not be appended."""


class UnsupportedVersionError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_VERSION):
    """An API, or a version of one, that the broker does not offer."""


class InvalidRequestError(TidelogError, kafka_code=KafkaCode.INVALID_REQUEST):
    """A request that contradicts itself, or asks for what its version does not have."""


class TopicDeletionDisabledError(TidelogError, kafka_code=KafkaCode.TOPIC_DELETION_DISABLED):
    """A client asks to delete a topic, and the broker's delete.topic.enable is false."""


class ThrottlingQuotaExceededError(TidelogError, kafka_code=KafkaCode.THROTTLING_QUOTA_EXCEEDED):
    """A client has changed more partitions than its controller_mutation_rate allows (KIP-599)."""


class UnknownTopicIdError(UnknownTopicError, kafka_code=KafkaCode.UNKNOWN_TOPIC_ID):
    """No topic has the id, or none has it any more."""


class TopicAuthorizationError(TidelogError, kafka_code=KafkaCode.TOPIC_AUTHORIZATION_FAILED):
    """The principal may not do this to the topic."""


class GroupAuthorizationError(TidelogError, kafka_code=KafkaCode.GROUP_AUTHORIZATION_FAILED):
    """The principal may not do this to the group."""


class ClusterAuthorizationError(TidelogError, kafka_code=KafkaCode.CLUSTER_AUTHORIZATION_FAILED):
    """The principal may not do this to the cluster."""


class TransactionalIdAuthorizationError(TidelogError, kafka_code=KafkaCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """The principal may not do this under the transactional id."""


# Of errors that are answered without being raised.
UNSUPPORTED_VERSION: Final = UnsupportedVersionError.kafka_code
INVALID_REQUEST: Final = InvalidRequestError.kafka_code
UNKNOWN_TOPIC_ID: Final = UnknownTopicIdError.kafka_code
TOPIC_AUTHORIZATION_FAILED: Final = TopicAuthorizationError.kafka_code
ILLEGAL_SASL_STATE: Final = IllegalSaslStateError.kafka_code
SASL_AUTHENTICATION_FAILED: Final = AuthenticationError.kafka_code
