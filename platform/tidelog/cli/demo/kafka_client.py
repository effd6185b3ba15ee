"""The Kafka client of `tidelog demo --kafka`: confluent-kafka as it comes, which knows nothing of tidelog."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, Producer

from tidelog.log.base.clock import Clock

# Some days of flights: partitions never lie further apart, so that no flight comes too late for its hour.
MOST_UNANSWERED = 3000
_AT_ONCE = 250
_PATIENCE_S = 60.0
_LOOK_S = 0.2
_MILLISECOND = timedelta(milliseconds=1)


@dataclass
class SentRecords:
    """What a producer sent and what it was answered; another thread may look while it goes on."""

    acked: int = 0
    ends: Counter[int] = field(default_factory=Counter)  # records of each partition
    out_of_order: int = 0
    failed: list[str] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    stopped: bool = False  # set by the demo when it wants no more sent

    def answered(self, error: KafkaError | None, message: Message) -> None:
        """The delivery report of a record. Partitions must start empty: then offsets count up from 0."""
        partition, offset, latency_s = message.partition(), message.offset(), message.latency()
        if error is not None or partition is None:
            self.failed.append(str(error))
            return
        self.acked += 1
        self.out_of_order += offset not in (self.ends[partition], OFFSET_INVALID)
        self.ends[partition] += 1
        self.latencies_ms.append((latency_s or 0.0) * 1000)

    def latency_ms(self, quantile: float) -> float:
        """How long this share of the records waited for their answer at most; 0 without records."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))] if ordered else 0.0


def send(address: str, records: pa.Table, lasting_s: float, clock: Clock, sending: SentRecords) -> None:
    """Produce records (`key`, `value`, `timestamp`) to topic `flights` in their order, evenly over `lasting_s`.

    Raises `KafkaException` when the broker goes on refusing.
    """
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": "zstd", "enable.idempotence": True, "log_level": 3}
    )
    keys, values = records["key"].to_pylist(), records["value"].to_pylist()
    timestamps = records["timestamp"].to_pylist()
    started_s = clock.elapsed_s()
    for number, (key, value, timestamp) in enumerate(zip(keys, values, timestamps, strict=True)):
        if number % _AT_ONCE == 0:
            due_s = started_s + lasting_s * number / len(keys)
            while (early_s := due_s - clock.elapsed_s()) > 0 or len(producer) > MOST_UNANSWERED:
                producer.poll(min(0.05, max(0.001, early_s)))
        producer.produce(
            "flights", value, key, timestamp=round(timestamp.timestamp() * 1000), on_delivery=sending.answered
        )
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
