"""The topics that members of groups of the type consumer subscribe to: by name, and by regular expressions.

Expressions are those of RE2, as Kafka's are: time and memory that one takes are bounded, for any sender.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from tidelog.broker.base.calls import Peer
from tidelog.broker.base.context import Context
from tidelog.groups.rules.modern.heartbeat import AssignableTopic
from tidelog.log.base.errors import InvalidRegularExpressionError, TidelogError
from tidelog.operations.rights import Right

# How long a list of all topics is good for, and the longest expression.
LISTING_S: Final = 2.0
LONGEST: Final = 4096
# Bytes that a compiled expression may take.
_MOST_MEMORY: Final = 1 << 20


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


@lru_cache(256)
def compiled(regex: str) -> Any:
    """An expression of RE2. Raises `InvalidRegularExpressionError`."""
    try:
        import re2
    except ImportError as e:
        raise InvalidRegularExpressionError(
            "This broker takes no regular expressions, as google-re2 is not installed: it is in the extra `broker`."
            " Install that, or subscribe by names."
        ) from e
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    try:
        if len(regex) > LONGEST:
            raise ValueError(f"it has {len(regex)} characters, and at most {LONGEST} are taken")
        return re2.compile(regex, options)
    except (re2.error, ValueError) as e:
        what = e.args[0].decode(errors="replace") if e.args and isinstance(e.args[0], bytes) else str(e)
        raise InvalidRegularExpressionError(
            f"SubscribedTopicRegex `{regex[:100]}` is not a valid regular expression: {what}. It is one of RE2, which"
            " knows no look-around and no back references."
        ) from e
