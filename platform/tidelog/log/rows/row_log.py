"""A table of rows: typed rows in a log behind the door, committed by any number of threads, which share entries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tidelog.log.base.errors import InvalidRecordError, OutcomeUnknownError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Entry, Metadata
from tidelog.log.delta.table_schema import TableShape
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.contract import Machine
from tidelog.log.door.rate_limit import Throttle
from tidelog.log.door.topic_machine import head_check, require_format, stored_config, table_properties, verify_restored
from tidelog.log.rows.files import file_reader
from tidelog.log.rows.flat_combining import Combiner, Waiter
from tidelog.log.rows.rules import RowOutcome, append_rows, decide_create_rows, decide_grow_rows, verify_rows
from tidelog.log.rows.schema import Row
from tidelog.log.rows.state import Fold, ReadRows, RowKind, RowState, rows_version
from tidelog.log.rows.upkeep import RowUpkeep
from tidelog.log.rules.topics import Outcome
from tidelog.log.upkeep.background import Upkeep
from tidelog.log.upkeep.lake_context import LakeContext

F = TypeVar("F", bound=Fold)
R = TypeVar("R")

# A caller's decision.
Decide = Callable[[F], RowOutcome[Any]]

# At most this many decisions go into one entry; the others wait for the next.
MOST_DECISIONS = 512


class _NotCreated(Exception):  # noqa: N818 - a turn of the commit, never seen outside
    """There are rows to append and no table yet."""


class _TooNarrow(Exception):  # noqa: N818 - as above
    """There are rows to append with values in columns that the table lacks: it is to get those of a version."""

    def __init__(self, version: int) -> None:
        self.version = version


@dataclass(frozen=True, slots=True)
class _Answers:
    """The result of each decision of an entry: a response, or the refusal that it raised."""

    responses: list[tuple[Any, Exception | None]]
    rows: list[Row]


class RowLog(Generic[F]):
    """One table of rows of a lake, which need not be there yet. All methods may be called from many threads.

    `name`: also the table's folder below the lake's root. `door`: to its log, for maintenance. `facts`: further
    properties that the table is created with.
    """

    def __init__(self, lake: LakeContext, name: str, kind: RowKind[F], facts: Mapping[str, str]) -> None:
        self._lake = lake
        self.name = name
        self._kind = kind
        self._facts = facts
        read = file_reader(lake.storage, name, kind)
        machine, permit = row_machine(name, kind, read), lake.permit(name)
        self.door = Door(lake.storage, name, machine, lake.clock, lake.ids, time=lake.time, permit=permit)
        self.chores = RowUpkeep(self.door, kind, lake.clock, lake.ids, self._delete_delay_ms)
        chores = (self.chores.compact, self.chores.purge)
        self.upkeep = Upkeep(self.door, lake, chores)
        self._throttle = Throttle()
        self._combiner: Combiner[Decide[F]] = Combiner(self._commit, MOST_DECISIONS, self._interrupted)

    @property
    def version(self) -> int:
        """The version of the log as of the last look at it, -1 before its first entry."""
        return self.door.state.version

    def fact(self, name: str) -> str | None:
        """A property that the table was created with, at the head of its log; None when there is no table."""
        state = self.door.refresh()
        if not state.exists:
            self._lake.require_lake()
        return None if state.metadata is None else state.metadata.configuration.get(name)

    def look(self, at: Callable[[F], R]) -> R:
        """The result of `at` for the fold at the head of the log. It must not change the fold, nor keep it."""
        with self.door.lock:
            state = self.door.refresh()
            if not state.exists:
                self._lake.require_lake()
            return at(state.fold)

    def create(self) -> None:
        """Create the table unless it is there."""
        self._lake.ensure_lake()
        lake, table_id, now_ms = self._lake, self._lake.ids.new(), self._lake.clock.now_ms()
        config = stored_config(self.name, {}, lake.config())
        properties = {**table_properties(config, lake.config()), **self._facts}
        self.door.commit(
            lambda state: decide_create_rows(state, self.name, properties, table_id=table_id, now_ms=now_ms)
        )

    def _grow(self, version: int) -> None:
        self.door.commit(lambda state: decide_grow_rows(state, self.name, version))

    def commit(self, decide: Callable[[F], RowOutcome[R]]) -> R:
        """Append the rows that the pure `decide` chooses, and return its response once they survive a power loss.

        Decisions that wait at once go into one entry, in the order they came; each sees the fold after those before
        it, is made again after each lost race, and may refuse by raising, which only its own caller hears of.
        Raises `OutcomeUnknownError` when the store stops answering: decide again, and see what is there.
        Raises `ContendedLogError`, `StorageError`, when nothing was committed.
        """
        response: R = self._combiner.run(decide)
        return response

    def _commit(self, batch: Sequence[Waiter[Decide[F]]]) -> None:
        """Commit a batch as one entry; every decision in it gets its answer."""
        try:
            answers = self._append([waiter.request for waiter in batch])
        except Exception as e:
            for waiter in batch:
                waiter.answer(None, e)
        else:
            for waiter, (response, refusal) in zip(batch, answers, strict=True):
                waiter.answer(response, refusal)

    def _interrupted(self) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"Whether the rows were committed to '{self.name}' is not known: the thread that committed them with its"
            " own was interrupted. Decide again, and see what is there.",
            request_id="",
        )

    def _append(self, decisions: Sequence[Decide[F]]) -> list[tuple[Any, Exception | None]]:
        lake, door = self._lake, self.door
        wait_s = self._throttle.wait_s(door.state.version, lake.clock.elapsed_s())
        if wait_s:
            lake.clock.sleep(wait_s)
        attempt = _Attempt(self._kind, lake)

        def decide(state: RowState[F]) -> Outcome[_Answers]:
            answers = answer(self._kind, state.fold, decisions)
            if answers.rows and not state.exists:
                raise _NotCreated
            if (version := self._kind.schema.version_of(answers.rows)) > state.rows_version:
                raise _TooNarrow(version)
            return attempt.outcome(state, answers)

        while True:
            try:
                committed = door.commit(decide)
            except _NotCreated:
                self.create()
            except _TooNarrow as e:
                self._grow(e.version)
            else:
                break
        if committed.written:
            self.upkeep.after_commit(committed.version)
        return committed.response.responses

    def _delete_delay_ms(self) -> int:
        key, overrides = TopicConfig.file_delete_delay_ms, self.door.state.overrides
        return stored_config(self.name, overrides, self._lake.config(), key).file_delete_delay_ms


def answer(kind: RowKind[F], fold: F, decisions: Sequence[Decide[F]]) -> _Answers:
    """Make decisions one after another, each on the fold after those before it."""
    after = fold.fork()
    responses: list[tuple[Any, Exception | None]] = []
    rows: list[Row] = []
    for decide in decisions:
        try:
            outcome = decide(after)
            new = [_checked(kind, row) for row in outcome.rows]
        except Exception as e:  # a refusal, or a broken decision: only its own caller hears of it
            responses.append((None, e))
            continue
        after.take(new)
        rows.extend(new)
        responses.append((outcome.response, None))
    return _Answers(responses, rows)


def _checked(kind: RowKind[F], row: Row) -> Row:
    try:
        return kind.schema.checked(row)
    except ValueError as e:
        raise InvalidRecordError(
            f"A row of '{kind.name}' can't be written: {e}. Text is Unicode without lone surrogates, and a number fits"
            " its column. Nothing of the request was written."
        ) from e


class _Attempt(Generic[F]):
    """The file of an entry that is being tried: made again only when a lost race changed the rows."""

    def __init__(self, kind: RowKind[F], lake: LakeContext) -> None:
        self._kind = kind
        # Drawn once: the version in a file's name tells those of one attempt apart.
        self._unique = lake.ids.new()
        self._now_ms = lake.clock.now_ms()
        self._rows: list[Row] = []
        self._known = -1
        self._path = ""
        self._data = b""

    def outcome(self, state: RowState[F], answers: _Answers) -> Outcome[_Answers]:
        """The entry of these answers."""
        if not answers.rows:
            return Outcome((), answers)
        old = self._known < (state.txn(layout.PURGE_TXN) or 0)  # its file may be taken for an orphan
        if answers.rows != self._rows or old:
            self._rows, self._known = answers.rows, state.version
            self._path = layout.rows_path(state.version, self._unique)
            self._data = self._kind.schema.to_file(list(enumerate(self._rows)))
        return append_rows(state, self._rows, self._path, self._data, answers, self._now_ms)


def row_machine(table: str, kind: RowKind[F], read: ReadRows) -> Machine[RowState[F]]:
    """The machine of a table of rows."""

    def verify(state: RowState[F], entry: Entry) -> None:
        if state.version < 0:
            require_format(entry, table, kind.name)
        verify_rows(state, entry, table)

    def verify_checkpoint(state: RowState[F], version: int) -> None:
        verify_restored(state, version, table, kind.name)

    def empty() -> RowState[F]:
        return RowState(kind=kind, read=read)

    def shape(metadata: Metadata) -> TableShape:
        return kind.schema.shape(rows_version(metadata, kind))

    return Machine(empty, verify, verify_checkpoint, head_check(table, shape), RowState.proves_committed)
