"""Topics that a streams application writes for itself, made by the coordinator with the rights of its member."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tidelog.broker.base.calls import Peer
from tidelog.broker.base.context import Context
from tidelog.broker.groups.coordinated_group import CoordinatedGroup
from tidelog.groups.topology import InnerTopic
from tidelog.log.base.errors import TidelogError, TopicExistsError
from tidelog.operations.rights import Right
from tidelog.operations.topics import create_topic

logger = logging.getLogger(__name__)

# How long a heartbeat waits for topics that it has made: a member with many of them hears of the rest later.
PATIENCE_S: Final = 1.0
# How many refusals an answer has.
_MOST_REFUSALS: Final = 3


class InnerTopics:
    """Makes such topics, one after the other for each group. For the loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()
        context.at_close.append(self._close)

    async def make(self, peer: Peer, group: CoordinatedGroup, topics: Sequence[InnerTopic], again_s: float) -> str:
        """Begin to make the topics that are not there; why some can't be made, as sentences, or nothing.

        Nothing begins while others are made for the group. A refusal stands for `again_s`. Once a topic is made, the
        group looks at its topics again.
        """
        may = self._context.access.may
        denied = {topic.name for topic in topics if not may(peer, Right.CREATE_TOPIC, topic=topic.name)}
        now_s, making = self._context.clock.elapsed_s(), group.making
        if not making.goes_on:
            making.keep(topic.name for topic in topics)
            wanted = [topic for topic in topics if topic.name not in denied and making.is_due(topic.name, now_s)]
            if wanted:
                await self._begin(group, wanted, again_s)
        problems = [f"Unauthorized to CREATE on topics {', '.join(sorted(denied))}."] if denied else []
        refused = [
            f"Topic {name} could not be made: {why}" for name, why in making.refusals().items() if name not in denied
        ]
        problems += refused[:_MOST_REFUSALS]
        if len(refused) > _MOST_REFUSALS:
            problems.append(f"{len(refused) - _MOST_REFUSALS} more could not be made.")
        return " ".join(problems)

    async def _begin(self, group: CoordinatedGroup, topics: Sequence[InnerTopic], again_s: float) -> None:
        group.making.goes_on = True
        task = asyncio.get_running_loop().create_task(self._make(group, topics, again_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait([task], timeout=PATIENCE_S)

    async def _make(self, group: CoordinatedGroup, topics: Sequence[InnerTopic], again_s: float) -> None:
        try:
            for topic in topics:
                await self._make_one(group, topic, again_s)
        except Exception:
            logger.exception("Inner topics of group %r were not made.", group.state.group_id)
        finally:
            group.making.goes_on = False

    async def _make_one(self, group: CoordinatedGroup, topic: InnerTopic, again_s: float) -> None:
        context = self._context
        try:
            with suppress(TopicExistsError):  # another broker has made it, or this group's coordinator before this one
                await context.blocking(self._create, topic)
            await context.topics.look(topic.name)
        except TidelogError as e:
            if group.making.refuse(topic.name, str(e), context.clock.elapsed_s() + again_s):
                logger.warning("Inner topic '%s' could not be made. %s", topic.name, e)
            return
        group.refresh_s = 0.0  # the next heartbeat sees it

    def _create(self, topic: InnerTopic) -> None:
        context = self._context
        usual = context.settings.default_replication_factor
        factor = topic.replication_factor if topic.replication_factor > 0 else usual
        most = len(context.cluster().nodes)
        create_topic(context.lake, topic.name, topic.partitions, dict(topic.config), min(factor, most))

    async def _close(self) -> None:
        """Begin no other topic. What a thread is at ends there."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
