"""What a fetch session knows of one partition: how far it is read, the segment that is open, and what to report."""

from collections.abc import Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.errors import CorruptSegmentError, OffsetOutOfRangeError, TidelogError, TopicChangedError
from tidelog.log.delta.schema import RECORDS
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import require_partition
from tidelog.log.segments import fetch
from tidelog.log.segments.few_records import FewRecords
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic

# Before a partition that failed over and over is tried again, when its log does not change before.
LAST_RETRY_S = 10.0
# Decoded at once of a segment: what a fetch takes of it less is a slice. Small segments are decoded whole.
DECODED_BYTES = 4 * 1024 * 1024
# Less than this, as stored, is decoded sooner than a helper wakes up.
_WORTH_HELP_BYTES = 16 * 1024
_OFFSET = RECORDS.get_field_index("offset")
# Records that were read: Arrow's, or a tiny segment's.
Held: TypeAlias = pa.RecordBatch | FewRecords


class FollowedLog:
    """One topic's log as a fetch loop follows it: the topic, its state as last seen, or why it can't be had."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.lake = lake
        self.name = name
        self.topic: Topic | None = None
        self.state: TopicState | None = None
        self.error: TidelogError | None = None
        # The newest entry that took records out of the topic, as far as is known.
        self.rewritten_at = -1
        self._seen: tuple[int, str, str] | None = None

    def refresh(self) -> bool:
        """Look at the log; True when anything is new: entries, another topic of the name, an error, or none."""
        try:
            if self.topic is None:
                self.topic = self.lake.topic(self.name)
            try:
                self.state = self.topic.state()
            except TopicChangedError:
                self.topic = self.lake.topic(self.name)
                self.state = self.topic.state()
            if not self.topic.id:  # it was not there when it was opened
                self.topic = self.lake.topic(self.name)
            self.error = None
            self.rewritten_at = self.state.rewrites.version
        except TidelogError as e:
            self.error, self.state = e, None
        version = -1 if self.state is None else self.state.version
        topic_id = "" if self.topic is None else self.topic.id
        before, self._seen = self._seen, (version, topic_id, "" if self.error is None else str(self.error))
        return self._seen != before

    @property
    def is_known(self) -> bool:
        """Whether the log was looked at."""
        return self._seen is not None


@dataclass(eq=False, slots=True)
class Cursor:
    """How far a session has read a partition. `position`: the next offset; `given_bytes`: since its turn began.

    `reported_end`: the end offset that was reported last; `reported_error`: the error that was.
    """

    log: FollowedLog
    partition: int
    position: int
    topic_id: str = ""
    given_bytes: int = 0
    reported_end: int = -1
    reported_error: str = ""
    retry_s: float = float("inf")
    failures: int = 0
    queued: bool = False
    _plan: fetch.FetchPlan | None = None
    _batches: Iterator[Held] | None = None
    _rest: Held | None = field(default=None, repr=False)
    _rest_bytes: int = 0
    _coming: Future[Held | None] | None = None
    # What the records at hand were planned as: up to which offset, and as of which version of the topic.
    _planned_end: int = -1
    _planned_at: int = -1

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.log.name

    @property
    def is_open(self) -> bool:
        """Whether a segment is open, or records of one wait."""
        return self._batches is not None or self._rest is not None or self._coming is not None

    def close(self) -> None:
        """Close the segment that is open; a later read opens it where this one stopped."""
        coming, self._coming = self._coming, None
        if coming is not None and not coming.cancel():
            wait([coming])
        self._rest = None
        self._end_plan()

    def _end_plan(self) -> None:
        """Be done with what was planned. A helper may be at it, which must not wait for itself."""
        if self._batches is not None:
            self._batches.close()  # type: ignore[attr-defined]
        self._batches = self._plan = None

    def available(self, enough: int) -> int:
        """About how many stored bytes are there to read, counted up to `enough`."""
        state, total = self.log.state, 0
        if state is None:
            return 0
        for segment in fetch.overlapping(state.live(self.partition), self.position, state.end(self.partition)):
            unread = segment.end - max(segment.base_offset, self.position)
            total += segment.size * unread // max(1, segment.end - segment.base_offset)
            if total >= enough:
                break
        return total

    def read(self, *, headers: bool, most_bytes: int) -> tuple[Held, int] | None:
        """The next records, `most_bytes` of them or one record, and about how many bytes they have.

        None at the end of the partition as it is known. The log has a topic. Raises what the log and its segments
        raise; then nothing is open and the position is as before.
        """
        try:
            if self._rest is None and self._coming is not None:
                self._rest, self._coming = self._coming.result(), None
                self._rest_bytes = 0 if self._rest is None else self._rest.nbytes
            if self._is_rewritten():
                self.close()
            if self._rest is None:
                self._rest = self._next(headers, most_bytes)
                self._rest_bytes = 0 if self._rest is None else self._rest.nbytes
        except BaseException:
            self.close()
            raise
        batch, nbytes = self._rest, self._rest_bytes
        if batch is None:
            return None
        rows = batch.num_rows
        if nbytes > most_bytes and rows > 1:
            rows = max(1, rows * most_bytes // nbytes)
            nbytes = nbytes * rows // batch.num_rows
        self._rest = None
        if rows < batch.num_rows:
            self._rest, batch = batch.slice(rows), batch.slice(0, rows)
        self._rest_bytes -= nbytes
        last = batch.positions[-1] if isinstance(batch, FewRecords) else batch.column(_OFFSET)[-1].as_py()
        self.position = last + 1
        self.given_bytes += nbytes
        return batch, nbytes

    @property
    def version(self) -> int:
        """The version of the topic as of which the last records were read."""
        return self._planned_at

    def _is_rewritten(self) -> bool:
        """Whether what is open was rewritten since its reading was planned: then it is read again from the position."""
        topic = self.log.topic
        if topic is None or not self.is_open:
            return False
        return topic.known.rewrites.touch(self.partition, self.position, self._planned_end, self._planned_at)

    def begin(self, helpers: Executor, *, headers: bool, most_bytes: int) -> None:
        """Have a helper decode what the next read hands out, unless it is there, or little."""
        if self._rest is not None or self._coming is not None or self.log.topic is None:
            return
        if self.problem() is not None or self.available(_WORTH_HELP_BYTES) < _WORTH_HELP_BYTES:
            return
        with suppress(RuntimeError):  # they take no more work: then it is done without them
            self._coming = helpers.submit(self._next, headers, most_bytes)

    def _next(self, headers: bool, most_bytes: int) -> Held | None:
        topic = self.log.topic
        assert topic is not None
        self.topic_id = self.topic_id or topic.id
        while True:
            if self._batches is None or self._plan is None:
                self._plan = topic.plan(self.partition, self.position)
                self._planned_end, self._planned_at = self._plan.end, self._plan.version
                if not self._plan.segments:
                    self.position, self._plan = self._plan.end, None
                    return None
                self._batches = fetch.fetch(
                    self.log.lake.storage,
                    topic.folder,
                    self.topic,
                    self._plan,
                    include_headers=headers,
                    batch_bytes=max(most_bytes, DECODED_BYTES),
                    few=True,
                )
            batch = next(self._batches, None)
            if batch is not None:
                return batch
            self.position = self._plan.end  # what is left of it was compacted away
            self._end_plan()

    # --- what there is to report ---------------------------------------------------------------------------

    def wants_turn(self, *, ends: bool, now_s: float) -> bool:
        """Whether a read would report something new: records, an error, or (`ends`) that the end is reached."""
        if self.reported_error and now_s < self.retry_s:
            return False
        state = self.log.state
        if self.log.error is not None or state is None or self.problem() is not None:
            return self.log.is_known
        return state.end(self.partition) > self.position or (ends and self.reported_end != self.position)

    def problem(self) -> TidelogError | None:
        """Why the partition can't be read from its position, as far as the log's state says."""
        topic, state = self.log.topic, self.log.state
        if topic is None or state is None:
            return self.log.error
        if self.topic_id and self.topic_id != topic.id:
            return TopicChangedError(
                f"Topic '{self.topic}' was deleted and created again while partition {self.partition} was read: offsets"
                " of one topic mean nothing in another. Start again from an offset of the new one (earliest, latest)."
            )
        if not state.start(self.partition) <= self.position <= state.end(self.partition):
            return OffsetOutOfRangeError(
                f"Topic '{self.topic}', partition {self.partition}: offset {self.position} is asked for, but it has"
                f" {state.start(self.partition)} to {state.end(self.partition)}. Earlier ones were deleted by"
                " retention or delete_records, later ones are not written yet; start within the range."
            )
        try:
            require_partition(state, self.topic, self.partition)
        except TidelogError as e:
            return e
        return None

    def log_changed(self) -> None:
        """Try again at once what failed, unless only another offset helps."""
        if self.retry_s != float("inf"):
            self.retry_s = 0.0

    def failed(self, error: TidelogError, now_s: float, first_retry_s: float) -> bool:
        """Note a failure; True when the session's reader is to get it. It is tried again later, ever less often.

        An error is reported once for as long as it stays the same, but one of stored records at each try: no waiting
        ends it, and an application that got it once must not take silence for the end of the partition.
        """
        new = str(error) != self.reported_error
        self.reported_error = str(error)
        lasts = isinstance(error, OffsetOutOfRangeError | TopicChangedError)  # until it is put somewhere else
        self.failures = 1 if new else self.failures + 1
        pauses = BackoffRule(first_retry_s, max(LAST_RETRY_S, first_retry_s))
        self.retry_s = float("inf") if lasts else now_s + pauses.pause_s(self.failures)
        return new or isinstance(error, CorruptSegmentError)

    def succeeded(self) -> None:
        """Note that a read succeeded."""
        self.reported_error, self.retry_s = "", float("inf")
