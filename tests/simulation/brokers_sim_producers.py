"""Simulated producers: idempotent ones that send a batch until it is there, and plain ones that try once."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from brokers_sim_wire import KafkaClient, UnreachableError
from brokers_sim_world import IDEMPOTENT, PLAIN, LoopProgram
from sim_program import EPOCH_MS

from tidelog.broker.wire.apis import ApiKey

DUPLICATE_SEQUENCE, OUT_OF_ORDER, UNKNOWN_PRODUCER = 46, 45, 59
# Unknown topic, leader not available, not leader, timed out, not enough replicas, sequence (behind a failed batch),
# storage, unknown producer (behind its first batch, which failed), unknown topic id.
RETRIABLE = frozenset({3, 5, 6, 7, 8, 15, 19, 20, OUT_OF_ORDER, 56, UNKNOWN_PRODUCER, 100})


@dataclass(slots=True)
class Batch:
    """Records of one partition. `sequence`: of the first one, -1 for none."""

    partition: int
    sequence: int
    values: list[str]


class SimProducer:
    """A producer of one topic."""

    def __init__(
        self, program: LoopProgram, topic: str, *, idempotent: bool, client: KafkaClient | None = None
    ) -> None:
        self._client = client or KafkaClient(program)
        self._world = self._client.world
        self._rng = program.rng
        self._history = self._client.history
        self._name = program.process.name
        self._topic = topic
        self._idempotent = idempotent
        self._acks = -1 if idempotent else self._rng.choice([-1, 1])
        self._codec = self._rng.choice([0, 0, 3, 4])
        self._window = self._rng.choice([1, 2, 5])
        self._producer_id, self._epoch = -1, 0 if idempotent else -1
        self._transactional_id: str | None = None
        self._numbers = 0
        self._sequences = dict.fromkeys(range(self._world.plan.partitions), 0)
        self._pending: dict[int, deque[Batch]] = {p: deque() for p in self._sequences}

    async def run(self) -> None:
        """Produce until the run comes to its end and all is there."""
        if self._idempotent:
            await self._client.insist(self._begin)
        while True:
            if not self._world.settling:
                self._more()
                await asyncio.sleep(min(self._rng.expovariate(1 / self._world.plan.pause_s), 4.0))
            elif not any(self._pending.values()):
                return
            if any(self._pending.values()):
                try:
                    await self._send()
                except UnreachableError:
                    await self._again()

    async def _begin(self) -> None:
        connection = await self._client.at(self._rng.choice(self._world.bootstrap()))
        fields = {"transactional_id": None, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
        version = self._client.versions[ApiKey.INIT_PRODUCER_ID]
        answer = await connection.ask(ApiKey.INIT_PRODUCER_ID, version, fields)
        if answer.error_code:
            raise UnreachableError(str(answer.error_code))
        self._producer_id = answer.producer_id

    def _more(self) -> None:
        """What the application sends now."""
        for partition, pending in self._pending.items():
            for _ in range(self._rng.choice([0, 1, 1, 3]) if len(pending) < 20 else 0):
                values = []
                for _ in range(self._rng.choice([1, 1, 5])):
                    self._numbers += 1
                    values.append(f"{self._name}#{self._numbers}")
                    self._history.sent(self._topic, self._name, self._numbers, values[-1])
                pending.append(Batch(partition, self._sequences[partition] if self._idempotent else -1, values))
                self._sequences[partition] += len(values)

    async def _send(self) -> None:
        """Send some requests at once to a leader, and take their answers in order."""
        leaders = self._client.leaders
        chosen = self._rng.choice([p for p, pending in self._pending.items() if pending])
        node, connection = await self._client.leader(self._topic, chosen)
        led = {p: of for p, of in self._pending.items() if leaders.get((self._topic, p), (None, 0))[0] == node}
        requests = [
            {p: pending[at] for p, pending in led.items() if len(pending) > at}
            for at in range(min(self._window, max(map(len, led.values()))))
        ]
        tasks = [self._request(connection, batches) for batches in requests]
        failed: set[int] = set()
        lost = False
        for batches, task in zip(requests, tasks, strict=True):
            try:
                answer = await task
            except UnreachableError:
                failed |= set(batches)
                lost = True
                continue
            for one in answer.responses[0].partition_responses:
                self._outcome(one, batches[one.index], failed)
        if not self._idempotent:
            for pending in led.values():
                pending.clear()
        if failed:
            if lost:
                self._history.counts["produce unanswered"] += 1
            await self._again()

    def _request(self, connection: Any, batches: dict[int, Batch]) -> "asyncio.Task[Any]":
        by_id = self._client.by_ids(ApiKey.PRODUCE)
        fields = {
            "transactional_id": self._transactional_id,
            "acks": self._acks,
            "timeout": 5_000,
            "topic_data": [
                {
                    "name": self._topic,
                    "topic_id": self._client.ids.get(self._topic) if by_id else None,
                    "partition_data": [{"index": p, "records": self._encoded(b)} for p, b in batches.items()],
                }
            ],
        }
        task: asyncio.Task[Any] = connection.send(
            ApiKey.PRODUCE, self._client.versions[ApiKey.PRODUCE], fields, self._rng.choice([1.0, 3.0, 6.0])
        )
        return task

    def _encoded(self, batch: Batch) -> bytes:
        in_transaction = int(self._transactional_id is not None)
        builder = DefaultRecordBatchBuilder(
            2, self._codec, in_transaction, self._producer_id, self._epoch, batch.sequence, 1 << 20
        )
        now_ms = EPOCH_MS + int(self._client.now_s() * 1000)
        for at, value in enumerate(batch.values):
            builder.append(at, now_ms, None, value.encode(), [])
        return bytes(builder.build())

    def _outcome(self, told: Any, batch: Batch, failed: set[int]) -> None:
        code, place = int(told.error_code), (self._topic, batch.partition)
        self._history.note(f"{self._name} {place} {batch.sequence}: {code} {told.base_offset}")
        if code in (0, DUPLICATE_SEQUENCE):
            self._history.acked(place, told.base_offset if code == 0 else -1, batch.values)
            if self._idempotent:
                self._pending[batch.partition].remove(batch)
            return
        self._history.counts[f"produce error {code}"] += 1
        if code not in RETRIABLE:
            self._history.violate(f"{self._name}: {place} is refused with {code}: {getattr(told, 'error_message', '')}")
        if code in (OUT_OF_ORDER, UNKNOWN_PRODUCER) and batch.partition not in failed:
            self._history.violate(f"{self._name}: {place}: sequence {batch.sequence} is out of order")
        failed.add(batch.partition)

    async def _again(self) -> None:
        await self._client.back_off()
        try:
            await self._client.refresh()
        except UnreachableError:
            return


async def produce(program: LoopProgram) -> None:
    """An idempotent producer."""
    await SimProducer(program, IDEMPOTENT, idempotent=True).run()


async def produce_plainly(program: LoopProgram) -> None:
    """A producer that never repeats anything."""
    await SimProducer(program, PLAIN, idempotent=False).run()
