"""Sequences of idempotent producers are judged once: where an entry is committed, unless the log has refused some."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from support.group_commits import answers, committed, engine, lake_with, records, sent
from support.logs import Calls, read

from tidelog.log.base.errors import InvalidRecordError, OutOfOrderSequenceError
from tidelog.log.group_commit.requests import ProduceRequests
from tidelog.log.rules.sequences import ProducerBatch, Sequences


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[int]]:
    """How often a batch of each producer was judged."""
    count: Counter[int] = Counter()
    take = Sequences.take

    def counted(self: Sequences, batch: ProducerBatch) -> Any:
        count[batch.producer_id] += 1
        return take(self, batch)

    monkeypatch.setattr(Sequences, "take", counted)
    return count


def test_new_batches_are_judged_once(judged: Counter[int]) -> None:
    lake, _, clock = lake_with()
    group = engine(lake, clock)
    requests = [sent(7, 0, "a"), sent(7, 1, "b"), sent(8, 0, "c")]
    assert answers(committed(group, *requests), *requests) == [[0], [1], [2]]
    assert judged == {7: 2, 8: 1}


def test_after_a_refusal_they_are_judged_before_they_are_staged_until_all_are_new() -> None:
    calls = Calls()
    lake, _, clock = lake_with(hook=calls)
    group = engine(lake, clock)
    gap = [records("x"), sent(7, 5, "a")]

    def staged(*requests: ProduceRequests) -> tuple[list[Any], int]:
        calls.take()
        found = answers(committed(group, *requests), *requests)
        return found, calls.take().count("put")

    committed(group, sent(7, 0, "first"))
    assert staged(*gap) == ([[1], OutOfOrderSequenceError], 2)
    assert staged(*gap) == ([[2], OutOfOrderSequenceError], 1)
    assert staged(sent(7, 1, "b")) == ([[3]], 1)
    assert staged(*gap) == ([[4], OutOfOrderSequenceError], 2)


def test_no_file_is_left_of_an_entry_that_is_there_already() -> None:
    lake, storage, clock = lake_with()
    group, other = engine(lake, clock), engine(lake, clock)
    committed(group, sent(7, 0, "a", "b", partition=[0, 1]))
    again = sent(7, 0, "a", "b", partition=[0, 1])
    assert answers(committed(other, again), again) == [[-1, -1]]
    live = {segment.path for segment in lake.topic("t").state().all_segments()}
    found = {info.path.partition("/")[2] for p in (0, 1) for info in storage.list_after(f"t/partition={p}")}
    assert found == live
    assert len(live) == 2


@pytest.mark.parametrize("batch", [ProducerBatch(7, -1, {0: (0, 1)}), ProducerBatch(7, 0, {0: (-1, 1)})])
def test_a_batch_that_can_not_be_is_refused_alone(batch: ProducerBatch) -> None:
    lake, _, clock = lake_with()
    requests = [records("a"), records("b", batches={0: batch}), sent(8, 0, "c")]
    assert answers(committed(engine(lake, clock), *requests), *requests) == [[0], InvalidRecordError, [1]]
    assert read(lake, "t") == ["a", "c"]
