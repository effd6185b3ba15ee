"""Group commit: many producers' records for one topic become one log entry, with an outcome for each request.

The engine has no thread and no queue. The owner gathers what waits, begins an entry with it, and calls `advance` when
that is due, until every record has its outcome; a broker drives one engine for each topic. One entry at a time.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from tidelog.log.appends.committer import ShareCommitter
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    OutOfOrderSequenceError,
    ProducerFencedError,
    RequestForgottenError,
    TidelogError,
    TopicChangedError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.delta.schema import LOG_APPEND_TIME
from tidelog.log.door.commit_objects import make_durable
from tidelog.log.group_commit.producer_retries import ProducerRetries
from tidelog.log.group_commit.requests import (
    I32,
    I64,
    Bools,
    Outcomes,
    ProduceRequests,
    late,
    refused_units,
    rows_by_partition,
    together,
)
from tidelog.log.records.checks import to_records
from tidelog.log.rules.appends import AppendAnswer, CommitOutcome, StagedShare, committed
from tidelog.log.rules.sequences import ProducerBatch, Sequences
from tidelog.log.rules.topics import require_partition, require_topic
from tidelog.log.segments.noted import NotedRecords
from tidelog.log.segments.staging import Stager
from tidelog.log.topic import Topic

# What is due so soon is due: a clock's numbers are rounded, and a wait for less than that never ends.
_SOON_S: Final = 1e-6


class GroupCommit:
    """Commits requests for one topic, one entry after another.

    `open_topic` gives a fresh handle of the topic, and creates it where that is allowed; it is called again when the
    topic was deleted. `helpers` write segments beside the caller. `stage_in` takes checked records and their partitions
    instead of the log: a transaction's. Its errors are final, and its records' offsets unknown. `committer` commits
    what is staged; without one, each entry is one of its own.
    """

    def __init__(
        self,
        open_topic: Callable[[], Topic],
        clock: Clock,
        ids: Ids,
        retries: ProducerRetries | None = None,
        helpers: Executor | None = None,
        stage_in: Callable[[pa.Table, I32], None] | None = None,
        committer: ShareCommitter | None = None,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.policy = retries or ProducerRetries()
        self.helpers = helpers
        self.stage_in = stage_in
        self._committer = committer
        self.known: Topic | None = None
        # How often an entry was tried again since the engine began.
        self.retried = 0
        # Whether producers' sequences are judged before an entry is staged, and not when it is committed alone.
        self.judges_first = False
        self._open_topic = open_topic

    def begin(self, *requests: ProduceRequests) -> "PendingEntry":
        """Begin an entry of these requests, whose units are numbered on from one to the next.

        Raises `InvalidRecordError` when rows, partitions, units and sequences don't fit together.
        """
        return PendingEntry(self, together(requests))

    def topic(self) -> Topic:
        """The topic as it is, opened again when it was deleted since. Raises what `open_topic` raises."""
        topic = self.known
        if topic is not None:
            try:
                require_topic(topic.known, topic.name, topic.id)
            except (TopicChangedError, UnknownTopicError):
                topic = self.known = None
        if topic is None:
            topic = self.known = self._open_topic()
        return topic

    def committer(self, topic: Topic) -> ShareCommitter:
        """What commits to the topic."""
        return topic.joint if self._committer is None else self._committer


@dataclass(slots=True)
class _Staged:
    """What is staged of an entry. `here`: it is handed over no more; `elsewhere`: another process may commit it yet."""

    share: StagedShare
    stager: Stager
    here: bool = False
    elsewhere: bool = False

    @property
    def in_doubt(self) -> bool:
        """Whether it may be in the log."""
        return self.share.new_until is not None


class PendingEntry:
    """Requests from their first attempt until every unit has its outcome.

    `cancel` may be called from any thread, all else from one at a time.
    """

    def __init__(self, engine: GroupCommit, requests: ProduceRequests) -> None:
        requests.require_consistent()
        self.outcomes = Outcomes()
        self._engine = engine
        self._requests = requests
        self._open: Bools = np.ones(len(requests.deadlines_s), np.bool_)
        self._left = len(self._open)
        self._staged: _Staged | None = None
        # The answer of another thread or process to what is staged.
        self._awaited: Future[AppendAnswer] | None = None
        self._batches: list[ProducerBatch] = []
        self._numbered: dict[int, int] = {}
        self._given_up_in_doubt = False
        self._cancelled: Exception | None = None
        self._attempts = 0
        self._not_before_s = 0.0

    @property
    def is_done(self) -> bool:
        """Whether every unit has its outcome."""
        return not self._left

    @property
    def in_doubt(self) -> bool:
        """Whether an entry with these records may be in the log."""
        return self._staged is not None and (self._awaited is not None or self._staged.in_doubt)

    @property
    def waits_for(self) -> Future[AppendAnswer] | None:
        """What `advance` needs to have an outcome before it is called again; None for nothing."""
        return self._awaited

    def due_s(self) -> float:
        """In how many seconds `advance` has something to do, 0 for now."""
        if self._cancelled is not None:
            return 0.0
        left_s = self._not_before_s - self._engine.clock.elapsed_s()
        return left_s if left_s > _SOON_S else 0.0

    def cancel(self, error: Exception) -> None:
        """Have what has no outcome yet fail with `error` at the next step. It may land all the same."""
        self._cancelled = error

    def stage_ahead(self) -> None:
        """Stage what is open while the entry before is committed, so that `advance` has only to commit it.

        Nothing is judged by what that entry may change: the door does so when this one's turn has come. Nor is an error
        an outcome here: `advance` stages again what is not staged. For entries whose sequences are known.
        """
        engine, requests = self._engine, self._requests
        is_known = engine.stage_in is None and requests.numbering is None and requests.batches_can_be
        if engine.judges_first or not is_known or self.is_done:
            return
        try:
            self._stage(0, ahead=True)
            if self._staged is not None and requests.acks == -1:
                share, topic = self._staged.share, engine.topic()
                make_durable(topic.storage, [f"{topic.folder}/{segment.path}" for segment in share.segments])
                self._staged.share = replace(share, synced=True)
        except TidelogError:
            self._drop()
        except BaseException:
            self._drop()
            raise

    def advance(self) -> None:
        """Try to commit, once that is due. Returns when the attempt is over; a later call goes on."""
        if self.is_done or self.due_s():
            return
        try:
            self._attempt()
        except TidelogError as e:
            self._drop()
            self._retry_later(e)
        except BaseException as e:  # even Ctrl-C: every record gets an outcome
            self._given_up_in_doubt = self._staged is not None
            self._fail(self._open, e)
            raise
        finally:
            if self.is_done:
                self._count_sequences()

    # --- one attempt ---------------------------------------------------------------------------------------

    def _attempt(self) -> None:
        """Commit what is open, staged again as often as the log has changed. Raises why that fails."""
        answer: AppendAnswer | None = None
        at_least_ms = 0
        if self._awaited is not None:
            answer, self._awaited = self._awaited.result(), None
        while True:
            answer = answer or self._commit(at_least_ms)
            if answer is None or self._is_over(answer):
                return
            at_least_ms = answer.at_least_ms
            answer = None

    def _commit(self, at_least_ms: int) -> AppendAnswer | None:
        """Commit what is staged, or else stage it first; None when nothing is open, or the answer is awaited."""
        left = self._left
        self._answer_late()
        if self._left != left:  # the records of the others must land without those
            self._drop()
        if self._staged is None and not self.is_done:
            self._stage(at_least_ms)
            self._answer_cancelled()
        if self.is_done:
            self._drop()
            return None
        staged, engine = self._staged, self._engine
        if staged is None:  # all is there already, or a transaction's
            return committed({})
        committer = engine.committer(engine.topic())
        answer: AppendAnswer | Future[AppendAnswer] | None = None
        if not (staged.here or staged.in_doubt):
            answer = committer.hand_over(staged.share)
        if answer is None:
            timeout_s = max(0.0, self._first_deadline_s() - engine.clock.elapsed_s())
            answer = committer.commit(staged.share, timeout_s)
        if isinstance(answer, Future):
            self._awaited = answer
            return None
        return answer

    def _is_over(self, answer: AppendAnswer) -> bool:
        """Whether an answer ends the attempt, which else goes on, here or with other segments. Raises why it fails."""
        staged = self._staged
        if answer.elsewhere:
            with suppress(TidelogError):  # the next look sees what was committed
                self._engine.topic().state()
        if answer.outcome is CommitOutcome.COMMITTED or staged is None:
            if not answer.ranges:  # all is there already, by its sequences: no entry names what was staged
                self._drop()
            self.outcomes.ranges = answer.ranges
            self._open[:], self._left, self._staged = False, 0, None
            return True
        if answer.elsewhere:
            staged.here = True
            if answer.outcome is CommitOutcome.UNKNOWN:
                staged.share, staged.elsewhere = staged.share.repeated(), True
            return False
        if answer.outcome is CommitOutcome.UNKNOWN:
            staged.share = staged.share.repeated()
        elif isinstance(answer.error, RequestForgottenError) or (staged.elsewhere and answer.is_stale_for_now):
            # The other process may commit these segments at any time: their records must not be staged once more.
            raise late(in_doubt=True) from answer.error
        elif answer.settles(staged.share):
            self._drop()
            self._staged = None
        if answer.outcome is not CommitOutcome.STALE:
            answer.required()
        self._engine.judges_first |= isinstance(answer.error, OutOfOrderSequenceError | ProducerFencedError)
        return False

    def _drop(self) -> None:
        """Delete what is staged, unless an entry may name it."""
        if self._staged is not None and not self.in_doubt:
            self._staged.stager.abort()
            self._staged = None

    def _stage(self, at_least_ms: int, *, ahead: bool = False) -> None:
        """Check and stage what is open; `ahead`: while the entry before may yet land or not."""
        engine, requests = self._engine, self._requests
        topic = engine.topic()
        now_ms = max(topic.now_ms(), at_least_ms)
        self._refuse_unknown_partitions(topic)
        metadata, config = topic.known.metadata, topic.config()
        notes, rows, chosen = self._plain_notes(topic, now_ms, ahead=ahead), None, requests.partitions
        if notes is None or chosen is None:
            topic.grow_for(requests.table)
            metadata, config = topic.known.metadata, topic.config()
            records, rows = self._checked(topic, now_ms)
            if not records.num_rows:
                return
            chosen = requests.choose(topic.known.partitions, rows)
            records, rows, chosen = self._judge_sequences(topic, records, rows, chosen, ahead=ahead)
        self.outcomes.rows, self.outcomes.chosen = rows, chosen
        self.outcomes.append_ms = now_ms if config.timestamp_type == LOG_APPEND_TIME else None
        if engine.stage_in is not None:
            try:
                engine.stage_in(records, chosen)
            except TidelogError as e:
                self._fail(self._open, e)
        elif len(chosen):
            stager = topic.stager(requests.compression, requests.compression_level, engine.helpers)
            try:
                if notes is None:
                    stager.add(records, chosen, is_all=True)
                else:
                    stager.add_noted(notes, partial(self._as_records, topic, now_ms))
                segments = tuple(stager.finish())
                digest = engine.committer(topic).digest(metadata)
            except BaseException:
                stager.abort()
                raise
            self._staged = _Staged(StagedShare(segments, digest, self._batches, requests.acks), stager)

    def _plain_notes(self, topic: Topic, now_ms: int, *, ahead: bool) -> NotedRecords | None:
        """The records where they are noted, and all can be staged as they are; the door judges their sequences."""
        engine, requests = self._engine, self._requests
        all_new = not requests.batches or ahead or (not engine.judges_first and requests.batches_can_be)
        if not all_new or self._left < len(self._open) or engine.stage_in is not None or topic.typing() is not None:
            return None
        self._batches = list(requests.batches.values())
        return requests.plain_notes(topic.config(), now_ms)

    def _as_records(self, topic: Topic, now_ms: int, table: pa.Table) -> pa.Table:
        judged = self._requests.sizes_judged
        return to_records(table, topic.name, topic.config(), now_ms, sizes_judged=judged, typing=topic.typing())

    def _refuse_unknown_partitions(self, topic: Topic) -> None:
        given, requests = self._requests.partitions, self._requests
        if given is None or requests.unknown_partitions(topic.known.partitions, self._open) is None:
            return
        topic.state()  # it may have grown since the last look
        unknown = requests.unknown_partitions(topic.known.partitions, self._open)
        if unknown is None:
            return
        refused = np.flatnonzero(unknown)
        for unit, row in {int(u): r for u, r in zip(self._units_of(refused), refused, strict=True)}.items():
            try:
                require_partition(topic.known, topic.name, int(given[row]))
            except UnknownPartitionError as e:
                self._fail_unit(unit, e)

    def _checked(self, topic: Topic, now_ms: int) -> tuple[pa.Table, I64 | None]:
        """The records of the units that pass the topic's rules, and which rows those are; None for all."""
        units, checked = self._requests.units, partial(self._as_records, topic, now_ms)
        while not self.is_done:
            rows = self._open_rows()
            table = self._requests.table if rows is None else self._requests.table.take(pa.array(rows))
            own = units if units is None or rows is None else units[rows]
            records, refused = refused_units(table, own, checked)
            if not refused:
                return records, rows
            for unit, error in refused.items():
                self._fail_unit(unit, error)
        return self._requests.table.slice(0, 0), None

    def _judge_sequences(
        self,
        topic: Topic,
        records: pa.Table,
        rows: I64 | None,
        chosen: I32,
        *,
        ahead: bool = False,
        is_newest: bool = False,
    ) -> tuple[pa.Table, I64 | None, I32]:
        """Leave out what the producers' sequences refuse, and what is there already.

        Whether all is new is what the door judges, as most often it is: only what it has refused is judged here, and
        what comes next, until all is new again. Where a batch seems to be missing, the log is looked at again: another
        process may have taken it in.
        """
        requests, self._batches, engine = self._requests, [], self._engine
        if requests.numbering is None:
            if not requests.batches:
                return records, rows, chosen
            if ahead or (engine.stage_in is None and not engine.judges_first and requests.batches_can_be):
                self._batches = [batch for unit, batch in requests.batches.items() if self._open[unit]]
                return records, rows, chosen
        counts = rows_by_partition(chosen)
        sequences = Sequences(topic.known, topic.name)
        if requests.numbering is not None:
            self._numbered = counts
            given = {0: requests.numbering.batch(counts)}
        else:
            given = {unit: batch for unit, batch in requests.batches.items() if self._open[unit]}
        left_out = np.zeros(len(chosen), np.bool_)
        refused: dict[int, TidelogError] = {}
        for unit, batch in given.items():
            own = slice(None) if requests.numbering is not None else self._rows_of(unit, rows)
            try:
                repeated = sequences.take(batch)
            except TidelogError as e:
                if requests.numbering is not None:
                    raise
                refused[unit] = e
                left_out[own] = True
                continue
            if repeated:
                left_out[own] |= np.isin(chosen[own], list(repeated))
            new = {p: s for p, s in batch.sequences.items() if p not in repeated}
            self._batches += [replace(batch, sequences=new)] if new else []
        if not is_newest and any(isinstance(e, OutOfOrderSequenceError) for e in refused.values()):
            topic.state()
            return self._judge_sequences(topic, records, rows, chosen, is_newest=True)
        for unit, error in refused.items():
            self._fail_unit(unit, error)
        engine.judges_first = bool(left_out.any())
        if not engine.judges_first:
            return records, rows, chosen
        kept = np.flatnonzero(~left_out)
        return records.take(pa.array(kept)), kept if rows is None else rows[kept], chosen[kept]

    # --- outcomes ------------------------------------------------------------------------------------------

    def _open_rows(self) -> I64 | None:
        """The rows of the units that have no outcome; None for all."""
        units = self._requests.units
        return None if units is None or self._left == len(self._open) else np.flatnonzero(self._open[units])

    def _rows_of(self, unit: int, rows: I64 | None) -> slice:
        """Where the unit's rows are among `rows`."""
        units = self._requests.units
        if units is None:
            return slice(None)
        own = units if rows is None else units[rows]
        return slice(int(np.searchsorted(own, unit)), int(np.searchsorted(own, unit, side="right")))

    def _units_of(self, rows: I64) -> list[int]:
        units = self._requests.units
        return [0] * len(rows) if units is None else units[rows].tolist()

    def _first_deadline_s(self) -> float:
        deadlines_s = self._requests.deadlines_s
        return float((deadlines_s if self._left == len(deadlines_s) else deadlines_s[self._open]).min())

    def _answer_cancelled(self) -> None:
        if self._cancelled is not None:
            self._fail(self._open, self._cancelled)

    def _answer_late(self) -> None:
        """Fail the units whose time is up."""
        self._answer_cancelled()
        now_s = self._engine.clock.elapsed_s()
        if self.is_done or now_s < self._first_deadline_s():
            return
        over = self._open & (self._requests.deadlines_s <= now_s)
        self._fail(over, late(in_doubt=self.in_doubt))

    def _fail_unit(self, unit: int, error: BaseException) -> None:
        self.outcomes.errors[unit] = error
        self._left -= int(self._open[unit])
        self._open[unit] = False

    def _fail(self, units: Bools, error: BaseException) -> None:
        failed = np.flatnonzero(units).tolist()
        self._given_up_in_doubt |= self.in_doubt and bool(failed)
        self.outcomes.errors.update(dict.fromkeys(failed, error))
        self._left -= len(failed)
        self._open[failed] = False

    def _retry_later(self, error: TidelogError) -> None:
        """Try again after a pause, or give up."""
        engine, policy = self._engine, self._engine.policy
        self._attempts += 1
        if not policy.repeats(error, self._attempts):
            if self._requests.numbering is not None and isinstance(
                error, OutOfOrderSequenceError | ProducerFencedError
            ):
                self._requests.numbering.reset_producer_id()
                self._numbered = {}
            self._fail(self._open, error)
            return
        engine.retried += 1
        # Not past the time when a unit must be answered.
        again_s = engine.clock.elapsed_s() + policy.pause_s(self._attempts, engine.ids.fraction())
        self._not_before_s = min(again_s, self._first_deadline_s()) if not self.is_done else 0.0

    def _count_sequences(self) -> None:
        """Move the producer's sequences past the records that landed, or to a new epoch where that is unknown."""
        numbering = self._requests.numbering
        if numbering is None:
            return
        if self._given_up_in_doubt:
            numbering.bump_epoch()
        elif len(self.outcomes.errors) < len(self._open):
            numbering.landed(self._numbered)
