"""What coordinators of groups refuse beyond the rules of groups, and the codes in which clients hear of a refusal."""

from typing import Final

from tidelog.broker.wire.errors import COORDINATOR_NOT_AVAILABLE, GroupAuthorizationError
from tidelog.log.base.errors import LakeFollowsError, TidelogError
from tidelog.log.base.kafka_codes import KafkaCode


class MemberIdRequiredError(TidelogError, kafka_code=KafkaCode.MEMBER_ID_REQUIRED):
    """A newcomer is given an id, with which it is to join again: no member is made for a client that is gone."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"Join again, with the member id {member_id!r}.")
        self.member_id = member_id


class InvalidSessionTimeoutError(TidelogError, kafka_code=KafkaCode.INVALID_SESSION_TIMEOUT):
    """A session timeout outside the bounds of the broker."""


class GroupFullError(TidelogError, kafka_code=KafkaCode.GROUP_MAX_SIZE_REACHED):
    """A group has as many members as the broker allows to one of its type."""


class InvalidHeartbeatError(TidelogError, kafka_code=KafkaCode.INVALID_REQUEST):
    """A heartbeat of the consumer protocol that contradicts itself."""


class NotCoordinatorError(TidelogError, kafka_code=KafkaCode.NOT_COORDINATOR, retriable=True):
    """Another broker coordinates the group."""


# What clients of groups know how to take.
_KNOWN: Final = frozenset(
    {
        KafkaCode.OFFSET_OUT_OF_RANGE,
        KafkaCode.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaCode.OFFSET_METADATA_TOO_LARGE,
        KafkaCode.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaCode.COORDINATOR_NOT_AVAILABLE,
        KafkaCode.NOT_COORDINATOR,
        KafkaCode.INVALID_TOPIC_EXCEPTION,
        KafkaCode.ILLEGAL_GENERATION,
        KafkaCode.INCONSISTENT_GROUP_PROTOCOL,
        KafkaCode.INVALID_GROUP_ID,
        KafkaCode.UNKNOWN_MEMBER_ID,
        KafkaCode.INVALID_SESSION_TIMEOUT,
        KafkaCode.REBALANCE_IN_PROGRESS,
        KafkaCode.INVALID_REQUEST,
        KafkaCode.NON_EMPTY_GROUP,
        KafkaCode.GROUP_ID_NOT_FOUND,
        KafkaCode.MEMBER_ID_REQUIRED,
        KafkaCode.GROUP_MAX_SIZE_REACHED,
        KafkaCode.FENCED_INSTANCE_ID,
        KafkaCode.GROUP_SUBSCRIBED_TO_TOPIC,
        KafkaCode.UNSTABLE_OFFSET_COMMIT,
        KafkaCode.UNKNOWN_TOPIC_ID,
        KafkaCode.FENCED_MEMBER_EPOCH,
        KafkaCode.STALE_MEMBER_EPOCH,
        KafkaCode.UNRELEASED_INSTANCE_ID,
        KafkaCode.UNSUPPORTED_ASSIGNOR,
        KafkaCode.INVALID_REGULAR_EXPRESSION,
        KafkaCode.UNSUPPORTED_VERSION,
        KafkaCode.STREAMS_INVALID_TOPOLOGY,
        KafkaCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
    }
)


def code_of(error: TidelogError) -> int:
    """The error's code for clients of groups: trouble with the log is a coordinator that is not available.

    It is the sign to look for the coordinator again, and to repeat the request.

    A lake that follows another one takes no member and no commit until it is promoted: clients are notified at once, by
    the code after which they do not try again. Source: `CoordinatorOperationExceptionHelper.handleOperationException`
    (kafka 4.0).
    """
    if isinstance(error, LakeFollowsError):
        return GroupAuthorizationError.kafka_code
    return error.kafka_code if error.kafka_code in _KNOWN else COORDINATOR_NOT_AVAILABLE
