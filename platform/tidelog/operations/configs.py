"""Configurations: what each key of a topic, or of the lake, is set to, and how keys are changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import NameList, Texts, listed
from tidelog.log.config.overrides import KeyDescription, Settings
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.lake import Lake


class KeyOperation(Enum):
    """What is done with a key, in the order of Kafka's numbers. DELETE resets it; APPEND and SUBTRACT change a list."""

    SET = "set"
    DELETE = "delete"
    APPEND = "append"
    SUBTRACT = "subtract"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A change of one key, which leaves all others. DELETE has no value."""

    name: str
    operation: KeyOperation
    value: str = ""


def describe_config(lake: Lake, topic: str | None) -> list[KeyDescription]:
    """All keys of a topic, or of the lake (None), as they are now, in the keys' order.

    Raises `LakeNotFoundError`, `UnknownTopicError`, and `InvalidConfigError` for a topic that holds other keys.
    """
    return (lake.reload_config() if topic is None else lake.topic_config(topic)).describe()


def replace_config(lake: Lake, topic: str | None, values: Mapping[str, str], *, validate_only: bool = False) -> None:
    """Set these keys of a topic, or of the lake (None), and reset all others. `validate_only`: only refuse.

    Raises as `alter_config` does.
    """
    _alter(lake, topic, {**dict.fromkeys(_config(lake, topic).overrides), **values}, validate_only=validate_only)


def alter_config(lake: Lake, topic: str | None, changes: Iterable[KeyChange], *, validate_only: bool = False) -> None:
    """Change keys of a topic, or of the lake (None), all or none. `validate_only`: only refuse.

    Raises `UnknownTopicError`, `InvalidConfigError` and `LakeFollowsError`.
    """
    config = _config(lake, topic)
    _alter(lake, topic, changed_values(config, changes), validate_only=validate_only)


def changed_values(config: Settings, changes: Iterable[KeyChange]) -> dict[str, str | None]:
    """The values of keys after changes, None to reset one; what they are is judged where they are set.

    Raises `InvalidConfigError` for an APPEND or SUBTRACT of a key that is no list.
    """
    return {change.name: _changed(config, change) for change in changes}


def _config(lake: Lake, topic: str | None) -> TopicConfig | LakeConfig:
    return lake.config() if topic is None else lake.topic_config(topic)


def _changed(config: Settings, change: KeyChange) -> str | None:
    """The key's value after a change, None to reset it."""
    if change.operation is KeyOperation.DELETE:
        return None
    key = config.KEYS.get(change.name)
    if change.operation is KeyOperation.SET or key is None:  # setting an unknown or refused key says so
        return change.value
    if not isinstance(key.kind, NameList | Texts):
        raise InvalidConfigError(f"Can't {change.operation.name} value for key {change.name}: it is no list. SET it.")
    now = key.kind.text(config.get(change.name, key.default))
    words = listed(now)
    given = [word.strip() for word in change.value.split(",")]
    if change.operation is KeyOperation.APPEND:
        return ",".join([*words, *(word for word in given if word not in words)])
    return ",".join(word for word in words if word not in given)


def _alter(lake: Lake, topic: str | None, wanted: Mapping[str, str | None], *, validate_only: bool) -> None:
    if topic is not None and validate_only:
        lake.check_altered_topic(topic, wanted)
    elif topic is not None:
        lake.alter_topic(topic, config=wanted)
    elif validate_only:
        lake.config().merged(wanted)
    else:
        lake.alter_config(wanted)
