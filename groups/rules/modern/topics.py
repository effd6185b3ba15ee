"""Topics as the rules of groups of the type consumer see them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.log.state.topic_state import TopicState


@dataclass(frozen=True, slots=True)
class AssignableTopic:
    """A topic as assignors see it: its id, and its number of partitions."""

    topic_id: str
    partitions: int


# {name: facts} of topics; None for one that is not there.
Topics = Mapping[str, AssignableTopic | None]


def assignable(states: Mapping[str, TopicState | None]) -> dict[str, AssignableTopic | None]:
    """Topics of these states; None for one that is not there."""
    return {
        topic: None if state is None else AssignableTopic(state.topic_id, state.partitions)
        for topic, state in states.items()
    }


class MissingTopicsError(Exception):
    """A rule needs to know topics that it was not given: ask for `names`, and decide again."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self.names = frozenset(names)
