"""Which topics a source may make, and how (KIP-158)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.log.base.errors import TopicExistsError
from tidelog.log.base.typed_values import listed
from tidelog.log.lake import Lake

_OWN = ("replication.factor", "partitions", "include", "exclude")


@dataclass(frozen=True, slots=True)
class CreationGroup:
    """How the topics of a group are made. `partitions`: None for the lake's default."""

    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    partitions: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)

    def has(self, topic: str) -> bool:
        """Whether a topic is in the group."""
        matches = any(re.fullmatch(one, topic) for one in self.include)
        return matches and not any(re.fullmatch(one, topic) for one in self.exclude)


def creation_groups(config: Mapping[str, str]) -> list[CreationGroup]:
    """The groups of a connector's configuration, the default one last; [] where it names none."""
    named = listed(config.get("topic.creation.groups", ""))
    if not named and not any(key.startswith("topic.creation.default.") for key in config):
        return []
    groups = []
    for name in [*named, "default"]:
        prefix = f"topic.creation.{name}."
        below = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
        partitions = int(below.get("partitions", "-1"))
        groups.append(
            CreationGroup(
                (".*",) if name == "default" else tuple(listed(below.get("include", ""))),
                () if name == "default" else tuple(listed(below.get("exclude", ""))),
                None if partitions < 0 else partitions,
                {key: value for key, value in below.items() if key not in _OWN},
            )
        )
    return groups


def ensure_source_topic(lake: Lake, topic: str, groups: Sequence[CreationGroup]) -> None:
    """Have a topic by the first group that it is in; without groups, as producers make topics, if they may.

    Raises `UnknownTopicError` where topics are not made on the way, `InvalidConfigError`, `InvalidTopicError`.
    """
    for group in groups:
        if lake.peek(topic) is None and group.has(topic):
            try:
                lake.create_topic(topic, group.partitions or lake.config().num_partitions, group.config)
            except TopicExistsError:
                return
    lake.ensure_topic(topic)
