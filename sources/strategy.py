"""Which partitions a query reads: a list of topics, a pattern of topic names, or a list of partitions.

Source: `ConsumerStrategy` of Spark 4.2's Kafka connector.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.typed_values import listed
from tidelog.sources.offset_json import TopicPartition, parse_partitions
from tidelog.sources.topic_patterns import compile_pattern, match_topics

SUBSCRIBE = "subscribe"
SUBSCRIBE_PATTERN = "subscribepattern"
ASSIGN = "assign"
STRATEGY_KEYS = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)


@dataclass(frozen=True)
class Subscribe:
    """All partitions of these topics, those added later too."""

    topics: tuple[str, ...]


@dataclass(frozen=True)
class SubscribePattern:
    """All partitions of every topic in whose name the pattern matches, topics created later too."""

    pattern: str


@dataclass(frozen=True)
class Assign:
    """These partitions, and no others."""

    partitions: frozenset[TopicPartition]


Strategy = Subscribe | SubscribePattern | Assign


def check_strategy(options: Mapping[str, str]) -> None:
    """Refuse options (lower-case names) that name no strategy, several, or an empty one."""
    given = [key for key in STRATEGY_KEYS if key in options]
    if len(given) != 1:
        one_of = "One of" if not given else "Only one of"
        verb = "must" if not given else "can"
        raise InvalidOptionError(
            f"{one_of} the following options {verb} be specified for Kafka source: {', '.join(STRATEGY_KEYS)}. See "
            "the docs for more details."
        )
    value = options[given[0]]
    if given == [ASSIGN] and not value.strip().startswith("{"):
        raise InvalidOptionError(f"No topicpartitions to assign as specified value for option 'assign' is '{value}'")
    if given == [SUBSCRIBE] and not _topics(value):
        raise InvalidOptionError(f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'")
    if given == [SUBSCRIBE_PATTERN] and not value.strip():
        raise InvalidOptionError(
            f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{value}'"
        )


def parse_strategy(options: Mapping[str, str]) -> Strategy:
    """The strategy of options (lower-case names) that passed `check_strategy`. Raises InvalidOptionError."""
    if ASSIGN in options:
        return Assign(parse_partitions(options[ASSIGN]))
    if SUBSCRIBE in options:
        return Subscribe(_topics(options[SUBSCRIBE]))
    pattern = options[SUBSCRIBE_PATTERN].strip()
    compile_pattern(pattern)
    return SubscribePattern(pattern)


def topics_of(strategy: Strategy, existing: Mapping[str, int]) -> list[str]:
    """The topics that the strategy reads, sorted; `existing` maps a topic to its number of partitions.

    Topics that a strategy names are in it whether they exist or not.
    """
    match strategy:
        case Subscribe(topics):
            return sorted(set(topics))
        case SubscribePattern(pattern):
            return match_topics(pattern, existing)
        case Assign(partitions):
            return sorted({partition.topic for partition in partitions})


def partitions_of(strategy: Strategy, existing: Mapping[str, int]) -> frozenset[TopicPartition]:
    """The partitions that are there for the strategy to read."""
    there = frozenset(
        TopicPartition(topic, partition)
        for topic in topics_of(strategy, existing)
        for partition in range(existing.get(topic, 0))
    )
    return there & strategy.partitions if isinstance(strategy, Assign) else there


def left_out(strategy: Strategy, topics: Collection[str]) -> list[str]:
    """Those of `topics` that the strategy does not read, sorted, whether they exist or not."""
    return sorted(set(topics) - set(topics_of(strategy, dict.fromkeys(topics, 1))))


def _topics(value: str) -> tuple[str, ...]:
    return tuple(listed(value))
