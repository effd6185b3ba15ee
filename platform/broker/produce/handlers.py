"""Produce and InitProducerId.

An idempotent producer's id costs no entry: it is drawn by chance from 63 bits.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from tidelog.broker.base.calls import Call, Encoded, Handlers, Reply
from tidelog.broker.base.cluster_view import rack_of
from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import Linger
from tidelog.broker.produce.request import ProducedBatch, ProduceRequest, TopicRef, refuse
from tidelog.broker.produce.topic_pools import TopicPools
from tidelog.broker.records.aiokafka_records import AiokafkaRecords
from tidelog.broker.records.batches import require_one, split
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import (
    COORDINATOR_NOT_AVAILABLE,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    UnacknowledgedError,
)
from tidelog.broker.wire.produce_answer import ProducedPartition, produce_answer
from tidelog.broker.wire.refused_produce import partitions_of
from tidelog.log.base.errors import (
    InvalidTransactionStateError,
    TidelogError,
    UnknownPartitionError,
)
from tidelog.log.state.producer_memory import new_producer_id
from tidelog.log.storage.port import Distant

# Files cost more where each is a request over a network.
_DISTANT_LINGER: Final = Linger(linger_s=0.05)
_TOPIC_IDS_SINCE: Final = 13
_ACKS: Final = (0, 1, -1)


class InvalidRequiredAcksError(TidelogError, kafka_code=21):
    """Acks other than 0, 1 and -1 (all)."""


class ProduceHandler:
    """Answers Produce: every batch goes to its topic's pool, and the answer waits for all of them."""

    def __init__(self, context: Context, pools: TopicPools) -> None:
        self._context = context
        self._pools = pools

    async def __call__(self, call: Call) -> Reply:
        """Answer one request; none where it asks for none. Raises `UnacknowledgedError` when such a one fails."""
        if call.version not in OFFERED[ApiKey.PRODUCE]:
            return refused(call.version, call.body)
        acks, request = call.body.acks, ProduceRequest(rack_of(call.client_id))
        for one in call.body.topic_data:
            ref: TopicRef = one.name if call.version < _TOPIC_IDS_SINCE else one.topic_id or UUID(int=0)
            outcomes = [ProducedPartition(partition.index) for partition in one.partition_data]
            request.topics.append((ref, outcomes))
            for outcome, partition in zip(outcomes, one.partition_data, strict=True):
                try:
                    unit = self._unit(call, request, ref, outcome, partition.records)
                except TidelogError as e:
                    refuse(outcome, e, ref)
                    continue
                request.begin()
                self._pools.add(unit, call.received_s)
        request.end()
        await request.done
        if acks == 0:
            if request.error is not None:
                raise UnacknowledgedError(f"Records with acks=0 were not appended: {request.error.error_message}")
            return None
        if request.error is None:
            return Encoded([produce_answer(call.version, request.topics)])
        leaders = {one.leader[0] for _, outcomes in request.topics for one in outcomes if one.leader is not None}
        endpoints = self._context.cluster().endpoints(leaders, call.peer.listener)
        return Encoded([produce_answer(call.version, request.topics, endpoints)])

    def _unit(
        self, call: Call, request: ProduceRequest, ref: TopicRef, outcome: ProducedPartition, records: Any
    ) -> ProducedBatch:
        """One partition's batch; raises why it can't be taken."""
        body = call.body
        if body.acks not in _ACKS:
            raise InvalidRequiredAcksError(f"acks is 0, 1 or -1 (all), not {body.acks}.")
        if outcome.index < 0:
            raise UnknownPartitionError(f"Partitions are numbered from 0 on, so there is none {outcome.index}.")
        header, batch = require_one(split(records), call.version)
        if header.is_transactional or body.transactional_id is not None:
            raise InvalidTransactionStateError("This broker takes no records of transactions.")
        timeout_s = body.timeout / timedelta(seconds=1)
        return ProducedBatch(request, ref, outcome, header, batch, call.received_s + timeout_s, body.acks)


def refused(version: int, payload: memoryview) -> Reply:
    """The answer to a version that is shown and not offered, in that version's format."""
    acks, topics = partitions_of(payload)
    if acks == 0:
        raise UnacknowledgedError(f"Produce of version {version} is not offered.")
    code = UNSUPPORTED_VERSION
    told: Sequence[tuple[str, list[ProducedPartition]]] = [
        (name, [ProducedPartition(partition, code) for partition in partitions]) for name, partitions in topics
    ]
    return Encoded([produce_answer(version, told)])


class ProducerIds:
    """Answers InitProducerId of producers without a transactional id.

    The coordinator of transactions answers the others; without one they get the error of a Kafka that has none yet.
    """

    def __init__(self, context: Context) -> None:
        self._ids = context.lake.ids

    async def __call__(self, call: Call) -> Reply:
        """Answer one request."""
        transactional_id = call.body.transactional_id
        if transactional_id is None:
            return _initialized(0, new_producer_id(self._ids), 0)
        return _initialized(COORDINATOR_NOT_AVAILABLE if transactional_id else INVALID_REQUEST)


def _initialized(error: int, producer_id: int = -1, epoch: int = -1) -> Reply:
    """The answer of InitProducerId."""
    return {"error_code": error, "producer_id": producer_id, "producer_epoch": epoch}


def handlers(context: Context) -> Handlers:
    """What this part of a broker answers."""
    linger = context.settings.linger
    if linger is None:
        linger = _DISTANT_LINGER if isinstance(context.lake.storage, Distant) else Linger()
    return {
        ApiKey.PRODUCE: ProduceHandler(context, TopicPools(context, AiokafkaRecords(), linger)),
        ApiKey.INIT_PRODUCER_ID: ProducerIds(context),
    }
