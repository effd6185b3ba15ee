"""A producer's transactions in confluent-kafka's words: what is refused when, and what an error is to a caller."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TypeVar

import pyarrow as pa

from tidelog.clients.settings import ProducerSettings
from tidelog.clients.values.errors import KafkaError, KafkaException, kafka_error, kafka_exception, kafka_exceptions
from tidelog.clients.values.partitions import ConsumerGroupMetadata, TopicPartition
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import (
    ContendedLogError,
    InvalidTransactionStateError,
    InvalidTransactionTimeoutError,
    OutcomeUnknownError,
    ProducerFencedError,
    StorageError,
    TidelogError,
    TransactionAbortedError,
    UnknownTransactionalIdError,
)
from tidelog.log.group_commit.requests import I32
from tidelog.log.lake import Lake
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit

R = TypeVar("R")

# After these the same call may succeed: the store had no room, gave no answer, or others were faster.
_PASSING = (StorageError, OutcomeUnknownError, ContendedLogError)


class ProducerTransactions:
    """The transactions of a producer with a `transactional.id`. Calls are made one after another."""

    def __init__(self, lake: Lake, settings: ProducerSettings, transactional_id: str, helpers: Executor) -> None:
        self._manager = TransactionManager(
            lake,
            transactional_id,
            LoggedOffsets(GroupLog(lake)),
            timeout_ms=settings.transaction_timeout_ms,
            helpers=helpers,
        )
        self._compression = settings.compression_type
        self._turn = threading.Lock()

    @property
    def phase(self) -> TransactionPhase:
        """Where the producer is in its transactions."""
        return self._manager.phase

    def init(self) -> None:
        """Fence earlier producers of the id, and finish what they have committed."""
        self._call(self._manager.init)

    def begin(self) -> None:
        """Begin a transaction."""
        self._call(self._manager.begin)

    def stage(self, topic: str, rows: pa.Table, chosen: I32) -> None:
        """Write records that no reader sees before the commit. Raises tidelog's errors."""
        self._manager.stage(topic, rows, chosen, self._compression)

    def failed(self, error: KafkaError) -> None:
        """A record of the transaction was not taken."""
        self._manager.mark_incomplete(KafkaException(error))

    def send_offsets(self, positions: Iterable[TopicPartition], group: ConsumerGroupMetadata) -> None:
        """Commit a group's offsets with the transaction; those below 0 are passed over, as in librdkafka.

        Raises TypeError for what is no group's metadata.
        """
        if not isinstance(group, ConsumerGroupMetadata):
            raise TypeError(f"expected a consumer's consumer_group_metadata(), not {type(group).__name__}")
        offsets = {
            (position.topic, position.partition): OffsetToCommit(
                position.offset, position.metadata or "", -1 if position.leader_epoch is None else position.leader_epoch
            )
            for position in positions
            if position.offset >= 0
        }
        identity = GroupIdentity(group.group_id, group.member_id, group.generation, group.group_instance_id)
        self._call(lambda: self._manager.add_offsets(identity, offsets))

    def commit(self) -> None:
        """Commit what was staged; all of it is in its topics when this returns."""
        self._call(self._manager.commit)

    def abort(self) -> None:
        """Abort the transaction: nothing of it is ever seen."""
        self._call(self._manager.abort, ending=True)

    def close(self) -> None:
        """Abort what is open."""
        self._call(self._manager.close)

    def out_of_turn(self) -> KafkaException:
        """What producing outside of a transaction is refused with."""
        phase = self._manager.phase
        if phase is TransactionPhase.FENCED:
            text = "Local: Fatal error: this producer was fenced, or its id forgotten. Close it, and create a new one."
            return kafka_exception(KafkaError._FATAL, text, fatal=True)
        if phase in (TransactionPhase.OPEN, TransactionPhase.COMMITTING):
            hint = "a commit or an abort has begun: call it again"
        else:
            hint = "none is open: call begin_transaction first"
        text = f"A producer with a transactional.id produces only in a transaction, and {hint} (state '{phase.value}')."
        return kafka_exception(KafkaError._STATE, text)

    def _call(self, call: Callable[[], R], *, ending: bool = False) -> R:
        with self._turn, kafka_exceptions(lambda e: _as_kafka(e, self._manager.phase, ending=ending)):
            return call()


def _as_kafka(error: TidelogError, phase: TransactionPhase, *, ending: bool) -> KafkaError:
    """Fatal: close the producer. Retriable: call again. Abortable: abort the transaction. `ending`: it was an abort."""
    code, text = error.kafka_code, str(error)
    if isinstance(error, ProducerFencedError):
        return KafkaError(KafkaError._FENCED, text, fatal=True)
    if isinstance(error, UnknownTransactionalIdError | InvalidTransactionTimeoutError):
        return KafkaError(code, text, fatal=True)
    if isinstance(error, InvalidTransactionStateError):
        return KafkaError(KafkaError._STATE, text)
    if isinstance(error, TransactionAbortedError):
        return KafkaError(_code_of(error.__cause__, code), text, txn_requires_abort=True)
    if ending or phase is TransactionPhase.COMMITTING:
        return KafkaError(code, text, retriable=isinstance(error, _PASSING))
    if phase is TransactionPhase.OPEN:
        return KafkaError(code, text, txn_requires_abort=True)
    return kafka_error(error)


def _code_of(cause: BaseException | None, otherwise: int) -> int:
    """A commit is refused with the code of what went wrong before, as by librdkafka."""
    if isinstance(cause, KafkaException):
        code: int = cause.args[0].code()
        return code
    return cause.kafka_code if isinstance(cause, TidelogError) and cause.kafka_code > 0 else otherwise


def no_transactional_id() -> KafkaException:
    """What the calls of transactions raise for a producer without the key."""
    return kafka_exception(
        KafkaError._NOT_CONFIGURED,
        "The transactional API needs the configuration transactional.id: give the producer a name that its"
        " successor after a crash will have too.",
    )
