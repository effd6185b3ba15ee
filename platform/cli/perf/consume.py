"""`tidelog perf consume` at work: a member of a group that reads as fast as it goes."""

from collections.abc import Callable, Mapping
from functools import partial

from tidelog.cli.perf.java_dates import java_date
from tidelog.cli.perf.measures import ConsumerMeasures, ConsumerTotal
from tidelog.cli.perf.options import PerfConsumeOptions
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.commands.stopping import Stop
from tidelog.log.lake import Lake

# As Kafka's tool polls: seconds, and the most records (max.poll.records).
_POLL_S = 0.1
_POLLED = 500


class PerfConsumer:
    """One run of a member of `group`. `conf`: the consumer's own configuration; `say` prints a line."""

    def __init__(
        self,
        lake: Lake,
        asked: PerfConsumeOptions,
        group: str,
        conf: Mapping[str, str],
        stop: Stop,
        say: Callable[[str], None],
    ) -> None:
        self._clock = lake.clock
        self._asked = asked
        self._conf = {"client.id": "perf-consumer-client", **conf, "group.id": group, "lake": lake}
        self._stop = stop
        self._say = say
        self._date = partial(java_date, asked.date_format)

    def work(self) -> ConsumerTotal:
        """Consume it all. Raises what the client raises, and KafkaException for an error that a message holds."""
        asked, clock = self._asked, self._clock
        statistics = ConsumerMeasures(clock.now_ms(), asked.reporting_interval, detailed=asked.show_detailed_stats)
        consumer = Consumer(self._conf)
        try:
            consumer.subscribe(
                [asked.topic],
                on_assign=lambda _, given: statistics.assigned(_names(given), clock.now_ms()),
                on_revoke=lambda _, taken: statistics.revoked(_names(taken), clock.now_ms()),
            )
            statistics.begin(clock.now_ms())
            self._read(consumer, statistics)
            end_ms = clock.now_ms()
        finally:
            consumer.close()
        if statistics.records < asked.messages and not self._stop.asked:
            self._say(
                "WARNING: Exiting before consuming the expected number of messages: timeout"
                f" ({asked.timeout} ms) exceeded. You can use the --timeout option to increase the timeout."
            )
        return statistics.total(end_ms)

    def line(self, total: ConsumerTotal) -> str:
        """Kafka's last line of this run."""
        return total.line(self._date)

    def _read(self, consumer: Consumer, statistics: ConsumerMeasures) -> None:
        asked, clock = self._asked, self._clock
        now_ms = consumed_ms = clock.now_ms()
        while statistics.records < asked.messages and now_ms - consumed_ms <= asked.timeout and not self._stop.asked:
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
