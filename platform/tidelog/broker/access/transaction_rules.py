"""Which principals may use a transactional id, and be producers at all."""

from collections.abc import Sequence
from typing import Any, Final

from tidelog.broker.access.authorization import EachResource, GuardedRequest, OneResource, split
from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.wire.errors import (
    ClusterAuthorizationError,
    GroupAuthorizationError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode
from tidelog.operations.rights import Right

# What was not tried because something else of the same request was refused (Kafka's OPERATION_NOT_ATTEMPTED).
_NOT_ATTEMPTED: Final[int] = KafkaCode.OPERATION_NOT_ATTEMPTED
# From this version on AddPartitionsToTxn is for brokers (KIP-890).
_BETWEEN_BROKERS: Final = 4


def _producer_refused(call: Call, error: TidelogError) -> Answer:  # noqa: ARG001 - the same in all versions
    return {"error_code": error.kafka_code, "producer_id": -1, "producer_epoch": -1}


END_TXN: Final = OneResource(Right.USE_TRANSACTIONAL_ID, _producer_refused)


async def init_producer(request: GuardedRequest) -> Reply:
    """InitProducerId: by the transactional id; without one by a right to write, to any topic (KIP-679)."""
    name = request.call.body.transactional_id
    if name is not None:
        if request.allows(Right.USE_TRANSACTIONAL_ID, transactional_id=name):
            return await request.go_on()
        return _producer_refused(request.call, request.denial(Right.USE_TRANSACTIONAL_ID, transactional_id=name))
    to_write = Right.WRITE_RECORDS.needs["topic"]
    if to_write.for_any(request.context.access, request.call.peer) or request.allows(Right.WRITE_IDEMPOTENTLY):
        return await request.go_on()
    return _producer_refused(request.call, request.denial(Right.WRITE_IDEMPOTENTLY))


async def add_partitions(request: GuardedRequest) -> Reply:
    """AddPartitionsToTxn: all or nothing of a transaction."""
    body = request.call.body
    if request.call.version < _BETWEEN_BROKERS:
        topics = body.v3_and_below_topics
        if not request.allows(Right.ADD_TO_TRANSACTION, transactional_id=body.v3_and_below_transactional_id):
            code = TransactionalIdAuthorizationError.kafka_code
            return {"results_by_topic_v3_and_below": [_not_added(topic, code) for topic in topics]}
        refused = _not_writable(request, topics)
        if refused is not None:
            return {"results_by_topic_v3_and_below": refused}
        return await request.go_on()
    if not request.allows(Right.ACT_AS_BROKER):
        return {"error_code": ClusterAuthorizationError.kafka_code, "results_by_transaction": ()}
    results: list[Answer] = []
    for transaction in body.transactions:
        refused = _not_writable(request, transaction.topics)
        if refused is None:
            results += (await request.answer(transactions=(transaction,)))["results_by_transaction"]
        else:
            results.append({"transactional_id": transaction.transactional_id, "topic_results": refused})
    return {"results_by_transaction": results}


def _not_writable(request: GuardedRequest, topics: Sequence[Any]) -> list[Answer] | None:
    """The answer where the client may not write to all topics."""
    kept, refused = split(topics, lambda topic: request.allows(Right.ADD_TO_TRANSACTION, topic=topic.name))
    if not refused:
        return None
    code = TopicAuthorizationError.kafka_code
    return [*(_not_added(one, _NOT_ATTEMPTED) for one in kept), *(_not_added(one, code) for one in refused)]


def _not_added(topic: Any, code: int) -> Answer:
    partitions = [{"partition_index": partition, "partition_error_code": code} for partition in topic.partitions]
    return {"name": topic.name, "results_by_partition": partitions}


async def add_offsets(request: GuardedRequest) -> Reply:
    """AddOffsetsToTxn."""
    body = request.call.body
    if not request.allows(Right.ADD_TO_TRANSACTION, transactional_id=body.transactional_id):
        return {"error_code": TransactionalIdAuthorizationError.kafka_code}
    if not request.allows(Right.ADD_TO_TRANSACTION, group=body.group_id):
        return {"error_code": GroupAuthorizationError.kafka_code}
    return await request.go_on()


# --- what operators ask ------------------------------------------------------------------------------------


def _description_refused(name: str, error: TidelogError) -> Answer:
    return {
        "error_code": error.kafka_code,
        "transactional_id": name,
        "transaction_state": "",
        "transaction_timeout": 0,
        "transaction_start_time": -1,
        "producer_id": -1,
        "producer_epoch": -1,
        "topics": (),
    }


_DESCRIBE: Final = EachResource(
    Right.DESCRIBE_TRANSACTION, "transactional_ids", "transaction_states", str, _description_refused
)


async def describe(request: GuardedRequest) -> Reply:
    """DescribeTransactions: with those of its topics that the client may see."""
    reply = await _DESCRIBE(request)
    assert isinstance(reply, dict)

    def shown(state: Answer) -> Answer:
        topics = [one for one in state["topics"] if request.may(Right.DESCRIBE_TOPIC, topic=one["topic"])]
        return {**state, "topics": topics}

    return {**reply, "transaction_states": [shown(state) for state in reply["transaction_states"]]}


async def list_transactions(request: GuardedRequest) -> Reply:
    """ListTransactions: those that the client may see."""
    reply = await request.answer()
    shown = [
        state
        for state in reply["transaction_states"]
        if request.may(Right.DESCRIBE_TRANSACTION, transactional_id=state["transactional_id"])
    ]
    return {**reply, "transaction_states": shown}


async def write_markers(request: GuardedRequest) -> Reply:
    """WriteTxnMarkers: an operator aborts a transaction (KIP-664)."""
    if request.may(Right.ABORT_TRANSACTION) or request.allows(Right.ACT_AS_BROKER):
        return await request.go_on()
    code = ClusterAuthorizationError.kafka_code

    def refused(topic: Any) -> Answer:
        partitions = [{"partition_index": partition, "error_code": code} for partition in topic.partition_indexes]
        return {"name": topic.name, "partitions": partitions}

    markers = request.call.body.markers
    return {
        "markers": [
            {"producer_id": one.producer_id, "topics": [refused(topic) for topic in one.topics]} for one in markers
        ]
    }
