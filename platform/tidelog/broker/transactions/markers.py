"""WriteTxnMarkers, as `kafka-transactions.sh abort` sends it: an operator ends what a producer has open.

Topics have no markers here, and the log of transactions knows all that is open. So a marker for one partition aborts
the whole transaction, in the log. Source: `KafkaApis.handleWriteTxnMarkersRequest` (kafka 4.2), KIP-664.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.transactions.coordinator import TransactionCoordinator
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import INVALID_REQUEST, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
from tidelog.log.base.errors import InvalidProducerEpochError, TidelogError
from tidelog.log.base.kafka_codes import KafkaCode
from tidelog.transactions.open_parts import Place

# Clients of this API ask again after it.
_BROKER_NOT_AVAILABLE: Final[int] = KafkaCode.BROKER_NOT_AVAILABLE


class MarkerHandlers:
    """Abort markers of operators. Commits are for coordinators to write, and no client is one."""

    def __init__(self, context: Context, coordinator: TransactionCoordinator) -> None:
        self._context = context
        self._coordinator = coordinator

    def handlers(self) -> Handlers:
        """By API."""
        return {ApiKey.WRITE_TXN_MARKERS: self.write}

    async def write(self, call: Call) -> Reply:
        """WriteTxnMarkers."""
        return {"markers": [await self._written(marker) for marker in call.body.markers]}

    async def _written(self, marker: Any) -> Mapping[str, Any]:
        places = {one.name: await self._places(one.name, one.partition_indexes) for one in marker.topics}
        code = await self._code(marker, [place for own in places.values() for place in own.values()])
        return {
            "producer_id": marker.producer_id,
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {
                            "partition_index": partition,
                            "error_code": code if partition in places[topic.name] else UNKNOWN_TOPIC_OR_PARTITION,
                        }
                        for partition in topic.partition_indexes
                    ],
                }
                for topic in marker.topics
            ],
        }

    async def _places(self, name: str, partitions: Sequence[int]) -> Mapping[int, Place]:
        """Those of these partitions that the topic has."""
        try:
            topic = await self._context.topics.find(name)
            return {p: (topic.topic_id, p) for p in partitions if 0 <= p < topic.state.partitions}
        except TidelogError:
            return {}

    async def _code(self, marker: Any, places: Sequence[Place]) -> int:
        """The error code for all the places."""
        if marker.transaction_result:
            return INVALID_REQUEST
        if not self._context.cluster().serves:
            return NOT_LEADER_OR_FOLLOWER
        try:
            abort = self._coordinator.abort_marker
            await self._context.blocking(abort, marker.producer_id, marker.producer_epoch, places)
        except InvalidProducerEpochError as e:
            return e.kafka_code
        except TidelogError:
            return _BROKER_NOT_AVAILABLE
        return 0
