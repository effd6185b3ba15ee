"""A source's task, and what a worker gives it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tidelog.connect.data.records import SourceRecord


class OffsetStorageReader(Protocol):
    """The offsets that were stored with records."""

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The newest stored offset of a source partition, None where there is none."""

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        """`offset` of each, in order."""


class SourceTaskContext(Protocol):
    """What a worker gives a running source task."""

    @property
    def configs(self) -> Mapping[str, str]:
        """The task's configuration."""

    @property
    def worker_properties(self) -> Mapping[str, str]:
        """The worker's own configuration, as it was given: for limits that all connectors of a worker share."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        """What was stored before."""

    @property
    def stopping(self) -> bool:
        """Whether the task is to stop: a `poll` that takes long returns then with what it has."""

    def wait(self, seconds: float) -> bool:
        """Pause until the task is to stop, at most so long: whether it is."""


class SourceTask(ABC):
    """Reads a part of a source. One thread calls all methods, in order: start, poll and the commits, stop."""

    @abstractmethod
    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Begin after the stored offsets (`context.offset_storage_reader`). Raises `ConnectError`."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord]:
        """The next records, [] where there is none within about a second: then pause with `context.wait`, not longer.

        `RetriableConnectError` has the worker ask again with backoff; any other error fails the task.
        """

    def commit(self) -> None:  # noqa: B027
        """Called after the offsets of everything that `poll` gave so far are stored: what the source keeps may go."""

    def commit_record(self, record: SourceRecord, offset: int | None) -> None:  # noqa: B027
        """Called for each record when it is stored at an offset of its topic, None when a transform dropped it."""

    def stop(self) -> None:  # noqa: B027
        """End: release what `start` opened. Also called where `start` failed."""
