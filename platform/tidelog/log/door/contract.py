"""The commit loop's contract: the state machine behind a door, a commit's result, the retry policy."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tidelog.log.delta.actions import Action, Entry
from tidelog.log.storage.store_time import Moment


class LogState(Protocol):
    """What a door needs of the state behind it."""

    @property
    def version(self) -> int:
        """The newest entry's version, -1 before the first."""

    def apply(self, entry: Entry) -> None:
        """Apply one verified entry."""

    def restore(self, version: int, actions: Iterable[Action]) -> None:
        """Take the content of the checkpoint of `version`."""


S = TypeVar("S", bound=LogState)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Machine(Generic[S]):
    """The kind of log behind a door: its empty state, which entry may follow a state, and what a state proves.

    `verify_head` refuses the state at the head of the log for what a later entry can still undo. `proves_committed`
    says whether a state proves that an entry was committed before it, when the entry itself is trimmed.
    """

    empty: Callable[[], S]
    verify: Callable[[S, Entry], None]
    verify_checkpoint: Callable[[S, int], None]
    verify_head: Callable[[S], None]
    proves_committed: Callable[[S, Entry], bool]


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """A commit's answer. `version` is the entry's, or the head's when nothing had to be written."""

    version: int
    response: R
    written: bool


@dataclass(slots=True)
class Pending:
    """A put whose outcome is not known: this entry may be there, or may still be created.

    `since`: the earliest time of its first put. `to_sync`: the objects that it brings, which must be
    durable before it can be seen; None once they are, and where they need not be.
    """

    entry: Entry
    data: bytes
    response: Any
    since: Moment
    to_sync: Sequence[str] | None = None
    # When the put began that certainly created it; None where an answer was lost, so that another put may have.
    created: Moment | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a commit is retried: seconds on the elapsed clock."""

    timeout_s: float = 30.0
