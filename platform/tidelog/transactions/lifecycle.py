"""The life of one producer's transactions as a table: (stage, event) -> (stage, effects). Pure.

`TransactionManager` carries the effects out, each of which reports by a further event how it went. An event that a
stage has no row for is refused, and changes nothing.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum, auto
from typing import Final, NamedTuple

from tidelog.log.base.errors import (
    InvalidTransactionStateError,
    ProducerFencedError,
    TidelogError,
    TransactionAbortedError,
)


class TransactionPhase(StrEnum):
    """Where a producer is, as its caller needs to know it: what the caller may do next."""

    NEW = "new"
    READY = "ready"
    OPEN = "open"
    # The log has committed the transaction, or may have: only commit leads on.
    COMMITTING = "committing"
    FENCED = "fenced"


class TransactionStage(StrEnum):
    """Where a producer is, exactly."""

    NEW = auto()
    READY = auto()
    OPEN = auto()
    # Something that was to be in the transaction is not: it can only be aborted.
    OPEN_INCOMPLETE = auto()
    # A commit or an abort has begun: nothing can be added. The log holds no decision.
    SEALED = auto()
    SEALED_INCOMPLETE = auto()
    # The first request for an intent is under way.
    REQUESTED = auto()
    # A request for an intent went out, and its answer is not known.
    IN_DOUBT = auto()
    # The log holds the intent, and the manager knows it: Kafka's PrepareCommit.
    PREPARED = auto()
    # It is aborted: what it left, and its number in the log, are still to be settled.
    ABORTED = auto()
    FENCED = auto()

    @property
    def phase(self) -> TransactionPhase:
        """The stage as the caller sees it."""
        return _PHASES.get(self, TransactionPhase.OPEN)


class Event(StrEnum):
    """What a caller asks for, or how an effect went."""

    # The caller's.
    INIT = auto()
    BEGIN = auto()
    ADD = auto()
    # Something that was to be in the transaction can't be.
    MARK_INCOMPLETE = auto()
    COMMIT = auto()
    ABORT = auto()
    # Of effects.
    INITIALIZED = auto()
    # All that was added is durable.
    STAGED = auto()
    # Nothing was added that needs a decision.
    EMPTY = auto()
    # A request for an intent: its outcome is unknown; it was refused, and is not in the log; the log holds an abort
    # in its place; the log holds it; it is in all its topics and groups.
    NO_ANSWER = auto()
    REFUSED = auto()
    OVERRULED = auto()
    DECIDED = auto()
    APPLIED = auto()
    # What the log says when it is asked to abort: it is aborted; it is committed; the log keeps no more of it.
    FOUND_ABORTED = auto()
    FOUND_COMMITTED = auto()
    FOUND_SETTLED = auto()
    # What an aborted transaction left is removed.
    CLEANED = auto()
    # A newer producer has the id, or the id was forgotten.
    FENCE = auto()


class Effect(StrEnum):
    """What is to be done on the way to a stage. The last one of a row may report a further event."""

    START_EPOCH = auto()
    START_TIMER = auto()
    REFUSE_INCOMPLETE = auto()
    REFUSE_ABORTED = auto()
    REFUSE_COMMITTED = auto()
    REFUSE_UNKNOWN = auto()
    REQUIRE_IN_TIME = auto()
    # Let nothing more be added, and wait for what is being added.
    SEAL = auto()
    # Write what is still in memory, and make all of it durable.
    FINISH_STAGING = auto()
    REQUEST_INTENT = auto()
    # Bring the intent into its topics and groups.
    APPLY = auto()
    # Abort in the log, unless it is decided.
    REQUEST_ABORT = auto()
    # The same, but only if offsets wait for the transaction: the log knows nothing else of it.
    ABORT_OFFSETS = auto()
    # Drop the offsets that wait for the transaction, and delete the staged files.
    CLEAN_UP = auto()
    # Delete the staged files: it is certain that no intent names them.
    DELETE_STAGED = auto()
    # Forget the transaction: the next one may begin.
    RESET = auto()


class Move(NamedTuple):
    """A row's right side."""

    stage: TransactionStage
    effects: tuple[Effect, ...] = ()


_PHASES: Final[Mapping[TransactionStage, TransactionPhase]] = {
    TransactionStage.NEW: TransactionPhase.NEW,
    TransactionStage.READY: TransactionPhase.READY,
    TransactionStage.REQUESTED: TransactionPhase.COMMITTING,
    TransactionStage.IN_DOUBT: TransactionPhase.COMMITTING,
    TransactionStage.PREPARED: TransactionPhase.COMMITTING,
    TransactionStage.FENCED: TransactionPhase.FENCED,
}


def _rows() -> Iterator[tuple[TransactionStage, Event, Move]]:
    s, e, f = TransactionStage, Event, Effect
    yield s.NEW, e.INIT, Move(s.NEW, (f.START_EPOCH,))
    yield s.NEW, e.INITIALIZED, Move(s.READY)
    yield s.READY, e.BEGIN, Move(s.OPEN, (f.START_TIMER,))

    # What is added while the transaction is open.
    yield s.OPEN, e.ADD, Move(s.OPEN)
    yield s.OPEN_INCOMPLETE, e.ADD, Move(s.OPEN_INCOMPLETE)
    for stage in TransactionStage:
        yield stage, e.MARK_INCOMPLETE, Move(stage)
    yield s.OPEN, e.MARK_INCOMPLETE, Move(s.OPEN_INCOMPLETE)
    yield s.SEALED, e.MARK_INCOMPLETE, Move(s.SEALED_INCOMPLETE)

    # A commit: seal, stage, decide, apply. A repeat goes on where the one before stopped.
    for stage in (s.OPEN, s.SEALED):
        yield stage, e.COMMIT, Move(s.SEALED, (f.SEAL, f.REQUIRE_IN_TIME, f.FINISH_STAGING))
    for stage in (s.OPEN_INCOMPLETE, s.SEALED_INCOMPLETE):
        yield stage, e.COMMIT, Move(stage, (f.REFUSE_INCOMPLETE,))
    yield s.SEALED, e.EMPTY, Move(s.READY, (f.DELETE_STAGED, f.RESET))
    yield s.SEALED, e.STAGED, Move(s.REQUESTED, (f.REQUEST_INTENT,))
    # One that was interrupted, by a signal perhaps, may have left its intent.
    for stage in (s.REQUESTED, s.IN_DOUBT):
        yield stage, e.COMMIT, Move(s.IN_DOUBT, (f.REQUEST_INTENT,))
        yield stage, e.NO_ANSWER, Move(s.IN_DOUBT)
        yield stage, e.OVERRULED, Move(s.ABORTED)
        yield stage, e.DECIDED, Move(s.PREPARED, (f.APPLY,))
    yield s.REQUESTED, e.REFUSED, Move(s.SEALED)
    yield s.IN_DOUBT, e.REFUSED, Move(s.IN_DOUBT)
    yield s.PREPARED, e.COMMIT, Move(s.PREPARED, (f.APPLY,))
    yield s.PREPARED, e.APPLIED, Move(s.READY, (f.RESET,))
    yield s.ABORTED, e.COMMIT, Move(s.ABORTED, (f.REFUSE_ABORTED,))

    # An abort: seal, ask the log unless it can't know of the transaction, remove what it left.
    for stage, sealed in (
        (s.OPEN, s.SEALED),
        (s.SEALED, s.SEALED),
        (s.OPEN_INCOMPLETE, s.SEALED_INCOMPLETE),
        (s.SEALED_INCOMPLETE, s.SEALED_INCOMPLETE),
    ):
        yield stage, e.ABORT, Move(sealed, (f.SEAL, f.ABORT_OFFSETS))
    yield s.REQUESTED, e.ABORT, Move(s.IN_DOUBT, (f.REQUEST_ABORT,))
    for stage in (s.IN_DOUBT, s.PREPARED, s.ABORTED):
        yield stage, e.ABORT, Move(stage, (f.REQUEST_ABORT,))
    for stage in (s.SEALED, s.SEALED_INCOMPLETE, s.IN_DOUBT, s.ABORTED):
        yield stage, e.FOUND_ABORTED, Move(s.ABORTED, (f.CLEAN_UP,))
    for stage in (s.SEALED, s.SEALED_INCOMPLETE, s.ABORTED):
        yield stage, e.FOUND_SETTLED, Move(s.ABORTED, (f.CLEAN_UP,))
    yield s.IN_DOUBT, e.FOUND_COMMITTED, Move(s.IN_DOUBT, (f.REFUSE_COMMITTED,))
    yield s.IN_DOUBT, e.FOUND_SETTLED, Move(s.FENCED, (f.REFUSE_UNKNOWN,))
    for event in (e.FOUND_COMMITTED, e.FOUND_SETTLED):
        yield s.PREPARED, event, Move(s.PREPARED, (f.REFUSE_COMMITTED,))
    yield s.ABORTED, e.CLEANED, Move(s.READY, (f.RESET,))

    # Files that no intent can name are the producer's to delete; others are left to a purge.
    for stage in TransactionStage:
        yield stage, e.FENCE, Move(s.FENCED)
    for stage in (s.SEALED, s.SEALED_INCOMPLETE, s.REQUESTED, s.ABORTED):
        yield stage, e.FENCE, Move(s.FENCED, (f.DELETE_STAGED,))


# A later row replaces an earlier one of the same stage and event.
TABLE: Final[Mapping[tuple[TransactionStage, Event], Move]] = {(stage, event): move for stage, event, move in _rows()}

_HINTS: Final[Mapping[TransactionPhase, str]] = {
    TransactionPhase.NEW: "call init_transactions first",
    TransactionPhase.READY: "call begin_transaction first",
    TransactionPhase.OPEN: "commit or abort it first",
    TransactionPhase.COMMITTING: "call commit_transaction again, until it returns",
    TransactionPhase.FENCED: "close the producer",
}


def move(stage: TransactionStage, event: Event, transactional_id: str) -> Move:
    """The row of a stage and an event. Raises `InvalidTransactionStateError` where there is none."""
    found = TABLE.get((stage, event))
    if found is not None:
        return found
    if event is Event.ADD and stage.phase is TransactionPhase.OPEN:
        raise InvalidTransactionStateError(
            f"The transaction of {transactional_id!r} is being committed, or that has failed: nothing can be added to"
            " it any more. Call commit_transaction again, or abort_transaction."
        )
    raise InvalidTransactionStateError(
        f"The producer with transactional id {transactional_id!r} can't do that now: its transaction is"
        f" {stage.phase.value}; {_HINTS[stage.phase]}."
    )


# By effect: the error that a call is refused with, and what it says.
REFUSALS: Final[Mapping[Effect, tuple[type[TidelogError], str]]] = {
    Effect.REFUSE_INCOMPLETE: (
        TransactionAbortedError,
        "The transaction of {name!r} can't be committed: something that was to be in it is not ({missing}). Call"
        " abort_transaction, and begin it again.",
    ),
    Effect.REFUSE_ABORTED: (
        TransactionAbortedError,
        "The transaction of {name!r} was aborted, by its producer or by an operator. Nothing of it is there: call"
        " abort_transaction, and begin it again.",
    ),
    Effect.REFUSE_COMMITTED: (
        InvalidTransactionStateError,
        "The transaction of {name!r} is committed, and can't be aborted any more: its commit had succeeded without an"
        " answer. Call commit again, which finishes it.",
    ),
    Effect.REFUSE_UNKNOWN: (
        ProducerFencedError,
        "Whether the transaction of {name!r} was committed is unknown now: its commit had no answer, and the"
        " log has later transactions of the id. Close this producer, and read the topics before you send the records"
        " again.",
    ),
}


def refusal(effect: Effect, transactional_id: str, missing: BaseException | None) -> TidelogError:
    """What a call is refused with by one of `REFUSALS`; `missing`: why the transaction is incomplete."""
    error, text = REFUSALS[effect]
    return error(text.format(name=transactional_id, missing=missing))


def timed_out(transactional_id: str, timeout_ms: int) -> TransactionAbortedError:
    """What a commit is refused with that comes after the transaction's time-out."""
    return TransactionAbortedError(
        f"The transaction of {transactional_id!r} is open for longer than transaction.timeout.ms ({timeout_ms}), so"
        " that it can't be committed: other processes may have aborted it. Call abort_transaction, and begin it again;"
        " raise transaction.timeout.ms for long ones."
    )
