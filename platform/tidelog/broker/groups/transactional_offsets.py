"""TxnOffsetCommit: offsets of a group that wait for the end of a transaction (KIP-98, KIP-447, KIP-890)."""

from collections.abc import Mapping
from typing import Any, Final

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.errors import code_of
from tidelog.broker.groups.offsets import OffsetHandlers
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.model import CommittedOffset, TopicPartition
from tidelog.groups.rules.offsets import decide_pending
from tidelog.log.base.errors import (
    IllegalGenerationError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    ProducerFencedError,
    StaleMemberEpochError,
    TidelogError,
    TransactionAbortedError,
    UnknownTransactionalIdError,
)
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.part_rules import ProducerIdentity
from tidelog.transactions.ports import GroupIdentity
from tidelog.transactions.transaction_log import TransactionLog

# From this version on the request itself adds the group to the transaction.
_ADDS_SINCE: Final = 5


class TransactionalOffsetHandlers:
    """Groups' offsets in transactions."""

    def __init__(self, context: Context, coordinator: GroupCoordinator, offsets: OffsetHandlers) -> None:
        self._blocking = context.blocking
        self._topics = context.topics
        self._clock = context.clock
        self._coordinator = coordinator
        self._offsets = offsets
        self._transactions = TransactionLog(context.lake)

    def handlers(self) -> Handlers:
        """By API."""
        return {ApiKey.TXN_OFFSET_COMMIT: self.commit}

    async def commit(self, call: Call) -> Reply:
        """TxnOffsetCommit: what can wait does, all at once; it counts when the transaction is committed."""
        body = call.body
        codes: dict[TopicPartition, int] = {}
        wanted: dict[TopicPartition, CommittedOffset] = {}
        for one in body.topics:
            for p in one.partitions:
                place = one.name, p.partition_index
                try:
                    wanted[place] = await self._offset(place, p)
                except TidelogError as e:
                    codes[place] = code_of(e)
        try:
            self._coordinator.require(body.group_id)
            if wanted:
                await self._wait(body, wanted, adds=call.version >= _ADDS_SINCE)
        except TidelogError as e:
            code = _code_of(e, call.version)
            codes |= {(one.name, p.partition_index): code for one in body.topics for p in one.partitions}
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {"partition_index": number, "error_code": codes.get((topic.name, number), 0)}
                        for number in (p.partition_index for p in topic.partitions)
                    ],
                }
                for topic in body.topics
            ]
        }

    async def _offset(self, place: TopicPartition, given: Any) -> CommittedOffset:
        epoch = getattr(given, "committed_leader_epoch", -1)
        offset = CommittedOffset(given.committed_offset, given.committed_metadata or "", epoch)
        return await self._offsets.placed(await self._topics.find(place[0]), place, offset)

    async def _wait(self, body: Any, wanted: Mapping[TopicPartition, CommittedOffset], *, adds: bool) -> None:
        producer = ProducerIdentity(body.transactional_id, body.producer_id, body.producer_epoch)
        note = self._transactions.add if adds else self._transactions.require_added
        key: TransactionKey = await self._blocking(note, producer, groups=[body.group_id])
        member_id = getattr(body, "member_id", "")
        instance_id = getattr(body, "group_instance_id", None)
        committer = GroupIdentity(body.group_id, member_id, getattr(body, "generation_id", -1), instance_id)
        await self._coordinator.decisions.decide(
            body.group_id, lambda view: decide_pending(view, committer, wanted, key, needs_member=False)
        )
        group = self._coordinator.groups().get(body.group_id)
        if member_id and group is not None:
            group.heard(member_id, self._clock.elapsed_s())


def _code_of(error: TidelogError, version: int) -> int:
    """The error's code; what the log of transactions says first."""
    if isinstance(error, ProducerFencedError):
        return InvalidProducerEpochError.kafka_code
    if isinstance(error, StaleMemberEpochError):
        return IllegalGenerationError.kafka_code
    if isinstance(error, UnknownTransactionalIdError):
        return error.kafka_code
    if isinstance(error, InvalidTransactionStateError):
        return TransactionAbortedError.kafka_code if version >= _ADDS_SINCE else error.kafka_code
    return code_of(error)
