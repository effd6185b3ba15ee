"""`tidelog perf consume` at work: a member of a group that reads as fast as it goes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tidelog.cli.perf.java_dates import java_date
from tidelog.cli.perf.measures import WINDOW_MS, ConsumerStatistics, ConsumerTotal
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.commands.stopping import Stop
from tidelog.log.lake import Lake

# As Kafka's tool polls: the longest wait, and the most records (max.poll.records).
_POLL_S = 0.1
_POLLED = 500
DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"


@dataclass(frozen=True, slots=True)
class ConsumeRun:
    """What to consume: `records` of a topic, or fewer when none came for `timeout_ms`.

    `detailed`: a line each `interval_ms`.
    """

    topic: str
    records: int
    group: str
    timeout_ms: int = 10_000
    interval_ms: int = WINDOW_MS
    detailed: bool = False
    date_format: str = DATE_FORMAT
    conf: Mapping[str, Any] = field(default_factory=dict)


class Consuming:
    """One run. `say` prints a line."""

    def __init__(self, lake: Lake, run: ConsumeRun, stop: Stop, say: Callable[[str], None]) -> None:
        self._clock = lake.clock
        self._lake = lake
        self._run = run
        self._stop = stop
        self._say = say
        self._date = partial(java_date, run.date_format)

    def work(self) -> ConsumerTotal:
        """Consume it all. Raises what the client raises, and KafkaException for an error that it reports."""
        run, clock = self._run, self._clock
        conf = {"client.id": "perf-consumer-client", **run.conf, "group.id": run.group, "lake": self._lake}
        statistics = ConsumerStatistics(clock.now_ms(), run.interval_ms, detailed=run.detailed)
        consumer = Consumer(conf)
        try:
            consumer.subscribe(
                [run.topic],
                on_assign=lambda _, given: statistics.assigned(_names(given), clock.now_ms()),
                on_revoke=lambda _, taken: statistics.revoked(_names(taken), clock.now_ms()),
            )
            statistics.begin(clock.now_ms())
            self._read(consumer, statistics)
            end_ms = clock.now_ms()
        finally:
            consumer.close()
        if statistics.records < run.records and not self._stop.asked:
            self._say(
                "WARNING: Exiting before consuming the expected number of messages: timeout"
                f" ({run.timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
            )
        return statistics.total(end_ms)

    def line(self, total: ConsumerTotal) -> str:
        """Kafka's last line of this run."""
        return total.line(self._date)

    def _read(self, consumer: Consumer, statistics: ConsumerStatistics) -> None:
        run, clock = self._run, self._clock
        now_ms = consumed_ms = clock.now_ms()
        while statistics.records < run.records and now_ms - consumed_ms <= run.timeout_ms and not self._stop.asked:
            messages = consumer.consume(_POLLED, _POLL_S)
            now_ms = clock.now_ms()
            for message in messages:
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        continue
                    raise KafkaException(error)
                consumed_ms = now_ms
                size = len(message) + len(message.key() or b"")
                line = statistics.record(size, now_ms, self._date)
                if line is not None:
                    self._say(line)


def _names(partitions: list[TopicPartition]) -> list[tuple[str, int]]:
    return [(p.topic, p.partition) for p in partitions]
