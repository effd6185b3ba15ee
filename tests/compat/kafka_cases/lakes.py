"""What a lake says of what tools did, asked beside its brokers."""

from collections.abc import Mapping

from compat.kafka_scripts import Tools

from tidelog.access.access_log import AccessLog
from tidelog.access.state import AccessState
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake


def opened(tools: Tools) -> Lake:
    """The lake of the tools' brokers."""
    return Lake(str(tools.lake), create=False)


def topics(tools: Tools) -> list[str]:
    """The names of its topics."""
    with opened(tools) as lake:
        return lake.topics()


def offsets(tools: Tools, topic: str) -> dict[int, tuple[int, int]]:
    """{partition: where its records begin and end}."""
    with opened(tools) as lake:
        return lake.offsets(topic)


def count(tools: Tools, topic: str) -> int:
    """How many records a topic has."""
    return sum(end - begin for begin, end in offsets(tools, topic).values())


def overrides(tools: Tools, topic: str) -> Mapping[str, str]:
    """What is configured for a topic itself."""
    with opened(tools) as lake:
        return dict(lake.topic_config(topic).overrides)


def committed(tools: Tools, group: str) -> dict[tuple[str, int], int]:
    """{(topic, partition): a group's offset}."""
    with opened(tools) as lake:
        return {(place[0], place[1]): offset.offset for place, offset in GroupLog(lake).offsets(group).items()}


def access(tools: Tools) -> AccessState:
    """ACLs, users and quotas."""
    with opened(tools) as lake:
        return AccessLog(lake).look()


def records(tools: Tools, topic: str) -> list[tuple[str | None, str | None]]:
    """Keys and values of a topic, partition by partition."""
    with opened(tools) as lake:
        source = lake.topic(topic)
        return [
            (_text(row["key"]), _text(row["value"]))
            for partition in range(source.state().partitions)
            for batch in source.read(partition)
            for row in batch.select(["key", "value"]).to_pylist()
        ]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
