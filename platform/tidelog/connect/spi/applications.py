"""A task that is a program of its own, which reads and writes topics itself, and what a worker gives it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from tidelog.log.lake import Lake


class ApplicationPhase(StrEnum):
    """Where a supervised program is."""

    WAITING = "WAITING"  # for others of the worker to end
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"  # it has failed, and is started again later
    ENDED = "ENDED"  # by itself, without a failure


class ApplicationStatus(NamedTuple):
    """`trace`: what there is to say, such as the last output of a program that failed."""

    phase: ApplicationPhase
    trace: str | None = None


class ApplicationTaskContext(Protocol):
    """What a worker gives such a task."""

    @property
    def lake(self) -> Lake:
        """The worker's lake."""

    @property
    def worker_properties(self) -> Mapping[str, str]:
        """The worker's own configuration, as it was given: for limits that all connectors of a worker share."""

    @property
    def group_id(self) -> str:
        """The consumer group whose offsets are those of the connector, where it is a sink."""


class ApplicationTask(ABC):
    """Supervises a program. One thread calls all: start, then look over and over, and stop."""

    @abstractmethod
    def start(self, config: Mapping[str, str], context: ApplicationTaskContext) -> None:
        """Begin; the program is started by `look`. Raises `ConnectError`."""

    @abstractmethod
    def look(self) -> ApplicationStatus:
        """Start the program where it is due, and say how it is. Called about twice in a second.

        Raises `ConnectError` where it is given up: the task fails.
        """

    @abstractmethod
    def stop(self) -> None:
        """End the program: the connector is paused, and `look` would start it again, or the task ends.

        Also called where `start` failed.
        """
