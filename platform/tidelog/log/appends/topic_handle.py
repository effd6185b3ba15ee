"""The port by which appends know the topic that they append to."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import pyarrow as pa

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.staging import Stager, Target
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

    def config(self) -> TopicConfig:
        """The topic's configuration over the lake's defaults."""

    def typing(self) -> Typing | None:
        """What the topic's table says of its values; None for a plain topic."""

    def target(self) -> Target:
        """What is needed to stage segments for the topic."""

    def stager(self, compression: str | None = None) -> Stager:
        """A stager for the topic as of now; `compression` is the producer's codec."""

    def grow_for(self, table: pa.Table) -> None:
        """Let a typed topic know the schemas of the values of `table`, before they are staged."""

    def now_ms(self) -> int:
        """The time by which records are judged, and stamped under LogAppendTime."""

    def commit_decided(
        self,
        decide: Callable[[TopicState, int, bool], Outcome[R]],
        *,
        durable: bool,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> R:
        """Commit what `decide` chooses of (state, now in ms, whether the topic has LogAppendTime), as `Door.commit`."""
