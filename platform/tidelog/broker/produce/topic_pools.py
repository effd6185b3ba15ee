"""From the name or id of a topic to the pool of its records, in order even while the topic is looked up."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from uuid import UUID

from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import Linger
from tidelog.broker.base.topics import BrokerTopic
from tidelog.broker.produce.entry import UnitWriter
from tidelog.broker.produce.leader_hints import better_leader
from tidelog.broker.produce.pool import TopicPool
from tidelog.broker.produce.request import NotLeaderError, ProducedBatch, TopicRef
from tidelog.log.base.errors import InvalidTopicError, TidelogError, TopicChangedError
from tidelog.log.lake import Lake
from tidelog.log.rules.names import is_table
from tidelog.log.rules.topics import unknown_topic
from tidelog.log.storage.port import Distant
from tidelog.log.topic import Topic

logger = logging.getLogger(__name__)


class TopicPools:
    """The pools of all topics that are produced to. For the loop's thread.

    `new_writer` makes what writes the units of the topic of a name and an id; `lost` gets the id of one that may be
    gone.
    """

    def __init__(
        self,
        context: Context,
        new_writer: Callable[[str, str], UnitWriter],
        linger: Linger,
        lost: Callable[[str], None],
    ) -> None:
        self._context = context
        self._new_writer = new_writer
        self._linger = linger
        self._tell_lost = lost
        self._pools: dict[str, TopicPool] = {}  # by the topics' ids
        self._known: dict[TopicRef, TopicPool] = {}
        self._finding: dict[TopicRef, list[tuple[ProducedBatch, float]]] = {}
        self._stale: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._races_cost = isinstance(context.lake.storage, Distant)
        # The cluster as it was last seen, since when its epoch is known, and whether it takes whatever comes.
        self._view: ClusterView | None = None
        self._epoch_s = 0.0
        self._takes_all = False
        # Topics that another number of brokers leads than when their pools were made.
        self._moved: set[UUID] = set()

    def add(self, unit: ProducedBatch, now_s: float) -> None:
        """Hand a unit to its topic's pool, behind all that came before it."""
        ref = unit.topic
        waiting = self._finding.get(ref)
        if waiting is not None:
            waiting.append((unit, now_s))
            return
        pool = self._known.get(ref)
        if pool is not None and pool.is_current:
            self._take_in(pool, unit, now_s)
            return
        self._finding[ref] = [(unit, now_s)]
        task = asyncio.create_task(self._find(ref))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _find(self, ref: TopicRef) -> None:
        self._known.pop(ref, None)
        try:
            pool = self._known[ref] = self._pool(await self._topic(ref))
        except Exception as e:  # no unit may wait for ever
            if not isinstance(e, TidelogError):
                logger.exception("Topic '%s' can't be found by a fault in the program.", ref)
            for unit, _ in self._finding.pop(ref):
                unit.refused(e)
            return
        for unit, now_s in self._finding.pop(ref):
            self._take_in(pool, unit, now_s)

    def _take_in(self, pool: TopicPool, unit: ProducedBatch, now_s: float) -> None:
        if not isinstance(unit.topic, str) and unit.is_refused(pool.followed.name):
            return
        view = self._context.cluster()
        if view is not self._view:
            self._see(view, now_s)
        leader = None
        if not self._takes_all:
            age_s = now_s - self._epoch_s
            leader = better_leader(
                view,
                pool.uuid,
                unit.partition,
                unit.request.rack,
                races_cost=self._races_cost,
                epoch_age_s=age_s,
                moved=pool.uuid in self._moved,
            )
        if leader is None:
            pool.add(unit, now_s)
        else:
            text = f"Broker {leader.id} leads partition {unit.partition} of '{pool.followed.name}' now. Ask it."
            unit.refused(NotLeaderError(text, (leader.id, view.epoch)))

    def _see(self, view: ClusterView, now_s: float) -> None:
        before, self._view = self._view, view
        if before is None or view.epoch != before.epoch:
            self._epoch_s = now_s
        if before is not None:
            topics = [pool.uuid for pool in self._pools.values()]
            self._moved.update(one for one in topics if view.leaders_of(one) != before.leaders_of(one))
        self._takes_all = view.serves and not self._races_cost and not self._moved

    async def _topic(self, ref: TopicRef) -> BrokerTopic:
        """The topic of that name or id, which is never created for its records. Raises why it can't be had."""
        topics = self._context.topics
        topic = await topics.of(ref)
        if topic is not None and topic.name in self._stale:
            self._stale.discard(topic.name)
            await topic.look()
            topic = await topics.of(ref)
        if topic is None and isinstance(ref, str) and is_table(ref):
            raise InvalidTopicError(f"'{ref}' is a table of tidelog's own, which no client appends to.")
        return topic or await topics.find(ref)

    def _pool(self, followed: BrokerTopic) -> TopicPool:
        topic_id, name = followed.topic_id, followed.name
        pool = self._pools.get(topic_id)
        if pool is None:
            lost = partial(self._lost, topic_id, name)
            writer = self._new_writer(name, topic_id)
            pool = TopicPool(self._context, followed, topic_id, writer, self._linger, lost)
            self._pools[topic_id] = pool
        return pool

    def _lost(self, topic_id: str, name: str) -> None:
        """The topic may be gone: its log is looked at before the next record is taken."""
        self._pools.pop(topic_id, None)
        for ref in [ref for ref, pool in self._known.items() if pool.topic_id == topic_id]:
            del self._known[ref]
        self._stale.add(name)
        self._tell_lost(topic_id)


def open_topic(lake: Lake, name: str, topic_id: str) -> Topic:
    """The topic, if it is still the one that the records are for."""
    topic = lake.topic(name)
    if not topic.id:
        raise unknown_topic(name)
    if topic.id != topic_id:
        raise TopicChangedError(f"Topic '{name}' was deleted and created again since these records were sent.")
    return topic
