"""The rules of transactions that brokers hold, as tables: which producer may do what, and what a repeat finds."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.part_log import ABORT, COMMIT, NOW, PLACE, Log, batch, identity, segment

from tidelog.log.base.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    SegmentTooOldError,
    TidelogError,
    UnknownTransactionalIdError,
)
from tidelog.log.rows.rules import RowOutcome
from tidelog.transactions import part_rules, rules
from tidelog.transactions.model import EPOCHS_OF_AN_ID, State, TransactionKey, Verdict
from tidelog.transactions.part_rules import BatchJudge, Begun, ProducerIdentity
from tidelog.transactions.rows import KIND, TransactionsFold

# --- the producer ------------------------------------------------------------------------------------------


STRANGERS: list[tuple[str, dict[str, Any], type[TidelogError]]] = [
    ("another transactional id", {"transactional_id": "y"}, UnknownTransactionalIdError),
    ("another producer id", {"producer_id": 78}, UnknownTransactionalIdError),
    ("an epoch that is over", {"epoch": 0}, ProducerFencedError),
    ("an epoch to come", {"epoch": 2}, ProducerFencedError),
]


@pytest.mark.parametrize(("changed", "error"), [row[1:] for row in STRANGERS], ids=[row[0] for row in STRANGERS])
@pytest.mark.parametrize(
    "ask",
    [
        lambda log, who: log.add(who, 0),
        lambda log, who: part_rules.require_added(log.fold, who, [PLACE]),
        lambda log, who: BatchJudge(log.fold).take(batch(who)),
        lambda log, who: log.end(who, COMMIT),
        lambda log, who: log.end(who, ABORT, raises=False),
    ],
    ids=["add", "verify", "judge", "commit", "abort"],
)
def test_only_the_producer_of_the_newest_epoch_may_ask(
    changed: dict[str, Any], error: type[TidelogError], ask: Callable[[Log, ProducerIdentity], Any]
) -> None:
    log = Log()
    log.begin()
    producer = log.begin()
    log.stage(producer)
    with pytest.raises(error):
        ask(log, replace(producer, **changed))


# --- beginning ---------------------------------------------------------------------------------------------


def test_a_producer_that_begins_aborts_what_its_predecessor_left() -> None:
    log = Log()
    first = log.begin()
    log.stage(first)
    begun: Begun = log.take(part_rules.decide_begin(log.fold, "x", 60_000, 77, NOW))
    assert begun.dropped is not None
    assert [s.path for part in begun.dropped.parts for s in part.segments] == ["partition=0/1.parquet"]
    assert log.fold.open("x") is None
    with pytest.raises(ProducerFencedError):
        log.end(first, COMMIT)


def test_a_producer_that_goes_on_gets_the_next_epoch_once() -> None:
    log = Log()
    first = log.begin()
    second = log.begin(expected=first)
    assert second == replace(first, epoch=first.epoch + 1)
    assert log.begin(expected=first) == second, "a repeat, whose first answer was lost"
    third = log.begin(expected=second)
    assert third.epoch == first.epoch + 2
    with pytest.raises(ProducerFencedError):
        log.begin(expected=first)


def test_a_producer_that_was_replaced_does_not_go_on() -> None:
    log = Log()
    first = log.begin()
    second = log.begin()
    with pytest.raises(ProducerFencedError):
        log.begin(expected=first)
    assert identity(log.get()) == second


def test_a_producer_whose_id_is_not_known_begins_anew() -> None:
    assert Log().begin(expected=ProducerIdentity("x", 5, 5)).epoch == 0


# --- adding and staging ------------------------------------------------------------------------------------


def test_what_is_added_again_changes_nothing() -> None:
    log = Log()
    producer = log.begin()
    key = log.add(producer, 0, 1, groups=["g"])
    rows = len(log.rows)
    assert log.add(producer, 1, 0, groups=["g"]) == key
    assert len(log.rows) == rows
    there = log.fold.open("x")
    assert there is not None
    assert (there.partitions, there.groups, there.parts) == ([("a", 0), ("a", 1)], ("g",), ())
    assert there.key == TransactionKey("x", 77, 0, 1)


def test_older_producers_stage_only_where_they_have_added() -> None:
    log = Log()
    producer = log.begin()
    assert isinstance(log.stage(producer, begins=False), InvalidTransactionStateError)
    log.add(producer, 0)
    assert log.stage(producer, begins=False) is None
    assert isinstance(log.stage(producer, partition=1, begins=False), InvalidTransactionStateError)
    log.end(producer, COMMIT, raises=False)
    assert isinstance(log.stage(producer, first=5, begins=False), InvalidTransactionStateError), "it comes late"


STEPS: list[tuple[str, list[tuple[int, int]], type[TidelogError] | None]] = [
    ("an epoch begins with 0", [(0, 5)], None),
    ("not with another", [(5, 5)], OutOfOrderSequenceError),
    ("they follow each other", [(0, 5), (5, 1), (6, 10)], None),
    ("a gap", [(0, 5), (6, 1)], OutOfOrderSequenceError),
    ("an overlap", [(0, 5), (4, 2)], OutOfOrderSequenceError),
]


@pytest.mark.parametrize(("sent", "error"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_sequences_follow_each_other(sent: list[tuple[int, int]], error: type[TidelogError] | None) -> None:
    log = Log()
    producer = log.begin()
    answers = [log.stage(producer, first, count) for first, count in sent]
    assert answers[:-1] == [None] * (len(sent) - 1)
    assert error is None if answers[-1] is None else isinstance(answers[-1], error or ())


def test_records_that_come_again_are_known() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer, 0, 5)
    log.stage(producer, 5, 5)
    judge = BatchJudge(log.fold)
    assert [judge.take(batch(producer, first, 5)) for first in (0, 5, 10, 10)] == [False, False, True, False]


def test_sequences_go_on_from_one_transaction_to_the_next_of_an_epoch() -> None:
    log = Log()
    producer = log.begin()
    log.add(producer, 0)
    log.stage(producer, 0, 5, begins=False)
    log.end(producer, ABORT, raises=False)
    log.add(producer, 0)
    judge = BatchJudge(log.fold)
    assert judge.take(batch(producer, 0, 5, begins=False)) is False, "it was in the one before"
    assert judge.take(batch(producer, 5, 5, begins=False)) is True
    with pytest.raises(OutOfOrderSequenceError):
        judge.take(batch(producer, 20, 5, begins=False))


def test_sequences_begin_again_with_the_next_epoch() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer, 0, 5)
    following = identity(log.end(producer, COMMIT).one)
    assert isinstance(log.stage(following, 5, 5), OutOfOrderSequenceError)
    assert log.stage(following, 0, 5) is None


def test_the_same_segments_are_noted_once() -> None:
    log = Log()
    producer = log.begin()
    part = [(batch(producer), [segment(1)])]
    for _ in range(2):
        assert log.take(part_rules.decide_stage(log.fold, part, NOW)) == [None]
    assert log.paths_open() == ["partition=0/1.parquet"]


def test_what_another_broker_has_staged_is_not_staged_twice() -> None:
    log = Log()
    producer = log.begin()
    assert log.stage(producer, 0, 5) is None
    assert isinstance(log.stage(producer, 0, 5), OutOfOrderSequenceError)
    assert log.paths_open() == ["partition=0/1.parquet"]


def test_a_segment_below_the_purge_floor_is_not_noted() -> None:
    log = Log()
    producer = log.begin()
    log.take(rules.decide_floor(log.fold, "a", "id-a", 4))
    assert isinstance(log.stage(producer), SegmentTooOldError)
    assert log.fold.open("x") is None


def test_a_part_that_was_noted_before_the_floor_is_committed() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    log.take(rules.decide_floor(log.fold, "a", "id-a", 4))
    assert log.end(producer, COMMIT).intent is not None


# --- ending ------------------------------------------------------------------------------------------------


def test_a_commit_names_all_that_was_staged_in_its_order() -> None:
    log = Log()
    producer = log.begin()
    log.add(producer, 1, groups=["h", "g"])
    for first in (0, 5):
        for partition in (1, 0):
            log.stage(producer, first, partition=partition)
    ended = log.end(producer, COMMIT)
    assert ended.intent is not None
    (part,) = ended.intent.parts
    assert [s.path for s in part.segments] == [
        f"partition={p}/{n}.parquet" for p, n in ((0, 2), (0, 4), (1, 1), (1, 3))
    ]
    assert (part.topic, part.topic_id, ended.intent.groups) == ("a", "id-a", ("g", "h"))
    assert log.fold.open("x") is None


# The producer's generation of transactions, its first end, then another: the error, or the outcome that stays.
ENDS: list[tuple[bool, bool, bool, type[TidelogError] | None]] = [
    (False, COMMIT, COMMIT, None),
    (False, COMMIT, ABORT, InvalidTransactionStateError),
    (False, ABORT, ABORT, None),
    (False, ABORT, COMMIT, InvalidTransactionStateError),
    (True, COMMIT, COMMIT, None),
    (True, COMMIT, ABORT, InvalidTransactionStateError),
    (True, ABORT, ABORT, None),
    (True, ABORT, COMMIT, InvalidTransactionStateError),
]


@pytest.mark.parametrize(("raises", "first", "second", "error"), ENDS)
def test_an_end_that_comes_again(raises: bool, first: bool, second: bool, error: type[TidelogError] | None) -> None:
    log = Log()
    producer = log.begin()
    log.add(producer, 0)
    log.stage(producer, begins=raises)
    ended = log.end(producer, first, raises=raises)
    rows, one = len(log.rows), log.get()
    assert one.kafka_epoch == producer.epoch + raises
    assert one.outcome is (Verdict.COMMITTED if first else Verdict.ABORTED)
    if error is None:
        again = log.end(producer, second, raises=raises)
        assert (again.one, again.intent, again.dropped) == (one, ended.intent, None)
    else:
        with pytest.raises(error):
            log.end(producer, second, raises=raises)
    assert (len(log.rows), log.get()) == (rows, one)


@pytest.mark.parametrize(
    ("raises", "commit", "error"),
    [
        (False, COMMIT, InvalidTransactionStateError),
        (False, ABORT, InvalidTransactionStateError),
        (True, COMMIT, InvalidTransactionStateError),
        (True, ABORT, None),  # such a client can't tell whether its records have begun one
    ],
)
def test_an_end_of_nothing(raises: bool, commit: bool, error: type[TidelogError] | None) -> None:
    log = Log()
    producer = log.begin()
    if error is None:
        assert log.end(producer, commit, raises=raises).one.kafka_epoch == 1
        return
    with pytest.raises(error):
        log.end(producer, commit, raises=raises)


def test_a_producer_of_the_first_generation_does_not_end_what_one_of_the_second_has_moved_on_from() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    log.end(producer, COMMIT)
    with pytest.raises(ProducerFencedError):
        log.end(producer, COMMIT, raises=False)


def test_a_commit_waits_until_the_one_before_is_in_all_its_topics() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    before = log.end(producer, COMMIT)
    following = identity(before.one)
    log.stage(following)
    with pytest.raises(ConcurrentTransactionsError):
        log.end(following, COMMIT)
    assert before.intent is not None
    known = before.one.key_of(before.intent)
    assert log.end(following, COMMIT, completed=known).intent is not None


def test_an_abort_waits_for_nothing_and_keeps_the_intent_before() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    before = log.end(producer, COMMIT)
    following = identity(before.one)
    log.stage(following)
    ended = log.end(following, ABORT)
    assert ended.dropped is not None
    assert log.get().intent == before.intent
    log.complete(before)
    assert log.get().intent is None


def test_the_verdict_on_a_transaction_that_raised_the_epoch() -> None:
    log = Log()
    producer = log.begin()
    key = log.add(producer, groups=["g"])
    assert rules.verdict(log.fold, key) is Verdict.OPEN
    ended = log.end(producer, COMMIT)
    assert rules.verdict(log.fold, key) is Verdict.COMMITTED
    log.complete(ended)
    assert rules.verdict(log.fold, key) is Verdict.SETTLED
    assert log.get().state is State.COMPLETE_COMMIT


def test_a_time_out_fences_the_producer_for_good() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    there = log.fold.open("x")
    assert there is not None
    ended = log.take(part_rules.decide_time_out(log.fold, there.key, NOW))
    assert ended.dropped == there
    assert log.take(part_rules.decide_time_out(log.fold, there.key, NOW)) is None, "it is over"
    for ask in (lambda: log.end(producer, ABORT), lambda: log.begin(expected=producer), lambda: log.add(producer, 0)):
        with pytest.raises(ProducerFencedError):
            ask()


def test_a_transaction_that_has_ended_is_not_timed_out() -> None:
    log = Log()
    producer = log.begin()
    key = log.add(producer, 0)
    log.end(producer, ABORT, raises=False)
    log.add(producer, 0)
    assert log.take(part_rules.decide_time_out(log.fold, key, NOW)) is None
    assert log.fold.open("x") is not None


@pytest.mark.parametrize("commit", [COMMIT, ABORT])
def test_a_producer_id_whose_epochs_are_used_up_is_followed_by_another(commit: bool) -> None:
    log = Log()
    producer = log.begin()
    last = replace(log.get(), epoch=EPOCHS_OF_AN_ID - 1)
    log.take(RowOutcome([rules.transactional_row("init", last)], None))
    producer = replace(producer, epoch=EPOCHS_OF_AN_ID - 1)
    key = log.add(producer, groups=["g"])
    ended = log.end(producer, commit)
    following = identity(ended.one)
    assert (following.epoch, following.producer_id == producer.producer_id) == (0, False)
    assert log.end(producer, commit).one == ended.one, "a repeat is known by its old id"
    assert log.begin(expected=producer) == following
    if ended.intent is not None:
        assert ended.one.key_of(ended.intent) == key, "what waits under the old id is found"
    with pytest.raises(UnknownTransactionalIdError):
        log.end(replace(producer, producer_id=99), commit)


# --- what the log keeps ------------------------------------------------------------------------------------


def test_an_id_with_an_open_part_does_not_expire_and_one_that_does_leaves_no_parts() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    log.add(producer, groups=["g"])
    assert log.take(rules.decide_expire(log.fold, NOW + 1)) == []
    log.end(producer, ABORT)
    assert log.take(rules.decide_expire(log.fold, NOW + 1)) == ["x"]
    assert log.fold.held("x") is None
    assert len(log.fold) == 1, "only what expired ids leave"


def test_rows_that_are_replaced_say_nothing_that_the_others_do_not() -> None:
    """Whatever a table of rows drops in its compaction, the fold is the same."""
    for seed in range(60):
        log = random_log(random.Random(seed))
        kept = TransactionsFold()
        newest = {KIND.key(row): at for at, row in enumerate(log.rows)}
        kept.take([row for at, row in enumerate(log.rows) if newest[KIND.key(row)] == at])
        assert kept == log.fold
        assert len(kept) == len(log.fold)
        live = [row for at, row in enumerate(log.rows) if newest[KIND.key(row)] == at and not row.get("deleted")]
        assert len(kept) == len(live), seed


def random_log(rng: random.Random) -> Log:
    """Two ids' transactions of both generations, with everything that can happen to them."""
    log, producers, next_sequence = Log(), dict[str, ProducerIdentity](), dict[tuple[ProducerIdentity, int], int]()
    for _ in range(rng.randrange(5, 60)):
        name = rng.choice("xy")
        if name not in producers or rng.random() < 0.05:
            producers[name] = log.begin(name)
        producer, raises = producers[name], name == "x"
        act = rng.random()
        if act < 0.6:
            partition, count = rng.randrange(3), rng.randrange(1, 4)
            first = next_sequence.get((producer, partition), 0)
            if not raises:
                log.add(producer, partition)
            assert log.stage(producer, first, count, partition=partition, begins=raises) is None
            next_sequence[producer, partition] = first + count
        elif act < 0.7:
            log.add(producer, groups=[rng.choice("gh")])
        elif act < 0.95 and log.fold.open(name) is not None:
            ended = log.end(producer, rng.random() < 0.7, raises=raises)
            producers[name] = identity(ended.one)
            if ended.intent is not None:
                log.complete(ended)
        elif rng.random() < 0.3:
            log.take(rules.decide_expire(log.fold, NOW + 1))
            producers = {one: who for one, who in producers.items() if log.fold.get(one) is not None}
    return log
