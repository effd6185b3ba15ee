"""What operators may abort, by transactional id and by an abort marker, and what its producer may do then."""

from collections.abc import Collection

import pytest
from support.part_log import ABORT, COMMIT, NOW, PLACE, Log

from tidelog.log.base.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    ProducerFencedError,
    TransactionalIdNotFoundError,
)
from tidelog.transactions import rules
from tidelog.transactions.model import Verdict
from tidelog.transactions.open_parts import Place
from tidelog.transactions.operator_rules import decide_abort_marker, decide_abort_open
from tidelog.transactions.part_rules import Ended, ProducerIdentity


def marker(log: Log, producer: ProducerIdentity, epoch: int, places: Collection[Place] = (PLACE,)) -> Ended | None:
    found: Ended | None = log.take(decide_abort_marker(log.fold, producer.producer_id, epoch, places, NOW))
    return found


def test_a_marker_aborts_all_that_its_producer_has_open_and_fences_it() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    log.stage(producer, partition=1)
    there = log.fold.open("x")
    assert there is not None
    ended = marker(log, producer, producer.epoch)
    assert ended is not None
    assert ended.dropped == there
    assert log.fold.open("x") is None
    assert rules.verdict(log.fold, there.key) in (Verdict.ABORTED, Verdict.SETTLED)
    with pytest.raises(ProducerFencedError):
        log.end(producer, COMMIT)
    with pytest.raises(InvalidProducerEpochError):
        marker(log, producer, producer.epoch)


@pytest.mark.parametrize(
    ("changed", "places"),
    [({"producer_id": 78}, [PLACE]), ({}, [("id-a", 1)]), ({}, [("id-b", 0)]), ({}, [])],
    ids=["another producer", "another partition", "another topic", "none"],
)
def test_a_marker_for_what_is_not_open_changes_nothing(changed: dict[str, int], places: list[Place]) -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    other = ProducerIdentity("x", changed.get("producer_id", producer.producer_id), 0)
    assert marker(log, other, producer.epoch, places) is None
    assert log.end(producer, COMMIT).intent is not None


def test_a_marker_after_the_end_leaves_the_next_transaction_alone() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    ended = log.end(producer, ABORT)
    following = ProducerIdentity("x", ended.one.producer_id, ended.one.kafka_epoch)
    log.stage(following)
    with pytest.raises(InvalidProducerEpochError):
        marker(log, producer, producer.epoch)
    assert log.end(following, COMMIT).intent is not None


def test_an_operator_aborts_what_a_brokers_client_has_open() -> None:
    """Not fenced, it would begin again in the same epoch, and commit the second half of its records."""
    log = Log()
    producer = log.begin()
    log.stage(producer)
    there = log.fold.open("x")
    assert there is not None
    assert log.take(decide_abort_open(log.fold, "x", NOW, producer.producer_id)) == there.key
    assert log.fold.open("x") is None
    assert isinstance(_stage(log, producer, 5), ProducerFencedError)


def _stage(log: Log, producer: ProducerIdentity, first: int) -> object:
    return log.stage(producer, first)


def test_what_is_open_is_aborted_while_what_was_committed_before_is_incomplete() -> None:
    log = Log()
    producer = log.begin()
    log.stage(producer)
    ended = log.end(producer, COMMIT, raises=False)
    log.stage(producer, 5)
    log.take(decide_abort_open(log.fold, "x", NOW))
    assert log.fold.open("x") is None
    assert log.get().intent == ended.intent, "a decision stands"


def test_an_operator_aborts_what_no_broker_knows() -> None:
    """tidelog's own producers have nothing in the log while a transaction is open, but for groups' offsets."""
    log = Log()
    producer = log.begin()
    one = log.get()
    key = log.take(decide_abort_open(log.fold, "x", NOW, producer.producer_id))
    assert key == one.key(one.number + 1)
    assert rules.verdict(log.fold, key) is Verdict.ABORTED
    for name, producer_id in (("y", None), ("x", producer.producer_id + 1)):
        with pytest.raises(TransactionalIdNotFoundError):
            decide_abort_open(log.fold, name, NOW, producer_id)
    log.take(rules.decide_intent(log.fold, one.key(2), (), (), NOW))
    with pytest.raises(InvalidTransactionStateError, match="can't be aborted"):
        decide_abort_open(log.fold, "x", NOW)
