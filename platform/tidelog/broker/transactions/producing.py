"""What transactional producers ask: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn.

Source: `KafkaApis`, `TransactionCoordinator` (kafka 4.2), KIP-98, KIP-360, KIP-890.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.transactions.coordinator import TransactionCoordinator
from tidelog.broker.transactions.errors import (
    OPERATION_NOT_ATTEMPTED,
    TransactionalIdDeniedError,
    code_of,
)
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, InvalidRequestError
from tidelog.groups.rules.members import check_group_id
from tidelog.log.base.errors import TidelogError
from tidelog.log.state.producer_memory import new_producer_id
from tidelog.transactions.open_parts import Place
from tidelog.transactions.part_rules import ProducerIdentity

# From these versions on clients know PRODUCER_FENCED (KIP-588).
_INIT_FENCED: Final = 4
_FENCED: Final = 2
# From these versions on: AddPartitionsToTxn has several transactions; EndTxn begins the next epoch (KIP-890).
_BATCHED: Final = 4
_RAISES_EPOCH: Final = 5


class ProducingHandlers:
    """What transactional producers ask of their coordinator."""

    def __init__(self, context: Context, coordinator: TransactionCoordinator) -> None:
        self._context = context
        self._coordinator = coordinator

    def handlers(self) -> Handlers:
        """By API."""
        return {
            ApiKey.INIT_PRODUCER_ID: self.init,
            ApiKey.ADD_PARTITIONS_TO_TXN: self.add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: self.add_offsets,
            ApiKey.END_TXN: self.end,
        }

    # --- beginning -----------------------------------------------------------------------------------------

    async def init(self, call: Call) -> Reply:
        """InitProducerId. The id of a producer that is only idempotent is drawn by chance, and costs no entry."""
        body = call.body
        if body.transactional_id is None:
            return _identity(0, new_producer_id(self._context.lake.ids), 0)
        try:
            self._coordinator.require()
            expected = _expected(body)
            timeout_ms = body.transaction_timeout // timedelta(milliseconds=1)
            begin = self._coordinator.begin
            transactional = await self._context.blocking(begin, body.transactional_id, timeout_ms, expected)
        except TidelogError as e:
            return _identity(code_of(e, call.version, _INIT_FENCED))
        return _identity(0, transactional.producer_id, transactional.kafka_epoch)

    # --- adding --------------------------------------------------------------------------------------------

    async def add_partitions(self, call: Call) -> Reply:
        """AddPartitionsToTxn: of one transaction, or of several from version 4 on."""
        body, version = call.body, call.version
        if version < _BATCHED:
            producer = ProducerIdentity(
                body.v3_and_below_transactional_id, body.v3_and_below_producer_id, body.v3_and_below_producer_epoch
            )
            results = await self._added(version, producer, body.v3_and_below_topics, only_verify=False)
            return {"results_by_topic_v3_and_below": results}
        return {
            "results_by_transaction": [
                {
                    "transactional_id": transaction.transactional_id,
                    "topic_results": await self._added(
                        version,
                        ProducerIdentity(
                            transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
                        ),
                        transaction.topics,
                        only_verify=transaction.verify_only,
                    ),
                }
                for transaction in body.transactions
            ]
        }

    async def _added(
        self, version: int, producer: ProducerIdentity, topics: Sequence[Any], *, only_verify: bool
    ) -> list[Mapping[str, Any]]:
        """All or none is added: where a partition is unknown, the others are not attempted."""
        places: dict[tuple[str, int], Place] = {}
        for one in topics:
            known = await self._partitions(one.name, one.partitions)
            places |= {(one.name, partition): place for partition, place in known.items()}
        missing = any((one.name, partition) not in places for one in topics for partition in one.partitions)
        code = OPERATION_NOT_ATTEMPTED if missing else 0
        if not missing:
            try:
                _require_id(producer.transactional_id)
                self._coordinator.require()
                log, blocking = self._coordinator.log, self._context.blocking
                if only_verify:
                    await blocking(log.require_added, producer, list(places.values()))
                else:
                    added = [(topic, place) for (topic, _), place in places.items()]
                    self._coordinator.saw(await blocking(log.add, producer, added))
            except TidelogError as e:
                code = code_of(e, version, _FENCED)
        return [
            {
                "name": topic.name,
                "results_by_partition": [
                    {
                        "partition_index": partition,
                        "partition_error_code": code
                        if (topic.name, partition) in places
                        else UNKNOWN_TOPIC_OR_PARTITION,
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in topics
        ]

    async def _partitions(self, name: str, partitions: Sequence[int]) -> Mapping[int, Place]:
        """Those of these partitions that the topic has."""
        try:
            topic = await self._context.topics.get(name)
            if topic is not None and any(partition >= topic.state.partitions for partition in partitions):
                await topic.look()  # it may have grown
            if topic is None:
                return {}
            return {p: (topic.topic_id, p) for p in partitions if 0 <= p < topic.state.partitions}
        except TidelogError:
            return {}

    async def add_offsets(self, call: Call) -> Reply:
        """AddOffsetsToTxn: offsets of a group will wait for the transaction."""
        body = call.body
        producer = ProducerIdentity(body.transactional_id, body.producer_id, body.producer_epoch)
        try:
            _require_id(producer.transactional_id)
            self._coordinator.require()
            check_group_id(body.group_id)
            self._coordinator.saw(
                await self._context.blocking(self._coordinator.log.add, producer, groups=[body.group_id])
            )
        except TidelogError as e:
            return {"error_code": code_of(e, call.version, _FENCED)}
        return {"error_code": 0}

    # --- ending --------------------------------------------------------------------------------------------

    async def end(self, call: Call) -> Reply:
        """EndTxn: answered when it is decided, and what is committed can be read as a rule."""
        body = call.body
        producer = ProducerIdentity(body.transactional_id, body.producer_id, body.producer_epoch)
        try:
            _require_id(producer.transactional_id)
            self._coordinator.require()
            raises_epoch = call.version >= _RAISES_EPOCH
            ended = await self._context.blocking(
                self._coordinator.end, producer, commit=body.committed, raises_epoch=raises_epoch
            )
        except TidelogError as e:
            return _identity(code_of(e, call.version, _FENCED))
        self._coordinator.appended(ended.intent)
        return _identity(0, ended.one.producer_id, ended.one.kafka_epoch)


_NO_ID: Final = -1


def _expected(body: Any) -> ProducerIdentity | None:
    """The producer that the caller of InitProducerId goes on as. Raises why it can't be asked for."""
    _require_id(body.transactional_id)
    if getattr(body, "enable2_pc", False):
        raise TransactionalIdDeniedError("Transactions in two phases (KIP-939) are not offered.")
    producer_id, epoch = getattr(body, "producer_id", _NO_ID), getattr(body, "producer_epoch", _NO_ID)
    if (producer_id == _NO_ID) != (epoch == _NO_ID):
        raise InvalidRequestError("A producer id and an epoch come together.")
    return None if producer_id == _NO_ID else ProducerIdentity(body.transactional_id, producer_id, epoch)


def _require_id(transactional_id: str) -> None:
    if not transactional_id:
        raise InvalidRequestError("A transactional id has one character at least.")


def _identity(error: int, producer_id: int = _NO_ID, epoch: int = _NO_ID) -> Reply:
    return {"error_code": error, "producer_id": producer_id, "producer_epoch": epoch}
