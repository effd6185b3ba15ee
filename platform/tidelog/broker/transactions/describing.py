"""What operators ask of transactions: DescribeTransactions, ListTransactions, DescribeProducers (KIP-664, KIP-994)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.transactions.coordinator import TransactionCoordinator
from tidelog.broker.transactions.errors import INVALID_REGULAR_EXPRESSION
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import COORDINATOR_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION
from tidelog.log.base.errors import TidelogError, TransactionalIdNotFoundError
from tidelog.log.rules.sequences import known_producers
from tidelog.transactions.model import EPOCHS_OF_AN_ID, State, Transactional
from tidelog.transactions.open_parts import NO_SEQUENCE, OpenTransaction

_NONE: Final = -1
# Kafka's names of states, those that no transaction here is ever in among them.
_STATES: Final = frozenset({*State, "PrepareAbort", "Dead", "PrepareEpochFence"})


class TransactionDescribing:
    """Transactions and producers, as the log says."""

    def __init__(self, context: Context, coordinator: TransactionCoordinator) -> None:
        self._context = context
        self._coordinator = coordinator

    def handlers(self) -> Handlers:
        """By API."""
        return {
            ApiKey.DESCRIBE_TRANSACTIONS: self.describe,
            ApiKey.LIST_TRANSACTIONS: self.list_all,
            ApiKey.DESCRIBE_PRODUCERS: self.describe_producers,
        }

    async def describe(self, call: Call) -> Reply:
        """DescribeTransactions."""
        names = call.body.transactional_ids
        try:
            pairs = await self._context.blocking(self._found, names)
        except TidelogError:
            return {"transaction_states": [_undescribed(name, COORDINATOR_NOT_AVAILABLE) for name in names]}
        return {"transaction_states": [_described(name, *pairs.get(name, (None, None))) for name in names]}

    def _found(self, names: Sequence[str] | None = None) -> Mapping[str, tuple[Transactional, OpenTransaction | None]]:
        found = self._coordinator.log.all_with_open(names)
        return {name: (self._coordinator.as_known(one), there) for name, (one, there) in found.items()}

    async def list_all(self, call: Call) -> Reply:
        """ListTransactions: those that this broker coordinates, so that a client of all brokers has each once."""
        body, now_ms = call.body, self._context.clock.now_ms()
        unknown = [state for state in body.state_filters if state not in _STATES]
        try:
            pairs = await self._context.blocking(self._found)
        except TidelogError:
            return {"error_code": COORDINATOR_NOT_AVAILABLE, "unknown_state_filters": unknown, "transaction_states": []}
        own = [pair for name, pair in pairs.items() if self._coordinator.coordinates(name)]
        try:
            own = _matching(own, getattr(body, "transactional_id_pattern", None))
        except pa.ArrowInvalid:
            return {"error_code": INVALID_REGULAR_EXPRESSION, "unknown_state_filters": [], "transaction_states": []}
        least_ms = getattr(body, "duration_filter", _NONE)
        states = [
            {
                "transactional_id": transactional.transactional_id,
                "producer_id": transactional.producer_id,
                "transaction_state": _state(transactional, there),
            }
            for transactional, there in own
            if not (body.producer_id_filters and transactional.producer_id not in body.producer_id_filters)
            and not (body.state_filters and _state(transactional, there) not in body.state_filters)
            and not (least_ms >= 0 and now_ms - _began_ms(transactional, there) <= least_ms)
        ]
        return {"error_code": 0, "unknown_state_filters": unknown, "transaction_states": states}

    async def describe_producers(self, call: Call) -> Reply:
        """DescribeProducers: those that a partition remembers, and those with an open transaction there.

        Nothing of an open transaction is in a partition. The offset at which one is said to start there is the one at
        which it would, if all that is open there was committed in the order in which it began: the oldest one starts at
        the last stable offset, as in Kafka, and no two start at one.
        """
        return {
            "topics": [
                {"name": one.name, "partitions": await self._producers(one.name, one.partition_indexes)}
                for one in call.body.topics
            ]
        }

    async def _producers(self, name: str, partitions: Sequence[int]) -> list[Mapping[str, Any]]:
        by_partition: dict[int, list[Mapping[str, Any]]] = {}
        code, text = 0, None
        try:
            topic = await self._context.topics.find(name)
            by_partition = {p: [] for p in range(topic.state.partitions)}
            for known in known_producers(topic.state):
                there = _producer(known.producer_id, known.epoch, known.last_sequence, known.updated_ms or _NONE)
                by_partition[known.partition].append(there)
            opened = await self._context.blocking(self._open_in, topic.topic_id)
            ends = {p: topic.state.end(p) for p in by_partition}
            for producer, (partition, last_sequence, began_ms, records) in opened:
                start = ends[partition] if records else _NONE
                ends[partition] += records
                by_partition[partition].append(_producer(*producer, last_sequence, began_ms, start))
        except TidelogError as e:
            code, text = e.kafka_code, str(e)
        return [
            {
                "partition_index": partition,
                "error_code": code or (0 if partition in by_partition else UNKNOWN_TOPIC_OR_PARTITION),
                "error_message": text,
                "active_producers": by_partition.get(partition, []),
            }
            for partition in partitions
        ]

    def _open_in(self, topic_id: str) -> list[tuple[tuple[int, int], tuple[int, int, int, int]]]:
        """((producer id, epoch), (partition, last sequence, time, records)) of what is open there, oldest first."""
        opened = [
            (
                (transaction.key.producer_id, transaction.key.epoch % EPOCHS_OF_AN_ID),
                (partition, held.last_sequence, held.began_ms, sum(segment.records for segment in held.segments)),
            )
            for transaction in self._coordinator.log.all_open()
            for (own_topic, partition), held in transaction.places.items()
            if own_topic == topic_id and held.last_sequence != NO_SEQUENCE
        ]
        return sorted(opened, key=lambda pair: (pair[1][2], pair[0]))


def _matching(
    pairs: list[tuple[Transactional, OpenTransaction | None]], pattern: str | None
) -> list[tuple[Transactional, OpenTransaction | None]]:
    """Those whose ids match the pattern as a whole: RE2, as Kafka. Raises `pa.ArrowInvalid` where it is none."""
    if not pattern:
        return pairs
    names = pa.array([one.transactional_id for one, _ in pairs], pa.string())
    matches = pc.match_substring_regex(names, rf"\A(?:{pattern})\z").to_pylist()
    return [pair for pair, matched in zip(pairs, matches, strict=True) if matched]


def _state(one: Transactional, there: OpenTransaction | None) -> str:
    return (one.state if there is None else State.ONGOING).value


def _began_ms(transactional: Transactional, there: OpenTransaction | None) -> int:
    if there is not None:
        return there.began_ms
    return transactional.updated_ms if transactional.intent is not None else _NONE


def _described(name: str, transactional: Transactional | None, there: OpenTransaction | None) -> Mapping[str, Any]:
    if transactional is None:
        return _undescribed(name, TransactionalIdNotFoundError.kafka_code)
    partitions = list(there.partitions) if there is not None else []
    if there is None and transactional.intent is not None:
        partitions = list(transactional.intent.partitions)
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return {
        "error_code": 0,
        "transactional_id": name,
        "transaction_state": _state(transactional, there),
        "transaction_timeout": transactional.timeout_ms,
        "transaction_start_time": _began_ms(transactional, there),
        "producer_id": transactional.producer_id,
        "producer_epoch": transactional.kafka_epoch,
        "topics": [{"topic": topic, "partitions": own} for topic, own in topics.items()],
    }


def _undescribed(name: str, code: int) -> Mapping[str, Any]:
    return {
        "error_code": code,
        "transactional_id": name,
        "transaction_state": "",
        "transaction_timeout": 0,
        "transaction_start_time": _NONE,
        "producer_id": _NONE,
        "producer_epoch": _NONE,
        "topics": [],
    }


def _producer(
    producer_id: int, epoch: int, last_sequence: int, updated_ms: int, start: int = _NONE
) -> Mapping[str, Any]:
    return {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "last_sequence": last_sequence,
        "last_timestamp": updated_ms,
        "coordinator_epoch": 0,
        "current_txn_start_offset": start,
    }
