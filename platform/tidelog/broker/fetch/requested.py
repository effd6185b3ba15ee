"""Which topic and partition a request means, and what keeps it from being served. Errors are Kafka's codes."""

from contextlib import suppress
from uuid import UUID

from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.topics import BrokerTopic, BrokerTopics
from tidelog.broker.wire.errors import (
    FENCED_LEADER_EPOCH,
    INCONSISTENT_TOPIC_ID,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tidelog.log.base.errors import TidelogError, TopicChangedError, UnknownTopicError


class RequestedTopic:
    """A topic as a request names it, by name or by id. `error`: why it can't be had, 0 if it can."""

    __slots__ = ("_life", "asked_of", "error", "id", "is_denied", "topic")

    def __init__(self, topic: BrokerTopic | None, error: int = 0) -> None:
        self.topic = topic
        self.error = error
        # Whether its client may not have it, and whom that was asked of.
        self.is_denied = False
        self.asked_of: object = None
        self._life = "" if topic is None else topic.topic.id
        self.id = UUID(self._life) if self._life else UUID(int=0)

    @classmethod
    async def of(cls, topics: BrokerTopics, name: str | UUID) -> "RequestedTopic":
        """Look the topic up."""
        try:
            return cls(await topics.find(name))
        except TidelogError as e:
            return cls(None, e.kafka_code)

    @classmethod
    async def fresh(cls, topics: BrokerTopics, name: str | UUID) -> "RequestedTopic":
        """Look the topic up as it is in the store now: what another broker has acknowledged counts."""
        requested = await cls.of(topics, name)
        if requested.topic is not None:
            with suppress(TidelogError):  # the topic keeps why
                await topics.look(requested.topic.name)
        return requested

    def problem(self, partition: int, *, by_id: bool) -> int:
        """Why a partition can't be served now; 0 if it can. The topic may have changed since it was looked up."""
        topic = self.topic
        if self.is_denied:
            return TOPIC_AUTHORIZATION_FAILED
        if topic is None:
            return self.error
        try:
            state = topic.state
        except UnknownTopicError:
            return UNKNOWN_TOPIC_ID if by_id else UNKNOWN_TOPIC_OR_PARTITION
        except TopicChangedError:
            return INCONSISTENT_TOPIC_ID if by_id else UNKNOWN_TOPIC_OR_PARTITION
        except TidelogError as e:
            return e.kafka_code
        if not state.exists:
            return UNKNOWN_TOPIC_ID if by_id else UNKNOWN_TOPIC_OR_PARTITION
        if state.topic_id != self._life:  # deleted and created again
            return INCONSISTENT_TOPIC_ID if by_id else UNKNOWN_TOPIC_OR_PARTITION
        return 0 if 0 <= partition < state.partitions else UNKNOWN_TOPIC_OR_PARTITION


def epoch_problem(view: ClusterView, epoch: int) -> int:
    """What is wrong with the leader epoch that a client knows, if it says one (-1: none); 0 for nothing."""
    if epoch < 0 or epoch == view.epoch:
        return 0
    return FENCED_LEADER_EPOCH if epoch < view.epoch else UNKNOWN_LEADER_EPOCH
