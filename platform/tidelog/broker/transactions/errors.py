"""The codes in which clients hear of what a transaction is refused for."""

from typing import Final

from tidelog.broker.wire.errors import COORDINATOR_NOT_AVAILABLE
from tidelog.log.base.errors import InvalidProducerEpochError, LakeFollowsError, ProducerFencedError, TidelogError


class NotTransactionCoordinatorError(TidelogError, kafka_code=16, retriable=True):
    """This broker stops: others coordinate transactions."""


class TransactionalIdDeniedError(TidelogError, kafka_code=53):
    """What the broker allows no client, in the code that Kafka has for it."""


OPERATION_NOT_ATTEMPTED: Final = 55
INVALID_REGULAR_EXPRESSION: Final = 128

# What clients of transactions know how to take.
_KNOWN: Final = frozenset({3, 15, 16, 42, 47, 48, 49, 50, 51, 53, 90, 105, 120})


def code_of(error: TidelogError, version: int, fenced_since: int) -> int:
    """The error's code: trouble with the log is a coordinator that is not available.

    It is the sign to look for the coordinator again, and to repeat the request.
    A lake that follows another one lets no transactional id begin until it is promoted: clients are notified at once.
    `fenced_since`: the API's first version whose clients know PRODUCER_FENCED; earlier ones get INVALID_PRODUCER_EPOCH
    (KIP-588). Source: `KafkaApis` (kafka 4.2).
    """
    if isinstance(error, LakeFollowsError):
        return TransactionalIdDeniedError.kafka_code
    code = error.kafka_code
    if code == ProducerFencedError.kafka_code and version < fenced_since:
        return InvalidProducerEpochError.kafka_code
    return code if code in _KNOWN else COORDINATOR_NOT_AVAILABLE
