"""What record batches of a client are refused for, by Kafka's codes."""

from collections.abc import Sequence

from tidelog.log.base.errors import InvalidRecordError, InvalidTimestampError, TidelogError
from tidelog.log.base.kafka_codes import KafkaCode


class CorruptBatchError(TidelogError, kafka_code=KafkaCode.CORRUPT_MESSAGE, retriable=True):
    """A batch that is torn, fails its checksum, or can't be unpacked (CORRUPT_MESSAGE)."""


class UnsupportedMessageFormatError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """Records in a message format before v2, Kafka's since 0.11 (UNSUPPORTED_FOR_MESSAGE_FORMAT)."""


class UnsupportedCompressionError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_COMPRESSION_TYPE):
    """An unknown codec, or one that the version of the request has not (UNSUPPORTED_COMPRESSION_TYPE)."""


class RejectedRecordsError(TidelogError):
    """Single records are to blame, and their whole batch is refused.

    `record_errors`: (index of the record in its batch, why), for `record_errors` of a Produce answer (KIP-467).
    """

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class RejectedKeysError(RejectedRecordsError, InvalidRecordError, kafka_code=KafkaCode.INVALID_RECORD):
    """Records that break a rule of their topic: no key where the topic is compacted (INVALID_RECORD)."""


class RejectedTimestampsError(RejectedRecordsError, InvalidTimestampError, kafka_code=KafkaCode.INVALID_TIMESTAMP):
    """Records whose timestamps lie outside what the topic allows (INVALID_TIMESTAMP)."""
