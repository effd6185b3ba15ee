"""Simulated transactional producers: they read a topic, and copy it with the group's offsets in their transactions.

Requests are those of three generations of clients: old ones, those before KIP-890, and those since (the batch itself
adds its partition, and each transaction begins an epoch). What has no answer is asked again until it has one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from brokers_sim_consumers import RETRIABLE, Fetcher, committed
from brokers_sim_producers import OUT_OF_ORDER, UNKNOWN_PRODUCER, Batch, SimProducer
from brokers_sim_producers import RETRIABLE as SENT_AGAIN
from brokers_sim_wire import BEFORE_890, NEW, OLD, KafkaClient, UnreachableError
from brokers_sim_world import IDEMPOTENT, LoopProgram
from history import Place, Transaction
from transactions_sim_world import AUDIT, COPIERS, TIMEOUT_MS

from tidelog.broker.wire.apis import ApiKey

CONCURRENT, ABORTABLE = 51, 120
FENCED = frozenset({47, 90})
SEQUENCE = frozenset({OUT_OF_ORDER, UNKNOWN_PRODUCER})

R = TypeVar("R")


class FencedError(Exception):
    """A newer producer has the id, or a time-out has ended the epoch."""


class AbortError(Exception):
    """The transaction can only be aborted."""


class Coordinator:
    """The coordinator of a group (type 0) or of a transactional id (1), looked for when it moves."""

    def __init__(self, client: KafkaClient, key: str, key_type: int) -> None:
        self._client = client
        self._key = key
        self._type = key_type
        self._node: int | None = None

    async def ask(self, api: ApiKey, **fields: Any) -> Any:
        """Its answer. Raises `UnreachableError`, also where it is another one: whether it was executed is unknown."""
        try:
            if self._node is None:
                self._node = await self._client.coordinator(self._key, self._type)
            connection = await self._client.to(self._node)
            patience_s = self._client.rng.choice([0.7, 3.0, 3.0])
            answer = await connection.ask(api, self._client.versions[api], fields, patience_s)
        except UnreachableError:
            self._node = None
            raise
        again = codes_of(answer) & RETRIABLE
        if again:
            self._client.history.counts[f"coordinator error {min(again)}"] += 1
            self._node = None
            raise UnreachableError(f"{api.name}: {again}")
        return answer


def codes_of(answer: Any) -> set[int]:
    """The error codes in an answer, 0 left out."""
    if hasattr(answer, "error_code"):
        return {int(answer.error_code)} - {0}
    if hasattr(answer, "groups"):
        return {int(group.error_code) for group in answer.groups} - {0}
    if hasattr(answer, "results_by_topic_v3_and_below"):
        results = (p for topic in answer.results_by_topic_v3_and_below for p in topic.results_by_partition)
        return {int(p.partition_error_code) for p in results} - {0}
    return {int(p.error_code) for topic in getattr(answer, "topics", ()) for p in topic.partitions} - {0}


class TopicPart(SimProducer):
    """What transactions of one epoch send to a topic."""

    def __init__(self, program: LoopProgram, client: KafkaClient, topic: str, who: tuple[str, int, int]) -> None:
        super().__init__(program, topic, idempotent=True, client=client)
        self._transactional_id, self._producer_id, self._epoch = who
        self._refused: Exception | None = None

    def add(self, partition: int, values: list[str]) -> None:
        """A batch is to be sent."""
        self._pending[partition].append(Batch(partition, self._sequences[partition], values))
        self._sequences[partition] += len(values)

    async def deliver(self) -> None:
        """Send all batches until they are taken. Raises `FencedError`, `AbortError`: then some may not be."""
        while any(self._pending.values()):
            try:
                await self._send()
            except UnreachableError:
                await self._again()
            if self._refused is not None:
                raise self._refused
            if any(self._pending.values()) and self._rng.random() < 0.1:
                raise AbortError("it takes too long")

    def _outcome(self, told: Any, batch: Batch, failed: set[int]) -> None:
        code, place = int(told.error_code), (self._topic, batch.partition)
        self._history.note(f"{self._name} {place} {batch.sequence}: {code} {told.base_offset}")
        if code == 0:
            self._history.bounds[batch.values[0]] = place, told.base_offset
            self._pending[batch.partition].remove(batch)
            return
        self._history.counts[f"part error {code}"] += 1
        if code in SEQUENCE and batch.partition not in failed:
            self._history.violate(f"{self._name}: {place}: sequence {batch.sequence} is out of order")
        failed.add(batch.partition)
        if code in FENCED:
            self._refused = FencedError(self._name)
        elif code == ABORTABLE:
            self._refused = self._refused or AbortError("the broker says so")
        elif code not in SENT_AGAIN:
            self._history.violate(f"{self._name}: {place} is refused with {code}: {getattr(told, 'error_message', '')}")


class SimCopier:
    """A producer with a transactional id. `is_last`: it stays until everything is copied."""

    def __init__(self, program: LoopProgram, transactional_id: str, *, is_last: bool) -> None:
        self._program = program
        self._client = KafkaClient(program, (NEW, NEW, BEFORE_890, OLD))
        self._world = self._client.world
        self._rng = program.rng
        self._history = self._client.history
        self._name = program.process.name
        self._id = transactional_id
        self._is_last = is_last
        self._output, self._group = next((output, group) for one, output, group in COPIERS if one == transactional_id)
        self._transactions = Coordinator(self._client, transactional_id, 1)
        self._offsets = Coordinator(self._client, self._group, 0)
        self._fetcher = Fetcher(self._client)
        self._places = [place for place in self._world.places if place[0] == IDEMPOTENT]
        # KIP-890: batches add their partitions.
        self._adds = self._client.versions[ApiKey.PRODUCE] < 12
        self._producer_id = self._epoch = -1
        self._parts: dict[str, TopicPart] = {}
        self._numbers = 0
        # Whether a request may still be on its way: in the same epoch it would count for the next transaction.
        self._owes_epoch = False

    async def run(self) -> None:
        """Copy until everything is copied, or until a successor has taken over."""
        while not self._is_done():
            try:
                await self._begin(expects=False)
                await self._rewind()
                while not self._is_done():
                    await self._copy_some()
            except FencedError:
                self._history.counts["fenced"] += 1
                self._fetcher.assign(self._name, self._group, {})
                if not self._is_last and (self._world.settling or self._rng.random() < 0.5):
                    return
                await asyncio.sleep(self._rng.uniform(0.1, 4.0))

    def _is_done(self) -> bool:
        ends, positions = self._world.copied_ends, self._fetcher.positions
        return bool(ends) and all(positions.get(place, -1) >= end for place, end in ends.items())

    # --- asking --------------------------------------------------------------------------------------------

    async def _insist(self, call: Callable[[], Awaitable[R]]) -> R:
        """Repeat a call until it is answered."""
        while True:
            try:
                return await call()
            except UnreachableError:
                self._owes_epoch = True
                await self._client.back_off()

    async def _ask(self, coordinator: Coordinator, api: ApiKey, **fields: Any) -> Any:
        """An answer without an error. Raises `FencedError`, `AbortError`."""
        named = {"transactional_id": self._id, "producer_id": self._producer_id, "producer_epoch": self._epoch}
        while True:
            answer = await self._insist(lambda: coordinator.ask(api, **named | fields))
            codes = codes_of(answer)
            if not codes:
                return answer
            self._history.counts[f"{api.name} error {min(codes)}"] += 1
            if codes & FENCED:
                raise FencedError(self._name)
            if ABORTABLE in codes:
                raise AbortError(f"{api.name} says so")
            if codes != {CONCURRENT}:
                self._history.violate(f"{self._name}: {api.name} is refused with {codes}")
                raise FencedError(self._name)
            await self._client.back_off()

    async def _begin(self, *, expects: bool) -> None:
        """Begin an epoch, as the producer that this one was, where it `expects` to be that still (KIP-360)."""
        expects = expects and self._client.versions[ApiKey.INIT_PRODUCER_ID] >= 3
        expected = {} if expects else {"producer_id": -1, "producer_epoch": -1}
        answer = await self._ask(
            self._transactions, ApiKey.INIT_PRODUCER_ID, transaction_timeout=TIMEOUT_MS, **expected
        )
        self._is(answer)
        self._history.began(self._id, self._epoch)

    def _is(self, answer: Any) -> None:
        """What the producer is from now on."""
        self._producer_id, self._epoch = int(answer.producer_id), int(answer.producer_epoch)
        self._parts.clear()
        self._owes_epoch = False

    async def _rewind(self) -> None:
        """Go to where the group is."""
        offsets = await self._insist(lambda: committed(self._client, self._offsets.ask, self._group, self._places))
        self._fetcher.assign(self._name, self._group, {place: max(0, offset) for place, offset in offsets.items()})

    # --- one transaction -----------------------------------------------------------------------------------

    async def _copy_some(self) -> None:
        try:
            found = await self._fetcher.fetch(self._rng.choice([0, 200, 500]))
        except UnreachableError:
            await self._client.back_off()
            await self._client.insist(self._client.refresh)
            return
        if not found:
            return
        one = Transaction(f"{self._name}#{self._world.number()}")
        self._history.seen.transactions[one.name] = one
        commits = self._rng.random() < 0.85
        try:
            await self._fill(one, found)
        except AbortError:
            commits, self._owes_epoch = False, True
        await self._end(one, commits=commits)
        if self._owes_epoch:
            await self._begin(expects=True)
        if not commits:
            await self._rewind()

    async def _fill(self, one: Transaction, found: list[tuple[Place, int, str]]) -> None:
        """Records and offsets, in as many requests as it takes."""
        batches = list(self._batches(one, found))
        if self._adds:
            await self._add_partitions({(topic, partition) for topic, partition, _ in batches})
        who = self._id, self._producer_id, self._epoch
        for topic in dict.fromkeys(topic for topic, _, _ in batches):
            part = self._parts.setdefault(topic, TopicPart(self._program, self._client, topic, who))
            for _, partition, values in (batch for batch in batches if batch[0] == topic):
                part.add(partition, values)
            await part.deliver()
            if self._rng.random() < 0.08:
                await asyncio.sleep(self._rng.uniform(0.2, 1.5) * TIMEOUT_MS / 1000)
        await self._send_offsets({place for place, _, _ in found})

    def _batches(self, one: Transaction, found: list[tuple[Place, int, str]]) -> Iterable[tuple[str, int, list[str]]]:
        copies = [f"<{topic}/{partition}/{offset}" for (topic, partition), offset, _ in found]
        while copies:
            size = self._rng.choice([1, 3, 8])
            yield self._batch(one, self._output, copies[:size])
            copies = copies[size:]
        yield self._batch(one, AUDIT, [""])

    def _batch(self, one: Transaction, topic: str, ends: list[str]) -> tuple[str, int, list[str]]:
        values = []
        for end in ends:
            self._numbers += 1
            values.append(f"{one.name}:{self._numbers}{end}")
            self._history.sent(topic, self._name, self._numbers, values[-1])
        one.values |= dict.fromkeys(values, topic)
        return topic, self._rng.randrange(self._world.plan.partitions), values

    async def _add_partitions(self, places: set[Place]) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(places):
            by_topic.setdefault(topic, []).append(partition)
        await self._ask(
            self._transactions,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[{"name": topic, "partitions": numbers} for topic, numbers in by_topic.items()],
        )

    async def _send_offsets(self, places: set[Place]) -> None:
        if self._adds:
            await self._ask(self._transactions, ApiKey.ADD_OFFSETS_TO_TXN, group_id=self._group)
        behind = [
            {"partition_index": p, "committed_offset": self._fetcher.positions[topic, p], "committed_metadata": ""}
            for topic, p in sorted(places)
        ]
        topics = [{"name": IDEMPOTENT, "partitions": behind}]
        await self._ask(self._offsets, ApiKey.TXN_OFFSET_COMMIT, group_id=self._group, topics=topics)

    async def _end(self, one: Transaction, *, commits: bool) -> None:
        """End the transaction. Raises `FencedError`: then it is aborted, unless an answer was lost before."""
        if commits:
            self._history.asks_to_commit(one.name, self._id, self._epoch)
        was_in_doubt, self._owes_epoch = self._owes_epoch, False
        try:
            answer = await self._ask(self._transactions, ApiKey.END_TXN, committed=commits)
        except FencedError:
            if not (commits and self._owes_epoch):
                self._history.told(one.name, "aborted")
            raise
        self._owes_epoch |= was_in_doubt
        self._history.told(one.name, "committed" if commits else "aborted")
        if hasattr(answer, "producer_epoch"):
            self._is(answer)


def copier(transactional_id: str, *, is_last: bool = False) -> Callable[[LoopProgram], Awaitable[None]]:
    """The role of copying with an id; all of them read on where the id's group is."""

    async def copy(program: LoopProgram) -> None:
        await SimCopier(program, transactional_id, is_last=is_last).run()

    return copy
