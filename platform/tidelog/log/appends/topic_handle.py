"""The port by which appends know the topic that they append to."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.staging import Target
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage
from tidelog.log.typed.value_typing import Typing

R = TypeVar("R")


class TopicHandle(Protocol):
    """A topic, opened, as `tidelog.log.topic.Topic` is: bound to one topic id, and for any number of threads."""

    @property
    def name(self) -> str:
        """The topic's name."""

    @property
    def id(self) -> str:
        """The topic id that the handle is bound to."""

    @property
    def folder(self) -> str:
        """The topic's folder below the lake's root."""

    @property
    def storage(self) -> Storage:
        """The store that the topic is in."""

    @property
    def known(self) -> TopicState:
        """The topic's state as of the last look at its log."""

    def state(self) -> TopicState:
        """The topic's state at the head of its log. Raises `UnknownTopicError`, `TopicChangedError`."""

    def typing(self) -> Typing | None:
        """What the topic's table says of its values; None for a plain topic."""

    def target(self) -> Target:
        """What is needed to stage segments for the topic."""

    def commit_decided(
        self,
        decide: Callable[[TopicState, int, bool], Outcome[R]],
        *,
        durable: bool,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> R:
        """Commit what `decide` chooses of (state, now in ms, whether the topic has LogAppendTime), as `Door.commit`."""
