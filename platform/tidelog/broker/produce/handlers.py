"""Produce: plain batches become entries, those of transactions become parts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final

from tidelog.broker.base.calls import Call, Encoded, Handlers, Peer, Reply
from tidelog.broker.base.cluster_view import rack_of
from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import Linger
from tidelog.broker.produce.entry import EntryWriter
from tidelog.broker.produce.hand_over import HandOvers
from tidelog.broker.produce.linger import FileBudget
from tidelog.broker.produce.parts import PartWriter
from tidelog.broker.produce.reading import UnitReader
from tidelog.broker.produce.request import ProducedBatch, ProduceRequest, TopicRef, refuse
from tidelog.broker.produce.topic_pools import TopicPools, open_topic
from tidelog.broker.records.batches import HEADER, MAGIC, ZSTD, BatchHeader, header_of, require_one, split
from tidelog.broker.records.codec import record_codec
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.endpoints import Endpoint
from tidelog.broker.wire.errors import (
    UNSUPPORTED_VERSION,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnacknowledgedError,
)
from tidelog.broker.wire.plain_produce import NATIVE, ProduceBody, plain_produce, read_produce, topic_id
from tidelog.broker.wire.produce_answer import ProducedPartition, produce_answer, throttle_at
from tidelog.broker.wire.refused_produce import partitions_of
from tidelog.log.base.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    ProducerFencedError,
    TidelogError,
    TransactionAbortedError,
    UnknownPartitionError,
)
from tidelog.log.base.kafka_codes import KafkaCode
from tidelog.log.storage.port import Distant
from tidelog.operations.rights import Right
from tidelog.transactions.transaction_log import TransactionLog

# Files and entries cost more where each is a request over a network, whether the processor has time or not.
_DISTANT_LINGER: Final = Linger(linger_s=0.05, spare_file_rate=Linger().file_rate, overlap_s=float("inf"))
# From this version on the batch itself adds its partition to its transaction; from the other on clients know the error
# that asks them to abort (KIP-890).
_BEGINS_SINCE: Final = 12
_ABORTABLE_SINCE: Final = 11
_ACKS: Final = (0, 1, -1)
_rack_of = lru_cache(256)(rack_of)


class InvalidRequiredAcksError(TidelogError, kafka_code=KafkaCode.INVALID_REQUIRED_ACKS):
    """Acks other than 0, 1 and -1 (all)."""


class NoTransactionalIdError(TidelogError, kafka_code=KafkaCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """Records of a transaction, in a request that names none."""


class ProduceHandler:
    """Answers Produce: every batch goes to its topic's pool, and the answer waits for all of them.

    `parts`: the pools of what is in transactions.
    """

    def __init__(self, context: Context, pools: TopicPools, parts: TopicPools) -> None:
        self._context = context
        self._pools = pools
        self._parts = parts
        self._singles = None if NATIVE is None else NATIVE.Reader(OFFERED[ApiKey.PRODUCE].last, topic_id, rack_of)

    async def __call__(self, call: Call) -> Reply:
        """Answer one request; none where it asks for none. Raises `UnacknowledgedError` when such a one fails."""
        if call.version not in OFFERED[ApiKey.PRODUCE]:
            return refused(call.version, call.body)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not done.done():
                done.set_result(None)

        request = self._begun(call, read_produce(call.version, call.body), end)
        await done
        if call.body.transactional_id is not None and request.error is not None:
            for _, outcomes in request.topics:
                for outcome in outcomes:
                    outcome.error_code = _of_transactions(outcome.error_code, call.version)
        return self._reply(call, request)

    def begin(self, call: Call, done: Callable[[], object]) -> Callable[[], Reply] | None:
        """As `ShortWay.begin`: for plain requests."""
        body = plain_produce(call.version, call.body)
        return None if body is None else partial(self._reply, call, self._begun(call, body, done))

    def single(
        self, data: memoryview, count: int, received_s: float, peer: Peer, ended: Callable[[Any], object]
    ) -> Any | None:
        """As `SingleWay.single`: for a batch that is alone in its request."""
        if self._singles is None or not self._context.access.is_open:
            return None
        request = self._singles.read(data, count, received_s, peer, ended)
        if request is not None:
            self._pools.add(request.only, received_s)
        return request

    def refused_single(self, request: Any) -> Encoded:
        """As `SingleWay.refused_single`."""
        outcome = ProducedPartition(request.partition)
        refuse(outcome, request.refusal, request.topic)
        produced = ProduceRequest(request.acks, None, None, lambda: None)
        produced.topics.append((request.topic, [outcome]))
        call = Call(ApiKey.PRODUCE, request.version, request.client_id, None, request.peer, request.came_s)
        reply = self._reply(call, produced)
        assert isinstance(reply, Encoded)
        return reply

    def _begun(self, call: Call, body: ProduceBody, done: Callable[[], object]) -> ProduceRequest:
        """The request, whose batches are on their way; `done` is called when all have their outcomes."""
        request = ProduceRequest(body.acks, _rack_of(call.client_id), self._writes(call), done)
        deadline_s = call.received_s + body.timeout_ms / 1000
        for ref, partitions in body.topics:
            outcomes: list[ProducedPartition] = []
            request.topics.append((ref, outcomes))
            for partition, records in partitions:
                outcome = ProducedPartition(partition)
                outcomes.append(outcome)
                try:
                    unit = self._unit(call, body, request, ref, outcome, records, deadline_s)
                except TidelogError as e:
                    refuse(outcome, e, ref)
                    continue
                request.begin()
                pools = self._parts if unit.transactional_id else self._pools
                pools.add(unit, call.received_s)
        request.end()
        return request

    def _reply(self, call: Call, request: ProduceRequest) -> Reply:
        """The answer to a request whose partitions have their outcomes."""
        error = request.error
        if request.acks == 0:
            if error is not None:
                raise UnacknowledgedError(f"Records with acks=0 were not appended: {error.error_message}")
            return None
        if error is None:
            taken = sum([len(outcomes) for _, outcomes in request.topics])
            return _encoded(call.version, request.topics, {0: taken})
        errors = Counter(one.error_code for _, outcomes in request.topics for one in outcomes)
        leaders = {one.leader[0] for _, outcomes in request.topics for one in outcomes if one.leader is not None}
        endpoints = self._context.cluster().endpoints(leaders, call.peer.listener)
        return _encoded(call.version, request.topics, errors, endpoints)

    def _writes(self, call: Call) -> Callable[[str], bool] | None:
        """Whether the client may write to a topic; each is asked about once. None: to all."""
        access = self._context.access
        return None if access.is_open else cache(lambda topic: access.allows(call, Right.WRITE_RECORDS, topic=topic))

    def _unit(
        self,
        call: Call,
        body: ProduceBody,
        request: ProduceRequest,
        ref: TopicRef,
        outcome: ProducedPartition,
        records: bytes | memoryview | None,
        deadline_s: float,
    ) -> ProducedBatch:
        """One partition's batch; raises why it can't be taken."""
        if body.acks not in _ACKS:
            raise InvalidRequiredAcksError(f"acks is 0, 1 or -1 (all), not {body.acks}.")
        if outcome.index < 0:
            raise UnknownPartitionError(f"Partitions are numbered from 0 on, so there is none {outcome.index}.")
        if isinstance(ref, str) and request.writes is not None and not request.writes(ref):
            raise TopicAuthorizationError(f"{call.peer.principal} may not write to the topic '{ref}'.")
        header, batch = _one_batch(records, call.version)
        if not header.is_transactional:
            return ProducedBatch(request, ref, outcome, header, batch, deadline_s)
        if not body.transactional_id:
            raise NoTransactionalIdError("Records of a transaction come in a request that names no transactional id.")
        if not self._context.access.allows(call, Right.WRITE_RECORDS, transactional_id=body.transactional_id):
            raise TransactionalIdAuthorizationError("Its principal may not use this transactional id.")
        begins = call.version >= _BEGINS_SINCE
        name = body.transactional_id
        return ProducedBatch(request, ref, outcome, header, batch, deadline_s, name, begins)


def _one_batch(records: bytes | memoryview | None, version: int) -> tuple[BatchHeader, memoryview]:
    """The one batch of a partition, as `require_one` has it: at once where the bytes are one whole batch."""
    if records is not None and len(records) >= HEADER.size:
        header = header_of(records)
        if header.magic == MAGIC and header.size == len(records) and header.codec != ZSTD:
            return header, memoryview(records)
    return require_one(split(records), version)


def _encoded(
    version: int,
    topics: Sequence[tuple[TopicRef, Sequence[ProducedPartition]]],
    errors: Mapping[int, int],
    endpoints: Sequence[Endpoint] = (),
) -> Encoded:
    answer = produce_answer(version, topics, endpoints)
    return Encoded([answer], errors, throttle_at(version, answer, endpoints))


def refused(version: int, payload: memoryview) -> Reply:
    """The answer to a version that is shown and not offered, in that version's format."""
    acks, topics = partitions_of(payload)
    if acks == 0:
        raise UnacknowledgedError(f"Produce of version {version} is not offered.")
    code = UNSUPPORTED_VERSION
    told: Sequence[tuple[str, list[ProducedPartition]]] = [
        (name, [ProducedPartition(partition, code) for partition in partitions]) for name, partitions in topics
    ]
    return Encoded([produce_answer(version, told)], {code: sum(len(partitions) for _, partitions in topics)})


def _of_transactions(code: int, version: int) -> int:
    """The code of a refused transactional batch, as clients of Produce know it.

    Source: `ReplicaManager.handleProduceAppend` (kafka 4.2).
    """
    if code == ProducerFencedError.kafka_code:
        return InvalidProducerEpochError.kafka_code
    if code == InvalidTransactionStateError.kafka_code and version >= _ABORTABLE_SINCE:
        return TransactionAbortedError.kafka_code
    return code


def handlers(context: Context) -> Handlers:
    """What this part of a broker answers."""
    linger = context.settings.linger
    if linger is None:
        linger = _DISTANT_LINGER if isinstance(context.lake.storage, Distant) else Linger()
    lake, transactions = context.lake, TransactionLog(context.lake)
    reader = UnitReader(record_codec(), context.cluster, context.settings.default_replication_factor)

    hand_overs = HandOvers(context, linger, partial(open_topic, lake))

    def new_entries(name: str, topic_id: str) -> EntryWriter:
        committed = hand_overs.topic(name, topic_id)
        return EntryWriter(partial(open_topic, lake, name, topic_id), lake, reader, committed, committed.budget)

    def new_parts(name: str, topic_id: str) -> PartWriter:
        budget = FileBudget(linger, lake.clock.elapsed_s(), context.load)
        return PartWriter(partial(open_topic, lake, name, topic_id), lake, reader, transactions, budget)

    entries, parts = (TopicPools(context, new, linger, hand_overs.forget) for new in (new_entries, new_parts))
    return {ApiKey.PRODUCE: ProduceHandler(context, entries, parts), ApiKey.HAND_OVER: hand_overs}
