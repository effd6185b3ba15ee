"""What is remembered of producers' last batches, to answer them again."""

import pytest

from tidelog.broker.produce import repeats
from tidelog.broker.produce.repeats import Landed, Repeats


def test_a_batch_is_found_as_it_was():
    known = Repeats()
    known.note(3, 77, (0, 10, 5), Landed(100, None))
    known.note(3, 77, (0, 15, 5), Landed(105, 1_700))
    assert known.find(3, 77, (0, 10, 5)) == Landed(100, None)
    assert known.find(3, 77, (0, 15, 5)) == Landed(105, 1_700)


@pytest.mark.parametrize(
    ("partition", "producer", "batch"),
    [(2, 77, (0, 10, 5)), (3, 78, (0, 10, 5)), (3, 77, (1, 10, 5)), (3, 77, (0, 11, 5)), (3, 77, (0, 10, 4))],
)
def test_another_batch_is_not(partition, producer, batch):
    known = Repeats()
    known.note(3, 77, (0, 10, 5), Landed(100, None))
    assert known.find(partition, producer, batch) is None


def test_five_batches_of_a_producer_are_remembered():
    known = Repeats()
    for at in range(6):
        known.note(0, 1, (0, at, 1), Landed(at, None))
    assert [known.find(0, 1, (0, at, 1)) is not None for at in range(6)] == [False] + [True] * 5


def test_who_was_not_heard_for_long_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(repeats, "MOST", 2)
    known = Repeats()
    for producer in (1, 2, 1, 3):
        known.note(0, producer, (0, 0, 1), Landed(producer, None))
    assert [known.find(0, producer, (0, 0, 1)) is not None for producer in (1, 2, 3)] == [True, False, True]
