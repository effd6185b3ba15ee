"""The Kafka client of `tidelog demo --kafka`: confluent-kafka as it comes, which knows nothing of tidelog."""

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from tidelog.cli.demo.sending import SentRecords, send_evenly
from tidelog.log.base.clock import Clock

_PATIENCE_S = 60.0
_LOOK_S = 0.2


def send(address: str, records: pa.Table, lasting_s: float, clock: Clock, sending: SentRecords) -> None:
    """Produce records to topic `flights` as `send_evenly` does.

    Raises `KafkaException` when the broker goes on refusing.
    """
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": "zstd", "enable.idempotence": True, "log_level": 3}
    )
    send_evenly(producer, records, lasting_s, clock, sending)
    if unanswered := producer.flush(_PATIENCE_S):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{unanswered} records were not answered"))


def consume_all(address: str, topic: str, group: str) -> list[tuple[int, int, bytes]]:
    """All records of a topic as a member of a group, which commits: (partition, offset, value) as they came."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 3,
        }
    )
    records: list[tuple[int, int, bytes]] = []
    ended: set[int] = set()
    try:
        consumer.subscribe([topic])
        silent_s = 0.0
        while not ended or len(ended) < len(consumer.assignment()):
            # It waits for as many as it is asked for, also behind the last one.
            messages = consumer.consume(1000, timeout=_LOOK_S)
            silent_s = 0.0 if messages else silent_s + _LOOK_S
            if silent_s >= _PATIENCE_S:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"topic {topic} was not read to its end"))
            for message in messages:
                error, partition, offset, value = (
                    message.error(),
                    message.partition(),
                    message.offset(),
                    message.value(),
                )
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if partition is None or offset is None:
                    continue
                if error is not None:
                    ended.add(partition)
                elif isinstance(value, bytes):
                    records.append((partition, offset, value))
        consumer.commit(asynchronous=False)
        return records
    finally:
        consumer.close()
