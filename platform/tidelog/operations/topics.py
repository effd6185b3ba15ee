"""Topics: which there are, their files, and what may be changed of them; the log describes their partitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from tidelog.log.base.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    NotATopicError,
    TidelogError,
    UnknownTopicError,
)
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.rules.topics import unknown_topic
from tidelog.log.state.topic_state import TopicState

V = TypeVar("V")
R = TypeVar("R")

# A file is small below this part of `segment.bytes`: merging takes those together.
_SMALL_FILE: Final = 16


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """A topic's live files: how many, those of them that are small, and the bytes of all."""

    number: int
    small: int
    bytes: int


def live_files(state: TopicState, defaults: LakeConfig) -> LiveFiles:
    """The live files of a topic, over its lake's defaults. Raises `InvalidConfigError`."""
    below = TopicConfig.stored(state.overrides, defaults=defaults).segment_bytes // _SMALL_FILE
    sizes = [segment.size for segment in state.all_segments()]
    return LiveFiles(len(sizes), sum(size < below for size in sizes), sum(sizes))


# --- reading -----------------------------------------------------------------------------------------------


def read_topics(lake: Lake, *, internal: bool = False) -> dict[str, TopicState | TidelogError]:
    """The topics as they are now, by name, sorted, or why one can't be opened; internal ones where asked for.

    Raises `LakeNotFoundError`, `StorageError`.
    """
    lake.require_lake()
    topics: dict[str, TopicState | TidelogError] = {}
    for name in lake.storage.list_folders(""):
        if names.is_internal(name) and not internal:
            continue
        try:
            state = lake.peek(name)
        except (InvalidTopicError, NotATopicError):
            continue
        except TidelogError as e:
            topics[name] = e
        else:
            if state is not None:
                topics[name] = state
    return topics


def read_topic(lake: Lake, name: str) -> TopicState:
    """A topic as it is now. Raises `UnknownTopicError`."""
    state = lake.peek(name)
    if state is None:
        raise unknown_topic(name)
    return state


def ask_together(
    ask: Callable[[Mapping[int, V]], Mapping[int, R]], wanted: Mapping[int, V]
) -> dict[int, R | TidelogError]:
    """Ask once for all partitions of `wanted`; one by one only where one of them is refused, to learn which.

    An error of the topic or of the store is the answer for each of them.
    """
    try:
        return dict(ask(wanted))
    except TidelogError as e:
        if len(wanted) == 1 or e.retriable or isinstance(e, UnknownTopicError):
            return dict.fromkeys(wanted, e)
    outcomes: dict[int, R | TidelogError] = {}
    for partition, value in wanted.items():
        outcomes |= ask_together(ask, {partition: value})
    return outcomes


# --- changing ----------------------------------------------------------------------------------------------


def create_topic(
    lake: Lake,
    name: str,
    partitions: int | None,
    config: Mapping[str, str],
    replication_factor: int | None = None,
    *,
    validate_only: bool = False,
) -> None:
    """Create a topic, or only check that it could be. Raises as `Lake.create_topic` does."""
    if validate_only:
        lake.check_new_topic(name, partitions, config)
    else:
        lake.create_topic(name, partitions, config, replication_factor=replication_factor)


def add_partitions(lake: Lake, name: str, partitions: int, *, validate_only: bool = False) -> None:
    """Give a topic more partitions, or only check that it could get them. `partitions`: of all that it has then.

    Raises as `Lake.alter_topic` does, also for the number that it has.
    """
    if read_topic(lake, name).partitions == partitions:
        raise InvalidPartitionsError(
            f"Topic '{name}' already has {partitions} partitions. Give the number that it shall have in all."
        )
    if validate_only:
        lake.check_altered_topic(name, {}, partitions)
    else:
        lake.alter_topic(name, partitions)


def delete_records(lake: Lake, name: str, before: Mapping[int, int]) -> dict[int, int | TidelogError]:
    """Delete the records below an offset of each partition (-1: all), in one entry where no partition is refused.

    The answer is where each partition starts then, or what `Lake.delete_records` refuses it with.
    """
    return ask_together(lambda wanted: lake.delete_records(name, wanted), before)
