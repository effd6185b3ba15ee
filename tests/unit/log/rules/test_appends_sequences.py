"""Idempotent producers: what their sequences let pass, what is a repeat, and what a log remembers of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, apply_all, created, end_txn, entry
from support.shares import decide_alone

from tidelog.log.base.errors import (
    InvalidRecordError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    UnknownProducerIdError,
)
from tidelog.log.delta.actions import Metadata, Txn
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.rules.appends import PartlyRepeatedError
from tidelog.log.rules.sequences import MAX_SEQUENCE, ProducerBatch, Sequences, step
from tidelog.log.rules.topics import decide_create, decide_delete
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import verify_entry

NOW = START_MS + 1000
MAX = MAX_SEQUENCE
EPOCH = 2**32


def there(*more: Any) -> TopicState:
    """A topic of two partitions, then an entry of `more`."""
    return apply_all(TopicState(), [created(), *([entry(1, *more)] if more else [])])


def seen(epoch: int, last: int, producer: int = 7, partition: int = 0) -> Txn:
    return Txn(f"tidelog/producer/{producer}/{partition}", epoch * EPOCH + last, START_MS)


def sends(epoch: int, sequences: Mapping[int, tuple[int, int]], producer: int = 7) -> ProducerBatch:
    return ProducerBatch(producer, epoch, sequences)


def staged(partition: int, records: int, name: str = "") -> Staged:
    return Staged(partition, f"{partition}-{records}-{name}", records, 10, NOW, NOW, 1, "id-1")


_files = iter(range(1 << 30))


def decide(state: TopicState, *batches: ProducerBatch) -> Any:
    """Append what the batches say, one segment each, and each newly written."""
    segments = [staged(p, n, f"{next(_files)}") for b in batches for p, (_, n) in b.sequences.items()]
    return decide_alone(state, segments, now_ms=NOW, producers=batches)


NEW, REPEAT, GAP, FENCED = "new", "repeat", OutOfOrderSequenceError, ProducerFencedError

#  what the partition knows (epoch, last), what comes (epoch, first, count) -> what it is
CASES: dict[str, tuple[tuple[int, int] | None, tuple[int, int, int], Any]] = {
    "an unknown producer": (None, (0, 0, 3), NEW),
    "an unknown producer may begin anywhere": (None, (4, 77, 3), NEW),
    "the next": ((0, 9), (0, 10, 5), NEW),
    "the same": ((0, 9), (0, 7, 3), REPEAT),
    "one of long ago": ((0, 9), (0, 0, 2), REPEAT),
    "a gap of one": ((0, 9), (0, 11, 1), GAP),
    "an overlap": ((0, 9), (0, 8, 3), GAP),
    "the last one and the next": ((0, 9), (0, 9, 2), GAP),
    "an older epoch": ((3, 9), (2, 10, 1), FENCED),
    "an older epoch's repeat": ((3, 9), (2, 9, 1), FENCED),
    "a new epoch": ((3, 9), (4, 0, 1), NEW),
    "a new epoch skips one": ((3, 9), (5, 0, 1), NEW),
    "a new epoch begins with 0": ((3, 9), (4, 10, 1), GAP),
    "round the end": ((0, MAX), (0, 0, 2), NEW),
    "up to the end": ((0, MAX - 2), (0, MAX - 1, 2), NEW),
    "across the end": ((0, MAX - 1), (0, MAX, 3), NEW),
    "across the end, again": ((0, 1), (0, MAX, 3), REPEAT),
    "before the end, again": ((0, 1), (0, MAX - 4, 3), REPEAT),
    "a gap at the end": ((0, MAX), (0, 1, 1), GAP),
    "an overlap at the end": ((0, 0), (0, MAX, 3), GAP),
    "half the circle ahead is a gap": ((0, 0), (0, 2**30, 1), GAP),
}


@pytest.mark.parametrize(("known", "comes", "wanted"), CASES.values(), ids=CASES)
def test_what_a_batch_is(known: tuple[int, int] | None, comes: tuple[int, int, int], wanted: Any) -> None:
    epoch, first, count = comes
    state, batch = there(*([seen(*known)] if known else [])), sends(epoch, {0: (first, count)})
    if wanted in (GAP, FENCED):
        with pytest.raises(wanted, match=r"Topic 't', partition 0: producer 7 .*\. (Close|Create) "):
            decide(state, batch)
        return
    outcome = decide(state, batch)
    if wanted == REPEAT:
        assert (outcome.actions, outcome.response) == ((), {})
    else:
        assert outcome.response == {0: (0, count)}
        last = (first + count - 1) % 2**31
        assert outcome.actions[-1] == Txn("tidelog/producer/7/0", epoch * EPOCH + last, NOW)


PIPELINED: dict[str, tuple[tuple[int, int] | None, tuple[int, int, int], Any]] = {
    "an unknown producer": (None, (4, 0, 3), NEW),
    "an unknown producer's second batch": (None, (0, 1, 3), UnknownProducerIdError),
    "an unknown producer in the middle": (None, (4, 77, 3), UnknownProducerIdError),
    "an unknown producer at the end": (None, (0, MAX, 1), UnknownProducerIdError),
    "the next": ((0, 9), (0, 10, 5), NEW),
    "round the end": ((0, MAX), (0, 0, 2), NEW),
    "a new epoch": ((3, 9), (4, 0, 1), NEW),
}


@pytest.mark.parametrize(("known", "comes", "wanted"), PIPELINED.values(), ids=PIPELINED)
def test_who_does_not_await_outcomes_begins_at_0(known: Any, comes: tuple[int, int, int], wanted: Any) -> None:
    epoch, first, count = comes
    state = there(*([seen(*known)] if known else []))
    batch = ProducerBatch(7, epoch, {0: (first, count)}, is_pipelined=True)
    if wanted == NEW:
        assert decide(state, batch).response == {0: (0, count)}
        return
    with pytest.raises(wanted, match="is not known here, and begins with sequence"):
        decide(state, batch)


def test_behind_a_first_batch_of_the_same_entry_is_the_next_one() -> None:
    batches = [ProducerBatch(7, 0, {0: (first, 2)}, is_pipelined=True) for first in (0, 2, 4)]
    assert decide(there(), *batches).response == {0: (0, 6)}


IMPOSSIBLE = [
    sends(0, {0: (-1, 1)}),
    sends(0, {0: (2**31, 1)}),
    sends(0, {0: (0, 0)}),
    sends(-1, {0: (0, 1)}),
    sends(2**15, {0: (0, 1)}),
    sends(0, {0: (0, 1)}, producer=-1),
    sends(0, {0: (0, 1)}, producer=2**63),
]


@pytest.mark.parametrize("batch", IMPOSSIBLE)
def test_what_a_batch_can_not_be(batch: ProducerBatch) -> None:
    with pytest.raises(InvalidRecordError, match="can't be: an id is a LONG and an epoch a SHORT"):
        Sequences(there(), "t").take(batch)


def test_producers_and_partitions_know_nothing_of_each_other() -> None:
    state = there(seen(3, 9))
    outcome = decide(state, sends(0, {0: (0, 1)}, producer=8), sends(0, {1: (5, 2)}))
    assert outcome.response == {0: (0, 1), 1: (0, 2)}
    assert set(outcome.actions) >= {
        Txn("tidelog/producer/8/0", 0, NOW),
        Txn("tidelog/producer/7/1", 6, NOW),
    }


def test_one_producer_may_come_several_times_in_an_entry() -> None:
    outcome = decide(there(), sends(0, {0: (0, 3)}), sends(0, {0: (3, 2), 1: (0, 1)}), sends(1, {0: (0, 1)}))
    assert outcome.response == {0: (0, 6), 1: (0, 1)}
    producers = [a for a in outcome.actions if "producer" in getattr(a, "app_id", "")]
    assert producers == [Txn("tidelog/producer/7/0", EPOCH, NOW), Txn("tidelog/producer/7/1", 0, NOW)]
    with pytest.raises(OutOfOrderSequenceError):
        decide(there(), sends(0, {0: (0, 3)}), sends(0, {0: (4, 2)}))
    with pytest.raises(ProducerFencedError):
        decide(there(), sends(1, {0: (0, 3)}), sends(0, {0: (3, 2)}))


def test_an_entry_that_would_repeat_a_part_is_refused() -> None:
    state = there(seen(0, 9))
    for batches in (
        [sends(0, {0: (5, 5), 1: (0, 1)})],
        [sends(0, {0: (5, 5)}), sends(0, {0: (10, 1)})],
        [sends(0, {0: (5, 5)}), sends(0, {1: (0, 1)}, producer=8)],
        [sends(0, {0: (10, 1)}), sends(0, {0: (10, 1)})],
    ):
        with pytest.raises(PartlyRepeatedError, match="Stage the others again"):
            decide(state, *batches)


def test_a_refused_batch_changes_nothing() -> None:
    sequences = Sequences(there(seen(0, 9)), "t")
    with pytest.raises(OutOfOrderSequenceError):
        sequences.take(sends(0, {1: (0, 4), 0: (11, 1)}))
    assert sequences.txns(NOW) == []
    assert sequences.take(sends(0, {1: (9, 1), 0: (10, 1)})) == frozenset()
    assert sequences.take(sends(0, {1: (9, 1), 0: (11, 1)})) == {1}


def test_a_new_life_knows_no_producer() -> None:
    state = there(seen(3, 9), add(0, 0, 10), end_txn(0, 10))
    state.apply(entry(2, *decide_delete(state, "t", now_ms=NOW).actions))
    again = decide_create(state, "t", 2, {}, {}, topic_id="id-1", table_id="x", now_ms=NOW)
    state.apply(entry(3, *again.actions))
    assert decide(state, sends(0, {0: (4, 2)})).response == {0: (0, 2)}


# --- histories ---------------------------------------------------------------------------------------------

Send = tuple[int, int, int]
SENDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(1, 4)), max_size=12)


@given(SENDS, st.lists(st.integers(0, 11), max_size=8), st.integers(0, 5))
def test_whatever_is_sent_again_lands_once(sent: Sequence[Send], again: Sequence[int], before_the_end: int) -> None:
    """Producers send (producer, partition, records) in order, old sends come again at any time after."""
    state = apply_all(TopicState(), [created()])
    start = MAX - before_the_end
    following: dict[tuple[int, int], int] = {}
    batches, records = [], dict.fromkeys((0, 1), 0)
    for turn, (producer, partition, count) in enumerate(sent):
        first = following.get((producer, partition), start)
        following[producer, partition] = step(first, count)
        batches.append(sends(0, {partition: (first, count)}, producer))
        records[partition] += count
        for one in [batches[-1], *(batches[i] for i in again if i <= turn)]:
            outcome = decide(state, one)
            if outcome.actions:
                applied = entry(state.version + 1, *outcome.actions)
                verify_entry(state, applied, "t")
                state.apply(applied)
    assert {p: state.end(p) for p in (0, 1)} == records


@given(SENDS, st.integers(0, 12))
def test_a_state_from_a_checkpoint_judges_alike(sent: Sequence[Send], pinned: int) -> None:
    live = apply_all(TopicState(), [created()])
    following: dict[tuple[int, int], int] = {}
    entries = []
    for producer, partition, count in sent:
        first = following.get((producer, partition), 0)
        following[producer, partition] = first + count
        one = entry(live.version + 1, *decide(live, sends(0, {partition: (first, count)}, producer)).actions)
        entries.append(one)
        live.apply(one)
    restored = apply_all(TopicState(), [created(), *entries[:pinned]])
    checkpoint = _checkpoint_of(restored)
    fresh = TopicState()
    fresh.restore(restored.version, checkpoint)
    apply_all(fresh, entries[pinned:])
    assert (fresh.txns, sorted_ids(fresh)) == (live.txns, sorted_ids(live))
    for (producer, partition), sequence in following.items():
        for first in (sequence, sequence + 1, sequence - 1):
            batch = sends(0, {partition: (first, 1)}, producer)
            assert _verdict(fresh, batch) == _verdict(live, batch)


def sorted_ids(state: TopicState) -> list[Txn]:
    return sorted(state.producer_txns(), key=lambda txn: txn.app_id)


def _checkpoint_of(state: TopicState) -> list[Any]:
    """The rows of a checkpoint of the state, in no good order."""
    metadata = state.metadata
    assert isinstance(metadata, Metadata)
    rows: list[Any] = [*state.txns.values(), *state.producer_txns(), metadata, PROTOCOL]
    rows += [add(s.partition, s.base_offset, s.end, s.path) for s in state.all_segments()]
    rows += [end_txn(p, end) for p, end in state.ends.items()]
    return rows[::-1]


def _verdict(state: TopicState, batch: ProducerBatch) -> Any:
    try:
        return Sequences(state, "t").take(batch)
    except OutOfOrderSequenceError as e:
        return str(e)
