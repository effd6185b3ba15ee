"""A sink's task, and what a worker gives it."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tidelog.connect.data.records import Partition, SinkRecord


class ErrantRecordReporter(Protocol):
    """Takes records that the other system refuses (KIP-610)."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Give a record up as `errors.tolerance` says: to the dead letter topic and the log, or fail the task.

        Raises `ConnectError` where errors are not tolerated. Offsets go past the record only after it is stored.
        """


class SinkTaskContext(Protocol):
    """What a worker gives a running sink task."""

    @property
    def configs(self) -> Mapping[str, str]:
        """The task's configuration."""

    @property
    def assignment(self) -> Collection[Partition]:
        """The partitions that the task has now."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter:
        """Where refused records go."""

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from this offset (Connect's `offset`): for tasks that keep offsets with their data, in `open`."""

    def retry_after(self, seconds: float) -> None:
        """How long to wait before `put` is repeated after a `RetriableConnectError` (Connect's `timeout`)."""

    def pause(self, *partitions: Partition) -> None:
        """Give no records of these partitions until `resume`."""

    def resume(self, *partitions: Partition) -> None:
        """Give records of these partitions again."""

    def request_commit(self) -> None:
        """Ask that offsets be committed before the next `put`, not only at the next interval."""

    @property
    def stopping(self) -> bool:
        """Whether the task is to stop."""

    def wait(self, seconds: float) -> bool:
        """Pause until the task is to stop, at most so long: whether it is."""


class SinkTask(ABC):
    """Writes records to another system. One thread calls all: start, open, then put and flush, close, stop."""

    @abstractmethod
    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Begin. Raises `ConnectError`."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records, in their partitions' order; [] comes now and then, so that time passes.

        `RetriableConnectError` has the worker give the same records again, with backoff; any other error fails the
        task.
        """

    def flush(self, offsets: Mapping[Partition, int]) -> None:  # noqa: B027
        """Store what `put` took, for offsets are committed next. `offsets`: of the records after those taken."""

    def pre_commit(self, offsets: Mapping[Partition, int]) -> Mapping[Partition, int]:
        """The offsets to commit, by default all taken ones after `flush`; a task may hold some back."""
        self.flush(offsets)
        return offsets

    def open(self, partitions: Collection[Partition]) -> None:  # noqa: B027
        """Partitions that the task has from now on, beside those it had."""

    def close(self, partitions: Collection[Partition]) -> None:  # noqa: B027
        """Partitions that the task had; their offsets were committed before, unless they were lost."""

    def stop(self) -> None:  # noqa: B027
        """End: release what `start` opened. Also called where `start` failed."""
