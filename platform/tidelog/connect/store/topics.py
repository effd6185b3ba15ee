"""The compacted topics that workers share, each as a fold."""

from collections.abc import Callable
from typing import Final, TypeVar

from tidelog.log.compacted_topic import CompactedTopic, TopicOwner
from tidelog.log.folds.compacted import TopicFold
from tidelog.log.lake import Lake

F = TypeVar("F", bound=TopicFold)

_OWNER: Final = TopicOwner("the workers", "it", "what workers need would be deleted by its age")


def workers_topic(
    lake: Lake, name: str, partitions: int, fold: Callable[[], F], *, ordered: bool = False
) -> CompactedTopic[F]:
    """A topic of the workers; `partitions`, `fold` and `ordered` as of `CompactedTopic`."""
    return CompactedTopic(lake, name, partitions, fold, _OWNER, ordered=ordered)
