"""Every error that tidelog raises on purpose.

One class per kind. Each message says what happened, why as a rule, and what to do. `kafka_code` is the code
of the same error in Kafka's protocol (`org.apache.kafka.common.protocol.Errors`), -1 where Kafka has none;
`retriable` says whether the same call may succeed later without any other change. A subclass has those of its base
unless it gives its own.
"""

from collections.abc import Mapping
from typing import ClassVar

from tidelog.log.base.kafka_codes import KafkaCode


class TidelogError(Exception):
    """Base of all of tidelog's errors."""

    kafka_code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False

    def __init_subclass__(cls, *, kafka_code: int = 0, retriable: bool = False) -> None:
        super().__init_subclass__()
        cls.kafka_code = int(kafka_code) or cls.kafka_code
        cls.retriable = retriable or cls.retriable


# --- topics, partitions, configuration ---------------------------------------------------------------------


class InvalidTopicError(TidelogError, kafka_code=KafkaCode.INVALID_TOPIC_EXCEPTION):
    """A topic's name breaks Kafka's rule, or collides with another topic's."""


class TopicExistsError(TidelogError, kafka_code=KafkaCode.TOPIC_ALREADY_EXISTS):
    """A topic of that name is already there."""


class UnknownTopicError(TidelogError, kafka_code=KafkaCode.UNKNOWN_TOPIC_OR_PARTITION):
    """No topic of that name, and nothing may create it on the way."""


class UnknownPartitionError(TidelogError, kafka_code=KafkaCode.UNKNOWN_TOPIC_OR_PARTITION):
    """The topic has no partition of that number."""


class TopicChangedError(TidelogError, kafka_code=KafkaCode.INCONSISTENT_TOPIC_ID):
    """The topic was deleted, or deleted and created again, since the caller opened it."""


class InvalidPartitionsError(TidelogError, kafka_code=KafkaCode.INVALID_PARTITIONS):
    """A number of partitions that can't be had: below 1, or fewer than there are."""


class InvalidConfigError(TidelogError, kafka_code=KafkaCode.INVALID_CONFIG):
    """An unknown configuration key, or a value that its key does not take."""


class InvalidOptionError(TidelogError, kafka_code=KafkaCode.INVALID_REQUEST):
    """An option, or a column, that the Spark source or sink can't take."""


class PolicyViolationError(TidelogError, kafka_code=KafkaCode.POLICY_VIOLATION):
    """The topic's policy forbids the request (Kafka's POLICY_VIOLATION)."""


# --- records -----------------------------------------------------------------------------------------------


class InvalidRecordError(TidelogError, kafka_code=KafkaCode.INVALID_RECORD):
    """A record, or a table of them, that the topic can't take: a missing column, a wrong type."""


class InvalidValueError(InvalidRecordError):
    """Records of a typed topic with topic.validate=true whose values are not of its schema.

    `rows`: {row of the table: why} of all of them. `alone`: whether the table has no other record.
    """

    def __init__(self, topic: str, rows: Mapping[int, str], *, alone: bool = False) -> None:
        named = list(rows)
        others = ", ".join(map(str, named[1:10])) + (", …" if len(named) > 10 else "")
        super().__init__(
            f"Topic '{topic}' takes values of its schema only (topic.validate=true), and"
            f" {'the record' if alone else f'row {named[0]}'} is refused: {rows[named[0]]}."
            + (f" Row{f's {others} are' if len(named) > 2 else f' {others} is'} refused, too." if others else "")
            + " Write values by a serializer of the schema, or set topic.validate=false."
        )
        self.topic = topic
        self.rows = dict(rows)

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidValueError, (self.topic, self.rows)

    @property
    def record_errors(self) -> tuple[tuple[int, str], ...]:
        """(row, why), for `record_errors` of a Produce answer (KIP-467)."""
        return tuple(self.rows.items())

    def part(self, start: int, end: int) -> "InvalidValueError":
        """What the rows from `start` to `end` are refused for, with their numbers in that part."""
        rows = {row - start: why for row, why in self.rows.items() if start <= row < end}
        return InvalidValueError(self.topic, rows, alone=end - start == 1)


class InvalidTimestampError(TidelogError, kafka_code=KafkaCode.INVALID_TIMESTAMP):
    """A record's timestamp lies outside what the topic's configuration allows."""


class RecordTooLargeError(TidelogError, kafka_code=KafkaCode.MESSAGE_TOO_LARGE):
    """A record is larger than the topic's `max.message.bytes`."""


class OffsetOutOfRangeError(TidelogError, kafka_code=KafkaCode.OFFSET_OUT_OF_RANGE):
    """An offset below the log start offset or above the log end offset."""


class DataLossError(OffsetOutOfRangeError):
    """Records that a Spark query was to read are gone (`failOnDataLoss`)."""


class OutOfOrderSequenceError(TidelogError, kafka_code=KafkaCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """An idempotent producer's sequence leaves a gap."""


class UnknownProducerIdError(OutOfOrderSequenceError, kafka_code=KafkaCode.UNKNOWN_PRODUCER_ID):
    """An idempotent producer that the partition does not know, or knows no more, does not begin at 0."""


class ProducerFencedError(TidelogError, kafka_code=KafkaCode.PRODUCER_FENCED):
    """A newer epoch of the same producer has taken over."""


class InvalidProducerEpochError(ProducerFencedError, kafka_code=KafkaCode.INVALID_PRODUCER_EPOCH):
    """A record comes with an older epoch of its producer than the partition has seen."""


class StaleBatchError(TidelogError, kafka_code=KafkaCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """A streaming query's batch id is below the one that the topic has already seen from that query."""


class NotACopyError(TidelogError, kafka_code=KafkaCode.POLICY_VIOLATION):
    """Records of another log can't keep their offsets here: the partition has records that no copy brought."""


class CopyPositionError(TidelogError, kafka_code=KafkaCode.OUT_OF_ORDER_SEQUENCE_NUMBER, retriable=True):
    """Another process copied to the partition meanwhile: go on from where it ends."""


class DuplicateSegmentError(TidelogError, kafka_code=KafkaCode.DUPLICATE_SEQUENCE_NUMBER):
    """A staged segment is in the topic already: it was committed before, with other segments than now."""


class RequestForgottenError(TidelogError, kafka_code=KafkaCode.UNKNOWN_PRODUCER_ID):
    """A request may have been committed before, and the log does not go back so far any more."""


class SegmentTooOldError(TidelogError, kafka_code=KafkaCode.KAFKA_STORAGE_ERROR, retriable=True):
    """A segment was written before the topic's purge floor and may already be gone: write it again."""


# --- transactions ------------------------------------------------------------------------------------------


class InvalidTransactionStateError(TidelogError, kafka_code=KafkaCode.INVALID_TXN_STATE):
    """A transaction is asked for what its state does not allow: to go on after its end, to commit out of turn."""


class UnknownTransactionalIdError(TidelogError, kafka_code=KafkaCode.INVALID_PRODUCER_ID_MAPPING):
    """The log of transactions does not know a producer's transactional id, or knows it no more."""


class InvalidTransactionTimeoutError(TidelogError, kafka_code=KafkaCode.INVALID_TRANSACTION_TIMEOUT):
    """A `transaction.timeout.ms` that the lake does not allow."""


class ConcurrentTransactionsError(TidelogError, kafka_code=KafkaCode.CONCURRENT_TRANSACTIONS, retriable=True):
    """The transaction before is committed and not yet in all its topics: roll it forward, and try again."""


class UnstableOffsetError(TidelogError, kafka_code=KafkaCode.UNSTABLE_OFFSET_COMMIT, retriable=True):
    """An open transaction holds offsets of the group: what is committed is known when it ends."""


class TransactionalIdNotFoundError(TidelogError, kafka_code=KafkaCode.TRANSACTIONAL_ID_NOT_FOUND):
    """No transactional id of that name."""


class TransactionAbortedError(TidelogError, kafka_code=KafkaCode.TRANSACTION_ABORTABLE):
    """The transaction was aborted, by its time-out or an operator, or can only be aborted: a part of it is missing."""


# --- consumer groups ---------------------------------------------------------------------------------------


class OffsetMetadataTooLargeError(TidelogError, kafka_code=KafkaCode.OFFSET_METADATA_TOO_LARGE):
    """The text beside a committed offset is longer than it may be."""


class IllegalGenerationError(TidelogError, kafka_code=KafkaCode.ILLEGAL_GENERATION):
    """The generation that a member names is not the group's: the group went on without it."""


class InconsistentProtocolError(TidelogError, kafka_code=KafkaCode.INCONSISTENT_GROUP_PROTOCOL):
    """A member supports no assignor that all others of its group support, or is of another kind of group."""


class InvalidGroupError(TidelogError, kafka_code=KafkaCode.INVALID_GROUP_ID):
    """A group id that no group may have: empty, or longer than 249 characters."""


class UnknownMemberError(TidelogError, kafka_code=KafkaCode.UNKNOWN_MEMBER_ID):
    """The group has no member of that id: it left, was evicted, or never joined."""


class RebalanceInProgressError(TidelogError, kafka_code=KafkaCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing: the member must join again before it goes on."""


class GroupNotEmptyError(TidelogError, kafka_code=KafkaCode.NON_EMPTY_GROUP):
    """The group has members, so that it can't be deleted or reset."""


class GroupNotFoundError(TidelogError, kafka_code=KafkaCode.GROUP_ID_NOT_FOUND):
    """No group of that id."""


class FencedInstanceError(TidelogError, kafka_code=KafkaCode.FENCED_INSTANCE_ID):
    """Another consumer of the same `group.instance.id` has taken this member's place."""


class FencedMemberEpochError(TidelogError, kafka_code=KafkaCode.FENCED_MEMBER_EPOCH):
    """A member's epoch is not the one that its group knows: it gives up all partitions, and joins again."""


class StaleMemberEpochError(TidelogError, kafka_code=KafkaCode.STALE_MEMBER_EPOCH):
    """A member commits or asks in an epoch that is not its newest one: after its next heartbeat it may do so again."""


class UnreleasedInstanceError(TidelogError, kafka_code=KafkaCode.UNRELEASED_INSTANCE_ID):
    """Another member has this `group.instance.id` and has not left."""


class UnsupportedAssignorError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_ASSIGNOR):
    """No assignor of that name."""


class InvalidRegularExpressionError(TidelogError, kafka_code=KafkaCode.INVALID_REGULAR_EXPRESSION):
    """A subscription is no regular expression that RE2 takes."""


class InvalidTopologyError(TidelogError, kafka_code=KafkaCode.STREAMS_INVALID_TOPOLOGY):
    """A topology of Kafka Streams that no topics could make run."""


class InvalidTopologyEpochError(TidelogError, kafka_code=KafkaCode.STREAMS_INVALID_TOPOLOGY_EPOCH):
    """A member of a streams group has a later topology than its group."""


class OtherTopologyError(TidelogError, kafka_code=KafkaCode.INVALID_REQUEST):
    """A member of a streams group has another topology than its group, of the same epoch."""


class MaxPollExceededError(TidelogError):
    """A consumer did not poll for `max.poll.interval.ms`, so it left its group (a client's own error)."""


class GroupSubscribedError(TidelogError, kafka_code=KafkaCode.GROUP_SUBSCRIBED_TO_TOPIC):
    """Offsets of a topic can't be deleted while members of the group subscribe to it."""


# --- access ------------------------------------------------------------------------------------------------


class AuthenticationError(TidelogError, kafka_code=KafkaCode.SASL_AUTHENTICATION_FAILED):
    """Credentials that are not those of a principal. Its message is the same for whatever is wrong with them.

    `reason`: what is wrong, for the log; no client gets it. `user`: the name that was given, "" for none.
    """

    def __init__(self, reason: str, user: str = "") -> None:
        super().__init__("Authentication failed: the credentials are not valid.")
        self.reason = reason
        self.user = user


# --- lake and log ------------------------------------------------------------------------------------------


class LakeNotFoundError(TidelogError):
    """The lake's address holds no lake, and creating one was not asked for."""


class LakeFileLostError(LakeNotFoundError):
    """A folder holds topics, and not the lake's own file: making it again would reset the lake's configuration."""


class LakeFollowsError(TidelogError, kafka_code=KafkaCode.POLICY_VIOLATION):
    """The lake follows another one: only its mirror changes what it holds (Kafka's POLICY_VIOLATION)."""


class LakeNotWholeError(LakeFollowsError):
    """The lake is a branch that is being made, or was broken off, or is being discarded."""


class NotATopicError(TidelogError, kafka_code=KafkaCode.INVALID_TOPIC_EXCEPTION):
    """The folder holds a table that is not a tidelog topic."""


class UnsupportedFormatError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_VERSION):
    """A lake or table uses a format version, a protocol, a feature or a property that is not implemented."""


class CorruptLogError(TidelogError, kafka_code=KafkaCode.CORRUPT_MESSAGE):
    """A log entry or a checkpoint breaks the format; the message names it."""

    def __init__(self, message: str, *, version: int | None = None) -> None:
        super().__init__(message)
        self.version = version


class ForeignEntryError(CorruptLogError):
    """Entries that tidelog did not write are at the head of a log; 'tidelog check --repair' takes them back."""


class TornEntryError(CorruptLogError):
    """A log entry lost its end, as after a power failure on storage that lies about fsync."""


class CorruptSegmentError(TidelogError, kafka_code=KafkaCode.CORRUPT_MESSAGE):
    """A segment is missing, truncated or not what its log entry says; the message names it."""


class LogTrimmedError(TidelogError, kafka_code=KafkaCode.OFFSET_OUT_OF_RANGE):
    """A version of the log that is asked for was trimmed away (`log.min.age.ms`)."""


class ContendedLogError(TidelogError, kafka_code=KafkaCode.REQUEST_TIMED_OUT, retriable=True):
    """Other writers won every race for the next entry; nothing was committed."""


class OutcomeUnknownError(TidelogError, kafka_code=KafkaCode.REQUEST_TIMED_OUT, retriable=True):
    """The store gave no answer: the request may have been committed.

    `request_id` is the request's id: a repeat under the same id is committed at most once.
    """

    def __init__(self, message: str, *, request_id: str) -> None:
        super().__init__(message)
        self.request_id = request_id


class DeliveryTimeoutError(TidelogError, kafka_code=KafkaCode.REQUEST_TIMED_OUT):
    """Records could not be committed within their time.

    `maybe_persisted`: the store gave no answer about them, so that they may be there all the same.
    """

    def __init__(self, message: str, *, maybe_persisted: bool) -> None:
        super().__init__(message)
        self.maybe_persisted = maybe_persisted


# --- storage -----------------------------------------------------------------------------------------------


class StorageError(TidelogError, kafka_code=KafkaCode.KAFKA_STORAGE_ERROR):
    """The store refused or failed; nothing was changed unless the class says otherwise."""


class ObjectNotFoundError(StorageError):
    """No object of that path."""


class InvalidPathError(StorageError):
    """A path inside the store that is empty, absolute, leaves the root, or holds a forbidden character."""


class InvalidUriError(StorageError):
    """An address that names no store that tidelog knows, or that others would read as another place."""


class MissingSegmentError(StorageError, retriable=True):
    """A segment that a commit brings is not in storage: nothing was committed. Write the records again."""


class StorageFullError(StorageError):
    """No space (or quota) left; nothing was stored."""


class StoragePermissionError(StorageError):
    """The store denies access; nothing was stored."""


class NoCredentialsError(StoragePermissionError):
    """There are no credentials for the store: no option, no environment, no role of the machine. It got no request."""


class UnsafeStoreError(StorageError):
    """The store does not honour put-if-absent, so that no lake can be kept there."""


class StorageUnavailableError(StorageError, retriable=True):
    """The store gave no clear answer: a write may or may not have happened."""


# --- the installation --------------------------------------------------------------------------------------


class MissingPackageError(TidelogError, ImportError):
    """A part of tidelog was asked for whose packages, an extra of tidelog's, are not installed."""


class MissingJarsError(TidelogError):
    """A Spark session needs jars that this machine does not have and could not fetch."""
