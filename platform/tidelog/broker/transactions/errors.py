"""The codes in which clients hear of what a transaction is refused for."""

from typing import Final

from tidelog.broker.wire.errors import COORDINATOR_NOT_AVAILABLE
from tidelog.log.base.errors import InvalidProducerEpochError, LakeFollowsError, ProducerFencedError, TidelogError
from tidelog.log.base.kafka_codes import KafkaCode


class NotTransactionCoordinatorError(TidelogError, kafka_code=KafkaCode.NOT_COORDINATOR, retriable=True):
    """This broker stops: others coordinate transactions."""


class TransactionalIdDeniedError(TidelogError, kafka_code=KafkaCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """What the broker allows no client, in the code that Kafka has for it."""


OPERATION_NOT_ATTEMPTED: Final[int] = KafkaCode.OPERATION_NOT_ATTEMPTED
INVALID_REGULAR_EXPRESSION: Final[int] = KafkaCode.INVALID_REGULAR_EXPRESSION

# What clients of transactions know how to take.
_KNOWN: Final = frozenset(
    {
        KafkaCode.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaCode.COORDINATOR_NOT_AVAILABLE,
        KafkaCode.NOT_COORDINATOR,
        KafkaCode.INVALID_REQUEST,
        KafkaCode.INVALID_PRODUCER_EPOCH,
        KafkaCode.INVALID_TXN_STATE,
        KafkaCode.INVALID_PRODUCER_ID_MAPPING,
        KafkaCode.INVALID_TRANSACTION_TIMEOUT,
        KafkaCode.CONCURRENT_TRANSACTIONS,
        KafkaCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaCode.PRODUCER_FENCED,
        KafkaCode.TRANSACTIONAL_ID_NOT_FOUND,
        KafkaCode.TRANSACTION_ABORTABLE,
    }
)


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
