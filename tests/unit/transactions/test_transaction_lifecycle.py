"""The table of a producer's transactions: where each row leads, what it asks for, and what it refuses."""

from collections.abc import Sequence

import pytest

from tidelog.log.base.errors import InvalidTransactionStateError
from tidelog.transactions.lifecycle import REFUSALS, TABLE, Effect, Event, TransactionPhase, move, refusal
from tidelog.transactions.lifecycle import TransactionStage as Stage
from tidelog.transactions.manager import TransactionManager

# What an effect may report. One that reports nothing has done its work when it returns.
REPORTS: dict[Effect, set[Event]] = {
    Effect.START_EPOCH: {Event.INITIALIZED},
    Effect.FINISH_STAGING: {Event.MARK_INCOMPLETE, Event.EMPTY, Event.STAGED},
    Effect.REQUEST_INTENT: {Event.NO_ANSWER, Event.REFUSED, Event.OVERRULED, Event.DECIDED, Event.FENCE},
    Effect.APPLY: {Event.APPLIED},
    Effect.REQUEST_ABORT: {Event.FOUND_ABORTED, Event.FOUND_COMMITTED, Event.FOUND_SETTLED, Event.FENCE},
    Effect.ABORT_OFFSETS: {Event.FOUND_ABORTED, Event.FOUND_SETTLED, Event.FENCE},
    Effect.CLEAN_UP: {Event.CLEANED},
}
# The log never says so: it holds the intent, or no intent was ever in it.
IMPOSSIBLE = {(Stage.PREPARED, Event.FOUND_ABORTED), (Stage.ABORTED, Event.FOUND_COMMITTED)}
CALLS = (Event.INIT, Event.BEGIN, Event.ADD, Event.COMMIT, Event.ABORT)
A, F = Event, Effect


def walk(*events: Event, start: Stage = Stage.OPEN) -> Stage:
    stage = start
    for event in events:
        stage = move(stage, event, "x").stage
    return stage


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ([A.COMMIT, A.STAGED, A.DECIDED, A.APPLIED], Stage.READY),
        ([A.COMMIT, A.EMPTY], Stage.READY),
        ([A.COMMIT, A.STAGED, A.REFUSED, A.COMMIT, A.STAGED, A.DECIDED, A.APPLIED], Stage.READY),
        (
            [A.COMMIT, A.STAGED, A.NO_ANSWER, A.REFUSED, A.COMMIT, A.NO_ANSWER, A.DECIDED, A.APPLIED],
            Stage.READY,
        ),
        ([A.COMMIT, A.STAGED, A.NO_ANSWER, A.ABORT, A.FOUND_COMMITTED, A.COMMIT, A.DECIDED], Stage.PREPARED),
        ([A.COMMIT, A.STAGED, A.OVERRULED, A.ABORT, A.FOUND_ABORTED, A.CLEANED], Stage.READY),
        ([A.COMMIT, A.STAGED, A.COMMIT], Stage.IN_DOUBT),  # the first one was interrupted
        ([A.COMMIT, A.STAGED, A.ABORT, A.FOUND_SETTLED], Stage.FENCED),  # may be committed, or not
        ([A.ABORT, A.FOUND_ABORTED, A.CLEANED], Stage.READY),
        ([A.ABORT, A.FOUND_SETTLED, A.ABORT, A.FOUND_SETTLED, A.CLEANED], Stage.READY),
        ([A.MARK_INCOMPLETE, A.ADD, A.COMMIT, A.ABORT, A.FOUND_ABORTED, A.CLEANED], Stage.READY),
        ([A.COMMIT, A.MARK_INCOMPLETE, A.COMMIT], Stage.SEALED_INCOMPLETE),
        ([A.COMMIT, A.STAGED, A.DECIDED, A.COMMIT, A.ABORT, A.FOUND_SETTLED], Stage.PREPARED),
    ],
)
def test_the_lives_of_a_transaction(events: Sequence[Event], end: Stage) -> None:
    assert walk(*events) is end


@pytest.mark.parametrize(
    ("phase", "calls"),
    [
        (TransactionPhase.NEW, {A.INIT}),
        (TransactionPhase.READY, {A.BEGIN}),
        (TransactionPhase.OPEN, {A.ADD, A.COMMIT, A.ABORT}),
        (TransactionPhase.COMMITTING, {A.COMMIT, A.ABORT}),
        (TransactionPhase.FENCED, set()),
    ],
)
def test_what_a_caller_may_do_in_each_phase(phase: TransactionPhase, calls: set[Event]) -> None:
    stages = [stage for stage in Stage if stage.phase is phase]
    assert {call for call in CALLS if any((stage, call) in TABLE for stage in stages)} == calls
    for stage in stages:
        for call in CALLS:
            if (stage, call) not in TABLE:
                with pytest.raises(InvalidTransactionStateError):
                    move(stage, call, "x")


def test_every_report_of_an_effect_has_a_row_where_the_effect_is_carried_out() -> None:
    """An effect that had done its work and could not say so would leave the log and the producer apart."""
    for (stage, event), row in TABLE.items():
        for effect in row.effects:
            for report in REPORTS.get(effect, ()):
                at = (row.stage, report)
                assert (at in TABLE) is (at not in IMPOSSIBLE), (stage, event, effect, report)
    # After an answer that got lost, the same request reports again.
    assert {(Stage.IN_DOUBT, report) for report in REPORTS[F.REQUEST_INTENT]} <= TABLE.keys()


def test_only_the_last_effect_of_a_row_moves_on() -> None:
    for row in TABLE.values():
        assert not [effect for effect in row.effects[:-1] if effect in REPORTS or effect in REFUSALS], row


def test_staged_files_are_deleted_only_where_no_intent_can_name_them() -> None:
    """In doubt, and once it is decided, the files belong to the log: a purge deletes them if it does not need them."""
    undecided = {
        Stage.SEALED,
        Stage.SEALED_INCOMPLETE,
        Stage.REQUESTED,
        Stage.ABORTED,
    }
    for (stage, event), row in TABLE.items():
        if F.DELETE_STAGED in row.effects:
            assert stage in undecided, (stage, event)
        if F.CLEAN_UP in row.effects:
            assert event is A.FOUND_ABORTED or stage in undecided, (stage, event)
    assert TABLE[Stage.REQUESTED, A.COMMIT].stage is Stage.IN_DOUBT


def test_nothing_is_forgotten_before_the_transaction_is_over() -> None:
    assert {row.stage for row in TABLE.values() if F.RESET in row.effects} == {Stage.READY}
    into_ready = {key for key, row in TABLE.items() if row.stage is Stage.READY and key[0] is not Stage.READY}
    assert {key for key in into_ready if F.RESET not in TABLE[key].effects} == {(Stage.NEW, A.INITIALIZED)}


def test_every_stage_is_reached_and_left() -> None:
    reached = {Stage.NEW}
    while more := {row.stage for (stage, _), row in TABLE.items() if stage in reached} - reached:
        reached |= more
    assert reached == set(Stage)
    for stage in set(Stage) - {Stage.FENCED}:
        assert {row.stage for (at, _), row in TABLE.items() if at is stage} - {stage, Stage.FENCED}


def test_every_effect_has_its_hand_and_every_refusal_its_text() -> None:
    used = {effect for row in TABLE.values() for effect in row.effects}
    assert used == set(Effect)
    source = TransactionManager.__init__.__code__.co_names
    assert {effect.name for effect in set(Effect) - set(REFUSALS)} <= set(source)
    for effect in REFUSALS:
        assert "'x'" in str(refusal(effect, "x", None))
