"""Topics that a streams application writes for itself, made by the coordinator with the rights of its member."""

import logging
from collections.abc import Iterable

from tidelog.broker.base.calls import Peer
from tidelog.broker.base.context import Context
from tidelog.groups.topology import InnerTopic
from tidelog.log.base.errors import TidelogError, TopicExistsError
from tidelog.operations.rights import Right
from tidelog.operations.topics import create_topic

logger = logging.getLogger(__name__)


class InnerTopics:
    """Makes such topics. For the loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def make(self, peer: Peer, topics: Iterable[InnerTopic]) -> str:
        """Make the topics that are not there; why some could not be made, as a sentence, or nothing."""
        context = self._context
        denied = [topic.name for topic in topics if not context.access.may(peer, Right.CREATE_TOPIC, topic=topic.name)]
        problems = [f"Unauthorized to CREATE on topics {', '.join(sorted(denied))}."] if denied else []
        for topic in topics:
            if topic.name in denied:
                continue
            try:
                await context.blocking(self._create, topic)
            except TopicExistsError:
                pass  # another broker, or another member's heartbeat, has made it
            except TidelogError as e:
                logger.warning("Inner topic '%s' could not be made. %s", topic.name, e)
                problems.append(f"Topic {topic.name} could not be made: {e}")
                continue
            await context.topics.look(topic.name)
        return " ".join(problems)

    def _create(self, topic: InnerTopic) -> None:
        context = self._context
        usual = context.settings.default_replication_factor
        factor = topic.replication_factor if topic.replication_factor > 0 else usual
        most = len(context.cluster().nodes)
        create_topic(context.lake, topic.name, topic.partitions, dict(topic.config), min(factor, most))
