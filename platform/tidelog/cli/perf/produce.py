"""`tidelog perf produce` at work: records as fast as they go, each timed from `produce` to its acknowledgement."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tidelog.cli.perf.measures import ProducerMeasures, ProducerTotal
from tidelog.cli.perf.options import PerfProduceOptions
from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError
from tidelog.clients.values.message import Message
from tidelog.log.base.clock import Clock
from tidelog.log.lake import Lake
from tidelog.server.process.stopping import Stop

_BLOCK_BYTES = 1 << 20
_LETTERS = bytes(65 + byte % 26 for byte in range(256))
# Seconds to wait for a full queue before a check whether the run shall end.
_FULL_S = 0.1


@dataclass(frozen=True, slots=True)
class ProduceRun:
    """What to produce: values, and the producer's own configuration.

    `transaction_ms`: how long each transaction is open; None without transactions.
    """

    asked: PerfProduceOptions
    values: Iterator[bytes]
    transaction_ms: int | None
    conf: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PerfResult:
    """The result of a run, how many records failed, and the first error."""

    total: ProducerTotal
    steady: ProducerTotal | None
    failed: int
    error: KafkaError | None


def letters(size: int) -> Iterator[bytes]:
    """Values of `size` random letters, as Kafka's tool sends them; the same in each run."""
    at_once = max(1, _BLOCK_BYTES // size)
    for block in _blocks(at_once * size):
        text = block.translate(_LETTERS)
        for start in range(0, len(text), size):
            yield text[start : start + size]


def picked(values: list[bytes]) -> Iterator[bytes]:
    """Values out of a list, at random, in the same order in each run."""
    for block in _blocks(1 << 16):
        for start in range(0, len(block), 4):
            yield values[int.from_bytes(block[start : start + 4]) % len(values)]


def counting() -> Iterator[bytes]:
    """The texts of 0, 1, 2 and so on."""
    number = 0
    while True:
        yield b"%d" % number
        number += 1


def _blocks(size: int) -> Iterator[bytes]:
    """Blocks of bytes that look random."""
    number = 0
    while True:
        yield hashlib.shake_128(b"%d" % number).digest(size)
        number += 1


class PerfProducer:
    """One run. `say` prints a line."""

    def __init__(self, lake: Lake, run: ProduceRun, stop: Stop, say: Callable[[str], None]) -> None:
        self._lake = lake
        self._clock: Clock = lake.clock
        self._run = run
        self._stop = stop
        self._say = say
        self._statistics = ProducerMeasures(run.asked.num_records, self._clock.now_ms())
        self._steady: ProducerMeasures | None = None
        self._acknowledged = self._failed = 0
        self._error: KafkaError | None = None

    def work(self) -> PerfResult:
        """Produce it all, and wait for the last acknowledgement. Raises what the client raises."""
        run = self._run
        producer = Producer(
            {"client.id": "perf-producer-client", **run.conf, "lake": self._lake, "on_delivery": self._on}
        )
        with producer:
            if run.transaction_ms is not None:
                producer.init_transactions()
            self._statistics = ProducerMeasures(self._run.asked.num_records, self._clock.now_ms())
            self._send_all(producer)
            producer.flush()
        now_ms = self._clock.now_ms()
        steady = None if self._steady is None else self._steady.total(now_ms)
        return PerfResult(self._statistics.total(now_ms), steady, self._failed, self._error)

    def _send_all(self, producer: Producer) -> None:
        run, clock, transactional = self._run, self._clock, self._run.transaction_ms is not None
        began_s, opened_ms, served_ms, in_transaction = clock.elapsed_s(), 0, 0, False
        for sent in range(1, run.asked.num_records + 1):
            now_ms = clock.now_ms()
            if transactional and not in_transaction:
                producer.begin_transaction()
                opened_ms, in_transaction = now_ms, True
            self._send(producer, next(run.values))
            if transactional and now_ms - opened_ms >= (run.transaction_ms or 0):
                producer.commit_transaction()
                in_transaction = False
            if now_ms != served_ms:
                producer.poll(0)
                served_ms = now_ms
            if run.asked.throughput > 0:
                self._throttle(producer, began_s + sent / run.asked.throughput)
            if self._stop.asked:
                break
        if in_transaction:
            producer.commit_transaction()

    def _send(self, producer: Producer, value: bytes) -> None:
        while not self._stop.asked:
            try:
                producer.produce(self._run.asked.topic, value)
            except BufferError:
                producer.poll(_FULL_S)
            else:
                return

    def _throttle(self, producer: Producer, until_s: float) -> None:
        while not self._stop.asked and (left_s := until_s - self._clock.elapsed_s()) > 0:
            producer.poll(min(left_s, _FULL_S))

    def _on(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._error = self._error or error
            return
        now_ms, asked = self._clock.now_ms(), self._run.asked
        latency_ms, size = int(1000 * (message.latency() or 0)), len(message)
        if asked.warmup_records and self._acknowledged == asked.warmup_records:
            self._steady = ProducerMeasures(asked.num_records - asked.warmup_records, now_ms, steady=True)
            self._statistics.mute()
        self._acknowledged += 1
        lines = self._statistics.record(latency_ms, size, now_ms)
        if self._steady is not None:
            lines += self._steady.record(latency_ms, size, now_ms)
        for line in lines:
            self._say(line)
