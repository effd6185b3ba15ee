"""What requests of administration are refused for, beside what the lake itself refuses; and refusals as answers."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode

H = TypeVar("H", bound=Hashable)


class InvalidReplicationFactorError(TidelogError, kafka_code=KafkaCode.INVALID_REPLICATION_FACTOR):
    """A replication factor below 1, or above the number of running brokers."""


class InvalidReplicaAssignmentError(TidelogError, kafka_code=KafkaCode.INVALID_REPLICA_ASSIGNMENT):
    """Replicas that name no broker, one twice, or partitions that are not numbered from 0."""


class RequestTimedOutError(TidelogError, kafka_code=KafkaCode.REQUEST_TIMED_OUT, retriable=True):
    """What was asked for goes on, and was not done within the request's time."""


def result(error: TidelogError | None = None) -> dict[str, Any]:
    """The fields of an answer that say how one thing went."""
    if error is None:
        return {"error_code": 0, "error_message": None}
    return {"error_code": error.kafka_code, "error_message": str(error)}


def repeated(named: Iterable[H]) -> set[H]:
    """Those that are named more than once."""
    return {one for one, times in Counter(named).items() if times > 1}
