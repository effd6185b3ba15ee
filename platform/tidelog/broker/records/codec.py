"""The port `RecordCodec` as this installation has it."""

from tidelog.broker.records.aiokafka_records import AiokafkaRecords
from tidelog.broker.records.columns import RecordCodec
from tidelog.broker.records.reader import NATIVE


def record_codec() -> RecordCodec:
    """The quickest reader and writer of batches that is there."""
    if NATIVE is None:
        return AiokafkaRecords()
    from tidelog.broker.records.native_records import NativeRecords  # what it imports may not be there

    return NativeRecords()
