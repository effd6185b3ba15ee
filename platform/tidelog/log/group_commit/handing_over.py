"""The port by which group commit has what it staged committed with what others staged, or by another process."""

from concurrent.futures import Future
from typing import Protocol

from tidelog.log.delta.actions import Metadata
from tidelog.log.rules.appends import Ranges
from tidelog.log.rules.joint_appends import StagedShare
from tidelog.log.topic import Topic


class HandedOver(Exception):  # noqa: N818 - not an error: the part has its answer later
    """A part is committed by another thread, or `elsewhere` by another process.

    `answer`: its offsets, or what `CommitPart` raises. It raises `NotTakenError` and `UnansweredError` only where the
    part went elsewhere.
    """

    def __init__(self, answer: Future[Ranges], *, elsewhere: bool = False) -> None:
        super().__init__()
        self.answer = answer
        self.elsewhere = elsewhere


class NotTakenError(Exception):
    """The other process did not commit the part, and never will."""


class UnansweredError(Exception):
    """The other process gave no answer: it has committed the part, or may do so at any time, or never."""


class CommitPart(Protocol):
    """Commits what was staged of one topic. For any thread."""

    def digest(self, metadata: Metadata | None) -> str:
        """`configuration_digest` of the topic's metadata."""

    def __call__(self, topic: Topic, part: StagedShare, *, here: bool, timeout_s: float) -> Ranges:
        """Commit a part: {partition: (first offset, end offset)}, {} where its producers' sequences say it is there.

        `here`: not by another process. Raises the refusals of `decide_joint_append`, `RequestForgottenError`, what
        `Topic.commit_once` raises, and `HandedOver`.
        """
