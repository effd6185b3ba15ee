"""The rules of transactions as tables: what each decision makes of what the log says."""

import io
from collections.abc import Sequence
from typing import Any

import pytest
from support.logs import START_MS

from tidelog.log.base.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    ProducerFencedError,
    SegmentTooOldError,
    StaleBatchError,
    TransactionAbortedError,
    UnknownTransactionalIdError,
)
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.segments.writer import Staged
from tidelog.transactions import rules
from tidelog.transactions.model import (
    EPOCHS_OF_AN_ID,
    MAX_EPOCH,
    IntentPart,
    State,
    Transactional,
    TransactionKey,
    Verdict,
    marker_version,
)
from tidelog.transactions.rows import KIND, Expired, TransactionsFold, transactional_row

NOW = START_MS
PRODUCER = 77


class Log:
    """The fold, going on by what is decided."""

    def __init__(self) -> None:
        self.fold = TransactionsFold()
        self.rows: list[Any] = []

    def take(self, outcome: RowOutcome[Any]) -> Any:
        rows = [KIND.schema.checked(row) for row in outcome.rows]
        self.rows.extend(rows)
        self.fold.take(rows)
        return outcome.response

    def init(self, name: str = "x", new_id: int = PRODUCER) -> Transactional:
        found: Transactional = self.take(rules.decide_init(self.fold, name, 60_000, new_id, NOW))
        return found

    def intent(self, key: TransactionKey, *, version: int = 3, **more: Any) -> Any:
        return self.take(rules.decide_intent(self.fold, key, [part(version)], ["g"], NOW, **more))

    def abort(self, key: TransactionKey) -> Any:
        return self.take(rules.decide_abort(self.fold, key, NOW))

    def complete(self, key: TransactionKey) -> None:
        self.take(rules.decide_complete(self.fold, [key], NOW))

    def get(self, name: str = "x") -> Transactional:
        found = self.fold.get(name)
        assert found is not None
        return found


def part(version: int = 3, topic_id: str = "id-a") -> IntentPart:
    path = f"partition=0/{version}-u.parquet"
    return IntentPart("a", topic_id, (Staged(0, path, 5, 100, NOW, NOW + 1, version, topic_id),))


def key(epoch: int, number: int, name: str = "x") -> TransactionKey:
    return TransactionKey(name, PRODUCER, epoch, number)


def after(events: Sequence[str]) -> Log:
    """The log after events of id x: init, intent, abort and done, each of the transaction whose turn it is."""
    log = Log()
    for event in events:
        if event == "init":
            log.init()
            continue
        one = log.get()
        if event == "done":
            assert one.intent is not None
            log.complete(one.key_of(one.intent))
        else:
            getattr(log, event)(one.key(one.number + 1))
    return log


OPEN, COMMITTED, ABORTED, SETTLED = Verdict.OPEN, Verdict.COMMITTED, Verdict.ABORTED, Verdict.SETTLED

#  events of x, the transaction asked about (epoch, number) -> what became of it, Kafka's state of x
VERDICTS: dict[str, tuple[list[str], tuple[int, int], Verdict, State]] = {
    "just begun": (["init"], (0, 1), OPEN, State.EMPTY),
    "decided": (["init", "intent"], (0, 1), COMMITTED, State.PREPARE_COMMIT),
    "done": (["init", "intent", "done"], (0, 1), COMMITTED, State.COMPLETE_COMMIT),
    "the next": (["init", "intent", "done"], (0, 2), OPEN, State.COMPLETE_COMMIT),
    "the one before": (["init", "intent", "done", "intent"], (0, 1), SETTLED, State.PREPARE_COMMIT),
    "aborted": (["init", "abort"], (0, 1), ABORTED, State.COMPLETE_ABORT),
    "after an abort": (["init", "abort"], (0, 2), OPEN, State.COMPLETE_ABORT),
    "fenced while open": (["init", "init"], (0, 1), SETTLED, State.EMPTY),
    "fenced after its intent": (["init", "intent", "init"], (0, 1), COMMITTED, State.PREPARE_COMMIT),
    "of the new epoch, the old one's intent not done": (["init", "intent", "init"], (1, 1), OPEN, State.PREPARE_COMMIT),
    "fenced after its intent, which is done": (["init", "intent", "init", "done"], (0, 1), SETTLED, State.EMPTY),
    "aborted while the one before is not done": (
        ["init", "intent", "abort"],
        (0, 2),
        ABORTED,
        State.PREPARE_COMMIT,
    ),
    "not done, while the next is aborted": (["init", "intent", "abort"], (0, 1), COMMITTED, State.PREPARE_COMMIT),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_what_became_of_a_transaction(case: str) -> None:
    events, (epoch, number), verdict, state = VERDICTS[case]
    log = after(events)
    assert rules.verdict(log.fold, key(epoch, number)) is verdict
    assert log.get().state is state


def test_of_an_unknown_id_every_transaction_is_settled() -> None:
    assert rules.verdict(TransactionsFold(), key(0, 1)) is SETTLED


INTENTS: dict[str, tuple[list[str], tuple[int, int], type[Exception] | None]] = {
    "the first": (["init"], (0, 1), None),
    "the next": (["init", "intent", "done"], (0, 2), None),
    "after an abort": (["init", "abort"], (0, 2), None),
    "in a new epoch": (["init", "intent", "done", "init"], (1, 1), None),
    "unknown": ([], (0, 1), UnknownTransactionalIdError),
    "fenced": (["init", "init"], (0, 1), ProducerFencedError),
    "aborted": (["init", "abort"], (0, 1), TransactionAbortedError),
    "the one before is not done": (["init", "intent"], (0, 2), ConcurrentTransactionsError),
    "an earlier epoch's is not done": (["init", "intent", "init"], (1, 1), ConcurrentTransactionsError),
    "one is skipped": (["init"], (0, 2), InvalidTransactionStateError),
    "one of before": (["init", "intent", "done", "intent", "done"], (0, 1), InvalidTransactionStateError),
}


@pytest.mark.parametrize("case", INTENTS)
def test_who_may_commit(case: str) -> None:
    events, (epoch, number), refusal = INTENTS[case]
    log = after(events)
    if refusal is None:
        intent = log.intent(key(epoch, number))
        assert (intent.epoch, intent.number) == (epoch, number)
        assert log.get().intent == intent
    else:
        with pytest.raises(refusal):
            log.intent(key(epoch, number))


def test_a_repeat_of_an_intent_changes_nothing() -> None:
    log = after(["init"])
    first = log.intent(key(0, 1))
    written = len(log.rows)
    assert log.intent(key(0, 1), version=9) == first  # the first one's segments stand
    log.complete(key(0, 1))
    assert log.intent(key(0, 1)) is None
    log.complete(key(0, 1))
    assert len(log.rows) == written + 1


def test_an_intent_may_say_that_the_one_before_is_done() -> None:
    log = after(["init", "intent"])
    with pytest.raises(ConcurrentTransactionsError):
        log.intent(key(0, 2), completed=key(0, 2))
    assert log.intent(key(0, 2), completed=key(0, 1)).number == 2
    log.complete(key(0, 1))  # noted too late, by another process
    assert log.get().intent is not None


def test_intents_are_counted_over_all_ids() -> None:
    log = Log()
    log.init("x")
    log.init("y")
    assert [log.intent(key(0, 1, "y")).sequence, log.intent(key(0, 1)).sequence] == [1, 2]


def test_of_a_commit_and_an_abort_the_log_picks_one() -> None:
    log = after(["init", "intent"])
    assert log.abort(key(0, 1)) is COMMITTED
    log = after(["init", "abort"])
    written = len(log.rows)
    assert log.abort(key(0, 1)) is ABORTED
    assert len(log.rows) == written
    log = after(["init", "init"])
    assert log.abort(key(0, 1)) is SETTLED


# --- epochs ------------------------------------------------------------------------------------------------


def test_an_epoch_keeps_the_producer_id_until_kafkas_epochs_run_out() -> None:
    log = Log()
    assert (log.init().epoch, log.get().producer_id) == (0, PRODUCER)
    assert (log.init(new_id=5).epoch, log.get().producer_id) == (1, PRODUCER)
    last = Transactional("x", PRODUCER, EPOCHS_OF_AN_ID - 1, 60_000)
    log.fold.take([transactional_row("init", last)])
    begun = log.init(new_id=5)
    assert (begun.epoch, begun.producer_id, begun.kafka_epoch) == (EPOCHS_OF_AN_ID, 5, 0)
    log.fold.take([transactional_row("init", Transactional("x", PRODUCER, MAX_EPOCH, 60_000))])
    with pytest.raises(InvalidTransactionStateError, match="used up"):
        log.init()


def test_epochs_go_on_where_an_id_was_forgotten() -> None:
    log = after(["init", "init", "init", "intent", "done"])
    log.init("y")
    assert log.take(rules.decide_expire(log.fold, NOW)) == []
    assert log.take(rules.decide_expire(log.fold, NOW + 1)) == ["x", "y"]
    assert (list(log.fold.all()), log.fold.expired) == ([], Expired(2, 1))
    assert log.init("y").epoch == 3
    assert log.intent(key(3, 1, "y")).sequence == 2


def test_what_is_not_done_and_what_has_batches_is_not_forgotten() -> None:
    log = after(["init", "intent"])
    log.init("q")
    log.intent(key(0, 1, "q"), batch=4)
    log.complete(key(0, 1, "q"))
    assert log.take(rules.decide_expire(log.fold, NOW + 1)) == []


# --- batches and floors ------------------------------------------------------------------------------------


def test_a_batch_is_committed_once_in_whatever_epoch() -> None:
    log = after(["init"])
    assert log.intent(key(0, 1), batch=7).number == 1
    log.complete(key(0, 1))
    log.init()
    written = len(log.rows)
    assert log.intent(key(1, 1), batch=7) is None
    with pytest.raises(StaleBatchError):
        log.intent(key(1, 1), batch=6)
    assert len(log.rows) == written
    assert log.intent(key(1, 1), batch=8).number == 1
    assert log.get().batch == 8


def test_an_intent_names_no_segment_below_the_purge_floor() -> None:
    log = after(["init"])
    assert log.take(rules.decide_floor(log.fold, "a", "id-a", 4)) == []
    log.take(rules.decide_floor(log.fold, "a", "id-a", 2))  # it never falls
    with pytest.raises(SegmentTooOldError):
        log.intent(key(0, 1), version=3)
    log.intent(key(0, 1), version=4)
    assert log.take(rules.decide_floor(log.fold, "a", "id-a", 9)) == ["x"]
    assert log.take(rules.decide_floor(log.fold, "a", "id-other", 9)) == []
    log.take(rules.decide_drop_floors(log.fold, ["id-a", "id-unknown"]))
    assert set(log.fold.floors) == {"id-other"}


def test_what_is_done_is_told_by_sequence_and_by_id() -> None:
    log = Log()
    for name in ("x", "y", "z"):
        log.init(name)
        log.intent(key(0, 1, name))
    log.complete(key(0, 1, "x"))
    log.complete(key(0, 1, "z"))
    told = rules.completed(log.fold)
    assert told.sequence == 1
    assert [told.up_to(name) for name in ("x", "y", "z")] == [1, 0, 1]
    assert told.up_to("never") < 0
    log.complete(key(0, 1, "y"))
    log.take(rules.decide_expire(log.fold, NOW + 1))
    told = rules.completed(log.fold)
    assert (told.sequence, told.up_to("x")) == (3, marker_version(1, 0) - 1)


def test_the_fold_of_the_newest_row_of_each_key_is_the_fold_of_all() -> None:
    log = after(["init", "intent", "init", "done", "intent", "done", "abort"])
    log.init("y")
    log.take(rules.decide_floor(log.fold, "a", "id-a", 4))
    log.take(rules.decide_floor(log.fold, "a", "id-a", 5))
    log.take(rules.decide_expire(log.fold, NOW + 1))
    log.init("x")
    log.intent(key(2, 1, "x"), version=6)
    newest = {KIND.key(row): row for row in log.rows}
    kept = [row for at, row in enumerate(log.rows) if newest[KIND.key(row)] is log.rows[at]]
    again = TransactionsFold()
    again.take([row for _, row in KIND.schema.from_file(_file(kept))])
    assert again == log.fold
    assert len(kept) < len(log.rows)


def _file(rows: Sequence[Any]) -> Any:
    return io.BytesIO(KIND.schema.to_file(list(enumerate(rows))))
