"""The topics that members of groups of the type consumer subscribe to: by name, and by regular expressions."""

from collections.abc import Iterable
from typing import Final

from tidelog.broker.base.calls import Peer
from tidelog.broker.base.context import Context
from tidelog.broker.base.expressions import compiled
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.log.base.errors import TidelogError
from tidelog.operations.rights import Right

# How long a list of all topics is good for.
LISTING_S: Final = 2.0


class Subscriptions:
    """Topics as one broker sees them. For the loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._names: list[str] = []
        self._until_s = 0.0

    async def facts(self, names: Iterable[str]) -> dict[str, AssignableTopic | None]:
        """{name: what assignors need of a topic} of these; None for one that is not there, or can't be read."""
        facts: dict[str, AssignableTopic | None] = {}
        for name in names:
            facts[name] = None
            try:
                topic = await self._context.topics.get(name)
                if topic is not None:
                    facts[name] = AssignableTopic(topic.topic_id, topic.state.partitions)
            except TidelogError:
                continue
        return facts

    async def matching(self, peer: Peer, regex: str) -> frozenset[str]:
        """The topics that a regular expression matches whole, and that the client may see.

        Raises `InvalidRegularExpressionError`.
        """
        pattern = compiled(regex)
        now_s = self._context.clock.elapsed_s()
        if now_s >= self._until_s:
            self._names = await self._context.topics.names()
            self._until_s = now_s + LISTING_S
        access = self._context.access
        return frozenset(
            name
            for name in self._names
            if pattern.fullmatch(name) and access.may(peer, Right.DESCRIBE_TOPIC, topic=name)
        )
