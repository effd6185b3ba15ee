"""What coordinators of groups refuse beyond the rules of groups, and the codes in which clients hear of a refusal."""

from typing import Final

from tidelog.broker.wire.errors import COORDINATOR_NOT_AVAILABLE, GroupAuthorizationError
from tidelog.log.base.errors import LakeFollowsError, TidelogError


class MemberIdRequiredError(TidelogError, kafka_code=79):
    """A newcomer is given an id, with which it is to join again: no member is made for a client that is gone."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"Join again, with the member id {member_id!r}.")
        self.member_id = member_id


class InvalidSessionTimeoutError(TidelogError, kafka_code=26):
    """A session timeout outside the bounds of the broker."""


class GroupFullError(TidelogError, kafka_code=81):
    """A group has as many members as the broker allows (`group.max.size`)."""


class NotCoordinatorError(TidelogError, kafka_code=16, retriable=True):
    """Another broker coordinates the group."""


# What clients of groups know how to take.
_KNOWN: Final = frozenset({1, 3, 12, 14, 15, 16, 17, 22, 23, 24, 25, 26, 27, 42, 68, 69, 79, 81, 82, 86, 88, 100})


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
