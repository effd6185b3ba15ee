"""`consume --group` at work: a member of a consumer group, which commits what was printed."""

from collections.abc import Generator, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from tidelog.cli.consume.follow import BATCH_RECORDS, Event, Idle, Reached
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.commands.terminal import note
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake

_POLL_S = 0.2
_COMMIT_EVERY_S = 1.0
# Refusals of a commit that mean: others read these partitions now, and will print what follows the last commit.
_MOVED_ON = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS)


class GroupFollowing:
    """One run of `consume --group`; a context manager that leaves the group at the end.

    `reset`: `earliest` or `latest`, where to start without a committed offset. `to_end`: end when all assigned
    partitions are read to their ends. `count`: end after this number of records. Records are committed once they are
    printed: `events` resumes only then, and `commit` does the rest.
    """

    def __init__(
        self,
        lake: Lake,
        topic: str,
        group: str,
        *,
        reset: str,
        to_end: bool = False,
        count: int | None = None,
        headers: bool = False,
        conf: dict[str, Any] | None = None,
    ) -> None:
        self._lake = lake
        self._topic = topic
        self._reset = reset
        self._to_end = to_end
        self._left = count
        self._headers = headers
        self._yielded: pa.RecordBatch | None = None
        self._printed: dict[int, int] = {}
        self._told: dict[int, int] = {}
        self._holes: dict[int, tuple[int, int]] = {}
        self._assigned = False
        self._committed_s = lake.clock.elapsed_s()
        lake.topic(topic).state()  # a topic that is not there is refused, as without a group
        self._consumer = _plain(
            lambda: Consumer(
                {
                    "lake": lake,
                    "group.id": group,
                    "auto.offset.reset": reset,
                    "enable.auto.commit": False,
                    **(conf or {}),
                }
            )
        )

    def __enter__(self) -> Self:
        _plain(
            lambda: self._consumer.subscribe(
                [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
        )
        return self

    def __exit__(self, error: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if error is not None:
            self._yielded = None  # perhaps not printed
        self._consumer.close()

    def events(self) -> Iterator[Event]:
        """Batches of records, partitions that are read to their end, and pauses. Raises TidelogError."""
        while self._left is None or self._left > 0:
            wanted = BATCH_RECORDS if self._left is None else min(BATCH_RECORDS, self._left)
            table = _plain(
                lambda wanted=wanted: self._consumer.consume_table(wanted, _POLL_S, include_headers=self._headers)
            )
            for batch in table.to_batches():
                self._yielded = batch
                yield batch
                self._settle()
            if self._left is not None:
                self._left -= table.num_rows
            if not table.num_rows or self._lake.clock.elapsed_s() - self._committed_s >= _COMMIT_EVERY_S:
                yield Idle()  # what is printed is flushed now
                self.commit()
            if not table.num_rows:
                ended = yield from self._tell_ends()
                if ended and self._to_end:
                    return

    def commit(self) -> None:
        """Commit what was printed, the batch that was yielded last included."""
        self._settle()
        self._committed_s = self._lake.clock.elapsed_s()
        printed, self._printed = self._printed, {}
        if not printed:
            return
        offsets = [TopicPartition(self._topic, number, offset) for number, offset in sorted(printed.items())]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as e:
            error: KafkaError = e.args[0]
            if error.code() not in _MOVED_ON:
                raise TidelogError(error.str()) from e
            note(f"Not committed, so that others print these records again: {error.str()}")

    # --- inside --------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """The batch that was yielded last is printed: keep each partition's next offset, which rises in a batch."""
        batch, self._yielded = self._yielded, None
        if batch is None:
            return
        numbers, offsets = batch.column("partition").to_pylist(), batch.column("offset").to_pylist()
        self._printed.update(zip(numbers, (offset + 1 for offset in offsets), strict=True))

    def _tell_ends(self) -> Generator[Reached, None, bool]:
        """Report partitions that are read to their end; return whether all that are assigned are."""
        if not self._assigned:
            return False
        offsets = self._lake.offsets(self._topic)
        positions = self._positions(offsets)
        owned = {number: self._past_holes(number, at, *offsets[number]) for number, at in positions.items()}
        at_end = [number for number, offset in sorted(owned.items()) if offset == offsets[number][1]]
        done = len(at_end) == len(owned)
        fresh = [number for number in at_end if self._told.get(number) != owned[number]]
        for number in fresh:
            self._told[number] = owned[number]
            if positions[number] < owned[number]:
                self._printed[number] = owned[number]
            yield Reached(number, owned[number], last=self._to_end and done and number == fresh[-1])
        return done

    def _positions(self, offsets: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """The next offset of each assigned partition; where none was read yet, the one that it starts at."""
        owned = [found for found in self._consumer.assignment() if found.partition in offsets]
        unread = [found for found in owned if found.offset < 0]
        committed = _plain(lambda: self._consumer.committed(unread)) if unread else []
        starts = {
            found.partition: starting_position(found.offset, *offsets[found.partition], reset=self._reset)
            for found in committed
        }
        return {found.partition: found.offset for found in owned} | starts

    def _past_holes(self, number: int, position: int, start: int, end: int) -> int:
        """The end, where no record is left before it: what a rewind, or compaction, took away may be the newest."""
        if position >= end or self._holes.get(number) == (position, end):
            return max(position, end)
        left = self._lake.topic(self._topic).read(number, max(position, start), end)
        if any(batch.num_rows for batch in left):
            return position
        self._holes[number] = position, end
        return end

    def _on_assign(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._assigned = True

    def _on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        self.commit()

    def _on_lost(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._printed.clear()


def starting_position(committed: int, start: int, end: int, *, reset: str) -> int:
    """Where a group starts in a partition with offsets [start, end); `committed` is below 0 where there is none."""
    if start <= committed <= end:
        return committed
    return start if reset == "earliest" else end


def _plain(call: Any) -> Any:
    """Call a client; its exception becomes one that the command line explains."""
    try:
        return call()
    except KafkaException as e:
        raise TidelogError(e.args[0].str()) from e
