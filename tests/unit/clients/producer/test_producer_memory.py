"""What a topic remembers of producers: a checkpoint's columns and what came since are one memory."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.delta.actions import Txn
from tidelog.log.state.add_columns import CheckpointActions
from tidelog.log.state.producer_memory import (
    MAX_PRODUCER_ID,
    ProducerColumns,
    ProducerMemory,
    app_id,
    parse_app_id,
    producer_columns,
)
from tidelog.log.state.topic_state import TopicState


def columns(*rows: tuple[int, int, int, int]) -> ProducerColumns:
    """Of (producer id, partition, version, time)s."""
    names = pa.array([app_id(producer, partition) for producer, partition, _, _ in rows], pa.string())
    return producer_columns(names, pa.array([r[2] for r in rows], pa.int64()), pa.array([r[3] for r in rows]))


KEYS = st.tuples(st.sampled_from([0, 1, 7, MAX_PRODUCER_ID]), st.integers(0, 2))
RESTORED = st.dictionaries(KEYS, st.tuples(st.integers(-1, 5), st.integers(1, 10)), max_size=8)
NOTED = st.lists(st.tuples(KEYS, st.integers(-1, 5), st.integers(0, 3)), max_size=12)


@given(RESTORED, NOTED, st.integers(0, 6))
def test_it_knows_what_a_dict_knows(
    restored: dict[tuple[int, int], tuple[int, int]], noted: list[tuple[tuple[int, int], int, int]], kept: int
) -> None:
    memory, model, now = ProducerMemory(), dict(restored), 10
    if restored:
        memory.restore(columns(*((*key, *value) for key, value in restored.items())), now - kept)
    for key, version, passed in noted:
        now += passed
        memory.note(*key, version, now)
        model[key] = (version, now)
        memory.forget(now - kept)
    model = {key: value for key, value in model.items() if value[1] >= now - kept}
    found = sorted(memory.txns(now - kept), key=lambda txn: txn.app_id)
    expected = [Txn(app_id(*key), version, updated) for key, (version, updated) in model.items()]
    assert found == sorted(expected, key=lambda txn: txn.app_id)
    for producer in (0, 1, 7, 8, MAX_PRODUCER_ID):
        for partition in range(4):
            version, _ = model.get((producer, partition), (-1, 0))
            assert memory.find(producer, partition, now - kept) == (None if version < 0 else version)


def test_what_has_expired_is_dropped_from_the_oldest_on() -> None:
    memory = ProducerMemory()
    memory.restore(columns((1, 0, 5, 100), (2, 0, 5, 200)), 0)
    for at in range(300, 310):
        memory.note(at, 0, 1, at)
    memory.note(300, 0, 2, 310)  # it goes on, and is the newest now
    memory.forget(200)
    assert len(memory) == 12  # columns go as a whole
    assert memory.find(1, 0, 200) is None
    memory.forget(305)
    assert (len(memory), memory.find(300, 0, 305), memory.find(304, 0, 305)) == (6, 2, None)


def test_a_checkpoints_producers_stay_columns() -> None:
    rows = columns(*((n, n % 3, n, n + 1) for n in range(1_000)))
    state = TopicState()
    state.restore(7, CheckpointActions([], None, rows))
    assert state.producers._restored is rows
    assert (len(state.producers._noted), state.txns, state.updated_ms) == (0, {}, 1_000)
    assert (state.producer(999, 0), state.producer(999, 1)) == (999, None)
    assert len(list(CheckpointActions([], None, rows))) == 1_000


@pytest.mark.parametrize(
    "name", ["", "7", "7/", "/0", "x/0", "7/0/1", "-7/0", "7/-1", "٣/0", f"{2**63}/0", f"7/{2**31}"]
)
def test_what_names_no_producer(name: str) -> None:
    assert parse_app_id(f"tidelog/producer/{name}") is None


@pytest.mark.parametrize("name", ["7", "x/0", f"{2**63}/0"])
def test_a_checkpoints_row_that_names_no_producer_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"index|parse|Failed|out of bounds"):
        producer_columns(pa.array([f"tidelog/producer/{name}"]), pa.array([1]), pa.array([1]))
