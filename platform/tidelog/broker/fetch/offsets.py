"""ListOffsets and OffsetForLeaderEpoch: which offsets a partition has."""

from collections import Counter
from typing import Any, Final

from tidelog.broker.base.calls import Call
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.fetch.requested import RequestedTopic, epoch_problem
from tidelog.broker.wire.errors import INVALID_REQUEST, NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError
from tidelog.log.segments.fetch import FetchPlan, FoundRecord, find_latest, find_record

# Timestamps that mean an offset, and the first version in which each may be asked for.
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_UNKNOWN: Final = FoundRecord(-1, -1)


class Offsets:
    """The handlers of ListOffsets and OffsetForLeaderEpoch."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def list(self, call: Call) -> Answer:
        """ListOffsets: the first offset, the last, the one of a time. Unknown ones are -1."""
        view = self._context.cluster()
        topics = []
        for topic in call.body.topics:
            asks_for_end = any(p.timestamp == LATEST for p in topic.partitions)
            look_up = RequestedTopic.fresh if asks_for_end else RequestedTopic.of
            requested = await look_up(self._context.topics, topic.name)
            numbers = Counter(p.partition_index for p in topic.partitions)
            twice = {number for number, times in numbers.items() if times > 1}
            partitions = [await self._listed(call.version, view, requested, p, twice) for p in topic.partitions]
            topics.append({"name": topic.name, "partitions": partitions})
        return {"topics": topics}

    async def _listed(
        self, version: int, view: ClusterView, requested: RequestedTopic, asked: Any, twice: set[int]
    ) -> Answer:
        number, timestamp = asked.partition_index, asked.timestamp
        error = _problem(view, requested, number, asked.current_leader_epoch if version >= 4 else -1)
        if number in twice:
            error = INVALID_REQUEST
        elif timestamp < 0 and version < _SINCE.get(timestamp, version + 1):
            error = UNSUPPORTED_VERSION
        record = _UNKNOWN
        if not error:
            try:
                record = await self._offset(requested, number, timestamp)
            except TidelogError as e:
                error = e.kafka_code
        return {
            "partition_index": number,
            "error_code": error,
            "timestamp": record.timestamp_ms,
            "offset": record.offset,
            "leader_epoch": -1 if record is _UNKNOWN else view.epoch,
        }

    async def _offset(self, requested: RequestedTopic, number: int, timestamp: int) -> FoundRecord:
        assert requested.topic is not None
        state = requested.topic.state
        if timestamp == LATEST:
            return FoundRecord(state.end(number), -1)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return FoundRecord(state.start(number), -1)
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return _UNKNOWN
        topic, storage = requested.topic.topic, self._context.lake.storage

        def find() -> FoundRecord | None:
            plan: FetchPlan = topic.plan(number)
            if timestamp == MAX_TIMESTAMP:
                return find_latest(storage, topic.folder, plan)
            return find_record(storage, topic.folder, plan, timestamp)

        return await self._context.blocking(find) or _UNKNOWN

    async def of_epochs(self, call: Call) -> Answer:
        """OffsetForLeaderEpoch: where a leader's epoch ends. The log never loses its end, so that is the log end.

        Consumers ask a new leader, and go back to an end that is below their position. Of an epoch that is still to
        come nothing is known, which is no error. Source: `UnifiedLog.endOffsetForEpoch` (kafka 4.2).
        """
        view = self._context.cluster()
        topics = []
        for topic in call.body.topics:
            requested = await RequestedTopic.fresh(self._context.topics, topic.topic)
            partitions = []
            for p in topic.partitions:
                error, end, epoch = _problem(view, requested, p.partition, p.current_leader_epoch), -1, -1
                if not error and requested.topic is not None and 0 <= p.leader_epoch <= view.epoch:
                    end, epoch = requested.topic.state.end(p.partition), p.leader_epoch
                answer = {"error_code": error, "partition": p.partition, "leader_epoch": epoch, "end_offset": end}
                partitions.append(answer)
            topics.append({"topic": topic.topic, "partitions": partitions})
        return {"topics": topics}


def _problem(view: ClusterView, found: RequestedTopic, partition: int, epoch: int) -> int:
    problem = found.problem(partition, by_id=False)
    if problem:
        return problem
    return epoch_problem(view, epoch) if view.serves else NOT_LEADER_OR_FOLLOWER
