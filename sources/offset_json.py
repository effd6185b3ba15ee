"""Kafka's JSON of partitions, offsets and timestamps: `{"orders": {"0": 23, "1": -1}}`.

Source: `JsonUtils` of Spark 4.2's Kafka connector. Read more strictly where it would change a number silently:
fractions, nulls, numbers beyond 64 bits and text after the JSON are refused with the same messages.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.typed_values import Whole

EARLIEST = -2
LATEST = -1

# What Spark hands to a Python source: {topic: {partition as text: offset}}.
JsonOffsets = dict[str, dict[str, int]]


class TopicPartition(NamedTuple):
    """A partition of a topic; its text is Kafka's, such as `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets = Mapping[TopicPartition, int]


def parse_partitions(text: str) -> frozenset[TopicPartition]:
    """Partitions of `{"orders": [0, 1]}`. Raises InvalidOptionError."""
    try:
        topic_partitions = {
            TopicPartition(topic, _number(partition, 32))
            for topic, partitions in _object(json.loads(text)).items()
            for partition in _list(partitions)
        }
    except ValueError:
        raise InvalidOptionError(f'Expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text}') from None
    return frozenset(topic_partitions)


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Offsets of `{"orders": {"0": 23}}`; -1 is the latest, -2 the earliest. Raises InvalidOptionError."""
    try:
        offsets = _numbers(text)
        if min(offsets.values(), default=0) < EARLIEST:
            raise ValueError
    except ValueError:
        raise InvalidOptionError(
            f'Expected e.g. {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {text}'
        ) from None
    return offsets


def parse_timestamps(text: str) -> dict[TopicPartition, int]:
    """Timestamps, ms since the epoch, of `{"orders": {"0": 1700000000000}}`. Raises InvalidOptionError."""
    try:
        return _numbers(text)
    except ValueError:
        raise InvalidOptionError(
            'Expected e.g. {"topicA": {"0": 123456789, "1": 123456789},\n'
            f'"topicB": {{"0": 123456789, "1": 123456789}}}}, got {text}'
        ) from None


def to_json_offsets(offsets: Offsets) -> JsonOffsets:
    """The offsets as Spark keeps them, always in one order: by topic, then by the partition's number.

    Spark compares the texts of two offsets, so equal offsets must have equal texts.
    """
    result: JsonOffsets = {}
    for topic, partition in sorted(offsets):
        result.setdefault(topic, {})[str(partition)] = offsets[TopicPartition(topic, partition)]
    return result


def from_json_offsets(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Offsets that Spark hands back. Raises InvalidOptionError for what is no offset of this source."""
    return parse_offsets(json.dumps(offsets))


def dumps(offsets: Offsets) -> str:
    """The offsets' JSON without spaces, as Kafka's source writes it into a checkpoint."""
    return json.dumps(to_json_offsets(offsets), separators=(",", ":"))


def partitions_json(partitions: Iterable[TopicPartition]) -> str:
    """JSON of partitions, sorted: `{"orders":[0,1]}`."""
    result: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        result.setdefault(topic, []).append(partition)
    return json.dumps(result, separators=(",", ":"))


def _numbers(text: str) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, Whole(bits=32).parse(partition)): _number(number, 64)
        for topic, partitions in _object(json.loads(text)).items()
        for partition, number in _object(partitions).items()
    }


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError
    return value


def _number(value: Any, bits: int) -> int:
    if not isinstance(value, int):
        raise ValueError
    # a boolean is an int to Python, but no number by its text
    return Whole(bits=bits).parse(str(value))
