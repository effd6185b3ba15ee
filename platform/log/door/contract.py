"""What a door is given and gives back: the kind of log behind it, a commit's answer, how long it goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tidelog.log.delta.actions import Action, Entry
from tidelog.log.storage.store_time import Moment


class LogState(Protocol):
    """What a door asks of the state behind it."""

    @property
    def version(self) -> int:
        """The newest entry's version, -1 before the first."""
        ...

    def apply(self, entry: Entry) -> None:
        """Move on by one verified entry."""
        ...

    def restore(self, version: int, actions: Sequence[Action]) -> None:
        """Become what the checkpoint of `version` says."""
        ...


S = TypeVar("S", bound=LogState)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Machine(Generic[S]):
    """The kind of log behind a door: its empty state, what may follow a state, and what a state shows.

    `verify_head` refuses the state at the head of the log for what a later entry can still undo. `holds` says
    whether a state proves that an entry came before it, when the entry itself is trimmed away.
    """

    empty: Callable[[], S]
    verify: Callable[[S, Entry], None]
    verify_checkpoint: Callable[[S, int], None]
    verify_head: Callable[[S], None]
    holds: Callable[[S, Entry], bool]


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """A commit's answer. `version` is the entry's, or the head's when nothing had to be written."""

    version: int
    response: R
    written: bool


@dataclass(slots=True)
class Pending:
    """A put whose outcome is not known: this entry may be there, or may still come.

    `since`: when it was put for the first time at the earliest. `to_sync`: the objects that it brings, which must be
    durable before it can be seen; None once they are, and where they need not be.
    """

    entry: Entry
    data: bytes
    response: Any
    since: Moment
    to_sync: Sequence[str] | None = None
    # When the put began that surely created it; None where an answer was lost, so that another one may have.
    created: Moment | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a commit goes on. Seconds on the elapsed clock."""

    timeout_s: float = 30.0
    first_backoff_s: float = 0.001
    last_backoff_s: float = 1.0
