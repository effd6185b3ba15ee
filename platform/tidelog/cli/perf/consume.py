"""`tidelog perf consume` at work: a member of a group that reads as fast as it goes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidelog.cli.perf.measures import ConsumerMeasures, ConsumerTotal, java_date
from tidelog.cli.perf.options import PerfConsumeOptions
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.lake import Lake
from tidelog.server.process.stopping import Stop

# As Kafka's tool polls: seconds, and the most records (max.poll.records).
_POLL_S = 0.1
_POLLED = 500


@dataclass(frozen=True, slots=True)
class PerfConsumer:
    """One run of a member of `group`. `conf`: the consumer's own configuration; `say` prints a line."""

    lake: Lake
    asked: PerfConsumeOptions
    group: str
    conf: Mapping[str, str]
    stop: Stop
    say: Callable[[str], None]

    def date(self, time_ms: int) -> str:
        """A time in the form that is asked for."""
        return java_date(self.asked.date_format, time_ms)

    def work(self) -> ConsumerTotal:
        """Consume it all. Raises what the client raises, and KafkaException for an error that a message holds."""
        asked, clock = self.asked, self.lake.clock
        statistics = ConsumerMeasures(clock.now_ms(), asked.reporting_interval, detailed=asked.show_detailed_stats)
        conf = {"client.id": "perf-consumer-client", **self.conf, "group.id": self.group, "lake": self.lake}
        with Consumer(conf) as consumer:
            consumer.subscribe(
                [asked.topic],
                on_assign=lambda _, given: statistics.assigned(_names(given), clock.now_ms()),
                on_revoke=lambda _, taken: statistics.revoked(_names(taken), clock.now_ms()),
            )
            statistics.begin(clock.now_ms())
            self._read(consumer, statistics)
            end_ms = clock.now_ms()
        if statistics.records < asked.messages and not self.stop.asked:
            self.say(
                "WARNING: Exiting before consuming the expected number of messages: timeout"
                f" ({asked.timeout} ms) exceeded. You can use the --timeout option to increase the timeout."
            )
        return statistics.total(end_ms)

    def _read(self, consumer: Consumer, statistics: ConsumerMeasures) -> None:
        asked, clock = self.asked, self.lake.clock
        now_ms = consumed_ms = clock.now_ms()
        while statistics.records < asked.messages and now_ms - consumed_ms <= asked.timeout and not self.stop.asked:
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
                line = statistics.record(size, now_ms, self.date)
                if line is not None:
                    self.say(line)


def _names(partitions: list[TopicPartition]) -> list[tuple[str, int]]:
    return [(p.topic, p.partition) for p in partitions]
