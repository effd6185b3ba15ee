"""What a consumer subscribes to: names and patterns, the topics they stand for, and how many partitions those have."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from tidelog.clients.values.errors import KafkaException, invalid_argument
from tidelog.groups.rules.modern.topics import AssignableTopic, assignable
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake

R = TypeVar("R")

# Between looks for a topic that was named and is not there.
_MISSING_S = 1.0


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """Names of topics, and regular expressions (`^...`) that match names from their beginning."""

    names: frozenset[str]
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, topics: object) -> "TopicSelection":
        """What `subscribe` was given. Raises TypeError, KafkaException (`_INVALID_ARG`)."""
        if not isinstance(topics, list | tuple | set | frozenset) or not all(isinstance(t, str) for t in topics):
            raise TypeError("expected list of topic unicode strings")
        if not topics or "" in topics:
            raise _refusal("no topic is named. Name some, or call unsubscribe()")
        patterns = []
        for text in sorted(t for t in topics if t.startswith("^")):
            try:
                patterns.append(re.compile(text))
            except re.error as e:
                raise _refusal(f"{text!r} is not a regular expression ({e}). Correct it") from e
        return cls(frozenset(t for t in topics if not t.startswith("^")), tuple(patterns))

    def matches(self, topics: Iterable[str]) -> frozenset[str]:
        """Those of some topics that a pattern matches."""
        return frozenset(t for t in topics if any(p.match(t) for p in self.patterns))


def _refusal(reason: str) -> KafkaException:
    return invalid_argument(f"Failed to set subscription: {reason}.")


@dataclass(slots=True)
class Topics:
    """The topics of a subscription, looked up again every `interval_s` (below 0: never). Not for several threads.

    `missing`: names that are not there. `broken`: topics that can't be opened, and why; the others are read.
    """

    lake: Lake
    subscription: TopicSelection
    interval_s: float
    create_missing: bool
    found: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    broken: dict[str, TidelogError] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _due_s: float = 0.0

    def due_s(self, now_s: float) -> float:
        """In how many seconds to look again."""
        return max(0.0, self._due_s - now_s)

    def look(self, now_s: float) -> frozenset[str]:
        """Look the topics up; internal ones count only by name. Raises errors that go away by themselves."""
        names = self.subscription.names
        self.broken = {}
        if self.create_missing and self.lake.config().auto_create_topics_enable:
            for name in sorted(names):
                self._ask(name, self.lake.ensure_topic)
        listed = self.lake.topics() if self.subscription.patterns else []
        self.found = names | self.subscription.matches(listed)
        self._counts = self._count(self.found)
        self.missing = names - self._counts.keys() - self.broken.keys()
        waits = [_MISSING_S] if self.missing or self.broken else []
        waits += [self.interval_s] if self.interval_s >= 0 else []
        self._due_s = now_s + min(waits, default=float("inf"))
        return self.found

    def counts(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions topics have, as of the last look; other members' topics are looked up then."""
        wanted = set(topics)
        self._counts.update(self._count(wanted - self._counts.keys() - self.missing - self.broken.keys()))
        return {topic: self._counts[topic] for topic in wanted & self._counts.keys()}

    def assignable(self, topics: Iterable[str]) -> dict[str, AssignableTopic | None]:
        """What assignors need of topics, as they are now; None for one that is not there, or can't be opened."""
        return assignable({topic: self._ask(topic, self.lake.peek) for topic in topics})

    def _count(self, topics: Iterable[str]) -> dict[str, int]:
        states = {topic: self._ask(topic, self.lake.peek) for topic in topics}
        return {topic: state.partitions for topic, state in states.items() if state is not None}

    def _ask(self, topic: str, ask: Callable[[str], R]) -> R | None:
        """What the lake says of a topic; None for a broken one, which must not keep its reader from the others."""
        try:
            return ask(topic)
        except TidelogError as e:
            if e.retriable:
                raise
            self.broken[topic] = e
            return None
