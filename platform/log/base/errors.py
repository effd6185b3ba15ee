"""Every error that tidelog raises on purpose.

One class per kind. Each message says what happened, why as a rule, and what to do. `kafka_code` is the code
of the same error in Kafka's protocol (`org.apache.kafka.common.protocol.Errors`), -1 where Kafka has none;
`retriable` says whether the same call may succeed later without any other change.
"""

from typing import ClassVar


class TidelogError(Exception):
    """Base of all of tidelog's errors."""

    kafka_code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False


# --- topics, partitions, configuration ---------------------------------------------------------------------


class InvalidTopicError(TidelogError):
    """A topic's name breaks Kafka's rule, or collides with another topic's."""

    kafka_code = 17


class TopicExistsError(TidelogError):
    """A topic of that name is already there."""

    kafka_code = 36


class UnknownTopicError(TidelogError):
    """No topic of that name, and nothing may create it on the way."""

    kafka_code = 3


class UnknownPartitionError(TidelogError):
    """The topic has no partition of that number."""

    kafka_code = 3


class TopicChangedError(TidelogError):
    """The topic was deleted, or deleted and created again, since the caller opened it."""

    kafka_code = 103


class InvalidPartitionsError(TidelogError):
    """A number of partitions that can't be had: below 1, or fewer than there are."""

    kafka_code = 37


class InvalidConfigError(TidelogError):
    """An unknown configuration key, or a value that its key does not take."""

    kafka_code = 40


class InvalidOptionError(TidelogError):
    """An option, or a column, that the Spark source or sink can't take."""

    kafka_code = 42


class PolicyViolationError(TidelogError):
    """The topic's policy forbids the request (Kafka's POLICY_VIOLATION)."""

    kafka_code = 44


# --- records -----------------------------------------------------------------------------------------------


class InvalidRecordError(TidelogError):
    """A record, or a table of them, that the topic can't take: a missing column, a wrong type."""

    kafka_code = 87


class InvalidTimestampError(TidelogError):
    """A record's timestamp lies outside what the topic's configuration allows."""

    kafka_code = 32


class RecordTooLargeError(TidelogError):
    """A record is larger than the topic's `max.message.bytes`."""

    kafka_code = 10


class OffsetOutOfRangeError(TidelogError):
    """An offset below the log start offset or above the log end offset."""

    kafka_code = 1


class DataLossError(OffsetOutOfRangeError):
    """Records that a Spark query was to read are gone (`failOnDataLoss`)."""


class OutOfOrderSequenceError(TidelogError):
    """An idempotent producer's sequence leaves a gap."""

    kafka_code = 45


class ProducerFencedError(TidelogError):
    """A newer epoch of the same producer has taken over."""

    kafka_code = 90


class InvalidProducerEpochError(ProducerFencedError):
    """A record comes with an older epoch of its producer than the partition has seen."""

    kafka_code = 47


class StaleBatchError(TidelogError):
    """A streaming query's batch id is below the one that the topic has already seen from that query."""

    kafka_code = 45


class DuplicateSegmentError(TidelogError):
    """A staged segment is in the topic already: it was committed before, with other segments than now."""

    kafka_code = 46


class RequestForgottenError(TidelogError):
    """A request may have been committed before, and the log does not go back so far any more."""

    kafka_code = 59


class SegmentTooOldError(TidelogError):
    """A segment was written before the topic's purge floor and may already be gone: write it again."""

    kafka_code = 56
    retriable = True


# --- transactions ------------------------------------------------------------------------------------------


class InvalidTransactionStateError(TidelogError):
    """A transaction is asked for what its state does not allow: to go on after its end, to commit out of turn."""

    kafka_code = 48


class UnknownTransactionalIdError(TidelogError):
    """The log of transactions does not know a producer's transactional id, or knows it no more."""

    kafka_code = 49


class InvalidTransactionTimeoutError(TidelogError):
    """A `transaction.timeout.ms` that the lake does not allow."""

    kafka_code = 50


class ConcurrentTransactionsError(TidelogError):
    """The transaction before is committed and not yet in all its topics: roll it forward, and try again."""

    kafka_code = 51
    retriable = True


class UnstableOffsetError(TidelogError):
    """An open transaction holds offsets of the group: what is committed is known when it ends."""

    kafka_code = 88
    retriable = True


class TransactionalIdNotFoundError(TidelogError):
    """No transactional id of that name."""

    kafka_code = 105


class TransactionAbortedError(TidelogError):
    """The transaction was aborted, by its time-out or an operator, or can only be aborted: a part of it is missing."""

    kafka_code = 120


# --- consumer groups ---------------------------------------------------------------------------------------


class OffsetMetadataTooLargeError(TidelogError):
    """The text beside a committed offset is longer than it may be."""

    kafka_code = 12


class IllegalGenerationError(TidelogError):
    """The generation that a member names is not the group's: the group went on without it."""

    kafka_code = 22


class InconsistentProtocolError(TidelogError):
    """A member supports no assignor that all others of its group support, or is of another kind of group."""

    kafka_code = 23


class InvalidGroupError(TidelogError):
    """A group id that no group may have: empty, or longer than 249 characters."""

    kafka_code = 24


class UnknownMemberError(TidelogError):
    """The group has no member of that id: it left, was evicted, or never joined."""

    kafka_code = 25


class RebalanceInProgressError(TidelogError):
    """The group is rebalancing: the member must join again before it goes on."""

    kafka_code = 27


class GroupNotEmptyError(TidelogError):
    """The group has members, so that it can't be deleted or reset."""

    kafka_code = 68


class GroupNotFoundError(TidelogError):
    """No group of that id."""

    kafka_code = 69


class FencedInstanceError(TidelogError):
    """Another consumer of the same `group.instance.id` has taken this member's place."""

    kafka_code = 82


class MaxPollExceededError(TidelogError):
    """A consumer did not poll for `max.poll.interval.ms`, so it left its group (a client's own error)."""


class GroupSubscribedError(TidelogError):
    """Offsets of a topic can't be deleted while members of the group subscribe to it."""

    kafka_code = 86


# --- lake and log ------------------------------------------------------------------------------------------


class LakeNotFoundError(TidelogError):
    """The lake's address holds no lake, and creating one was not asked for."""


class LakeFileLostError(LakeNotFoundError):
    """A folder holds topics, and not the lake's own file: making it again would reset the lake's configuration."""


class NotATopicError(TidelogError):
    """The folder holds a table that is not a tidelog topic."""

    kafka_code = 17


class UnsupportedFormatError(TidelogError):
    """A lake or table uses a format version, a protocol, a feature or a property that is not implemented."""

    kafka_code = 35


class CorruptLogError(TidelogError):
    """A log entry or a checkpoint breaks the format; the message names it."""

    kafka_code = 2

    def __init__(self, message: str, *, version: int | None = None) -> None:
        super().__init__(message)
        self.version = version


class ForeignEntryError(CorruptLogError):
    """Entries that tidelog did not write are at the head of a log; 'tidelog check --repair' takes them back."""


class TornEntryError(CorruptLogError):
    """A log entry lost its end, as after a power failure on storage that lies about fsync."""


class CorruptSegmentError(TidelogError):
    """A segment is missing, truncated or not what its log entry says; the message names it."""

    kafka_code = 2


class LogTrimmedError(TidelogError):
    """A version of the log that is asked for was trimmed away (`log.min.age.ms`)."""

    kafka_code = 1


class ContendedLogError(TidelogError):
    """Other writers won every race for the next entry; nothing was committed."""

    kafka_code = 7
    retriable = True


class OutcomeUnknownError(TidelogError):
    """The store gave no answer: the request may have been committed.

    `request_id` is the request's id: a repeat under the same id is committed at most once.
    """

    kafka_code = 7
    retriable = True

    def __init__(self, message: str, *, request_id: str) -> None:
        super().__init__(message)
        self.request_id = request_id


class DeliveryTimeoutError(TidelogError):
    """Records could not be committed within their time.

    `maybe_persisted`: the store gave no answer about them, so that they may be there all the same.
    """

    kafka_code = 7

    def __init__(self, message: str, *, maybe_persisted: bool) -> None:
        super().__init__(message)
        self.maybe_persisted = maybe_persisted


# --- storage -----------------------------------------------------------------------------------------------


class StorageError(TidelogError):
    """The store refused or failed; nothing was changed unless the class says otherwise."""

    kafka_code = 56


class ObjectNotFoundError(StorageError):
    """No object of that path."""


class InvalidPathError(StorageError):
    """A path inside the store that is empty, absolute, leaves the root, or holds a forbidden character."""


class InvalidUriError(StorageError):
    """An address that names no store that tidelog knows, or that others would read as another place."""


class MissingSegmentError(StorageError):
    """A segment that a commit brings is not in storage: nothing was committed. Write the records again."""

    retriable = True


class StorageFullError(StorageError):
    """No space (or quota) left; nothing was stored."""


class StoragePermissionError(StorageError):
    """The store denies access; nothing was stored."""


class NoCredentialsError(StoragePermissionError):
    """There are no credentials for the store: no option, no environment, no role of the machine. It got no request."""


class UnsafeStoreError(StorageError):
    """The store does not honour put-if-absent, so that no lake can be kept there."""


class StorageUnavailableError(StorageError):
    """The store gave no clear answer: a write may or may not have happened."""

    retriable = True


# --- the installation --------------------------------------------------------------------------------------


class MissingPackageError(TidelogError, ImportError):
    """A part of tidelog was asked for whose packages, an extra of tidelog's, are not installed."""


class MissingJarsError(TidelogError):
    """A Spark session needs jars that this machine does not have and could not fetch."""
