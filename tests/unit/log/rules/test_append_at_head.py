"""An append that lands only at the head that was read."""

import pytest
from support.logs import add, apply_all, created, end_txn, entry
from support.shares import decide_alone

from tidelog.log.rules.appends import HeadMovedError
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState


def staged(path, known=0):
    return Staged(0, path, 3, 100, 0, 0, known, "id-1")


def test_an_append_at_the_head_is_as_any_other():
    state = apply_all(TopicState(), [created(partitions=1)])
    outcome = decide_alone(state, [staged("p.parquet")], only_at=0, now_ms=1)
    assert outcome.response == {0: (0, 3)}
    assert not outcome.blind_append


@pytest.mark.parametrize("end", [0, 2, 4])
def test_an_append_elsewhere_is_refused(end):
    state = apply_all(TopicState(), [created(partitions=1), entry(1, add(0, 0, 3), end_txn(0, 3))])
    with pytest.raises(HeadMovedError, match="ends at offset 3 by now"):
        decide_alone(state, [staged("p.parquet")], only_at=end, now_ms=1)


def test_a_repeat_gets_its_first_answer_wherever_the_head_is():
    mine = add(0, 0, 3)
    state = apply_all(
        TopicState(),
        [created(partitions=1), entry(1, mine, end_txn(0, 3)), entry(2, add(0, 3, 5), end_txn(0, 5))],
    )
    outcome = decide_alone(state, [staged(mine.path)], only_at=0, now_ms=1)
    assert (outcome.actions, outcome.response) == ((), {0: (0, 3)})
