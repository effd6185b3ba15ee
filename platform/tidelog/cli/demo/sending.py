"""The records that a demo's producer sends, evenly over some time, and what it was answered."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tidelog.log.base.clock import Clock

# Some days of flights: partitions never lie further apart, so that no flight comes too late for its hour.
MOST_UNANSWERED = 3000
_AT_ONCE = 250
# What clients say of a record that was acknowledged by a repeat.
_OFFSET_INVALID = -1001


@dataclass
class SentRecords:
    """What a producer sent and what it was answered; another thread may look while it goes on."""

    acked: int = 0
    ends: Counter[int] = field(default_factory=Counter)  # records of each partition
    out_of_order: int = 0
    failed: list[str] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    stopped: bool = False  # set by the demo when it wants no more sent

    def answered(self, error: Any, message: Any) -> None:
        """The delivery report of a record. Partitions must start empty: then offsets count up from 0."""
        partition, offset, latency_s = message.partition(), message.offset(), message.latency()
        if error is not None or partition is None:
            self.failed.append(str(error))
            return
        self.acked += 1
        self.out_of_order += offset not in (self.ends[partition], _OFFSET_INVALID)
        self.ends[partition] += 1
        self.latencies_ms.append((latency_s or 0.0) * 1000)

    def latency_ms(self, quantile: float) -> float:
        """How long this share of the records waited for their answer at most; 0 without records."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))] if ordered else 0.0


def send_evenly(
    producer: Any,
    records: pa.Table,
    lasting_s: float,
    clock: Clock,
    sending: SentRecords,
    meanwhile: Callable[[], object] | None = None,
) -> None:
    """Produce records (`key`, `value`, `timestamp`) to topic `flights` in their order, evenly over `lasting_s`.

    `producer`: confluent-kafka's, or tidelog's, which has its methods. `meanwhile` is called now and then.
    """
    keys, values = records["key"].to_pylist(), records["value"].to_pylist()
    timestamps = records["timestamp"].to_pylist()
    started_s = clock.elapsed_s()
    for number, (key, value, timestamp) in enumerate(zip(keys, values, timestamps, strict=True)):
        if number % _AT_ONCE == 0:
            due_s = started_s + lasting_s * number / len(keys)
            while (early_s := due_s - clock.elapsed_s()) > 0 or len(producer) > MOST_UNANSWERED:
                producer.poll(min(0.05, max(0.001, early_s)))
                if sending.stopped:
                    return
            if meanwhile is not None:
                meanwhile()
        producer.produce(
            "flights", value, key, timestamp=round(timestamp.timestamp() * 1000), on_delivery=sending.answered
        )
