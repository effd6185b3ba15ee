"""Group commit: what becomes one entry, and the outcome of each request."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.group_commits import answers, committed, engine, entries, lake_with, records, sent
from support.logs import Calls, CountingIds, memory_lake, read, values

from tidelog.log.base.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.group_commit.producer_sequences import Numbering
from tidelog.log.group_commit.requests import NO_PARTITION, ProduceRequests, together
from tidelog.log.rules.sequences import ProducerBatch

# --- one entry ---------------------------------------------------------------------------------------------


def test_requests_become_one_entry_and_each_learns_its_offsets() -> None:
    lake, _, clock = lake_with()
    before = entries(lake)
    requests = (
        records("a", "b", "c", partition=[0, 1, 0]),
        records("d", partition=1),
        records("e", "f", partition=[1, 0]),
    )
    entry = committed(engine(lake, clock), *requests)
    assert answers(entry, *requests) == [[0, 0, 1], [1], [2, 2]]
    assert entry.outcomes.ranges == {0: (0, 3), 1: (0, 3)}
    assert (read(lake, "t", 0), read(lake, "t", 1)) == (["a", "c", "f"], ["b", "d", "e"])
    assert entries(lake) == before + 1
    assert [len(lake.topic("t").state().live(p)) for p in (0, 1)] == [1, 1]


def test_a_table_of_many_requests_is_the_same() -> None:
    """As a broker has them: decoded at once, with the request of each row."""
    lake, _, clock = lake_with()
    table = ProduceRequests(
        values(*"abcdef"), np.full(3, 1e9), np.array([0, 1, 0, 1, 1, 0], np.int32), np.array([0, 0, 0, 1, 2, 2])
    )
    entry = committed(engine(lake, clock), table)
    assert entry.outcomes.offsets(6).tolist() == [0, 0, 1, 1, 2, 2]
    assert together([table, records("g", partition=1)]).units is not None
    more = committed(engine(lake, clock), table, records("g", partition=1))
    assert more.outcomes.offsets(7).tolist() == [3, 3, 4, 4, 5, 5, 6]


def test_partitions_that_are_not_given_are_chosen() -> None:
    lake, _, clock = lake_with(4)
    table = pa.table({"value": ["a", "b", "c"], "key": [b"k", b"k", None]})
    group = engine(lake, clock)
    rows = {"units": np.arange(3), "turn": 2}
    entry = committed(group, ProduceRequests(table, np.full(3, 1e9), **rows))
    partitions = entry.outcomes.partitions(3, None).tolist()
    assert partitions[0] == partitions[1]
    assert partitions[2] == 2  # without a key: by the turn
    given = np.array([NO_PARTITION, 1, NO_PARTITION], np.int32)
    entry = committed(group, ProduceRequests(table, np.full(3, 1e9), given, **rows))
    assert entry.outcomes.partitions(3, given).tolist() == [partitions[0], 1, 2]


@pytest.mark.parametrize(("count", "used"), [(4, True), (3, False)])
def test_partitions_chosen_ahead_count_for_as_many_partitions_as_the_topic_has(count: int, used: bool) -> None:
    lake, _, clock = lake_with(4)
    ahead: Future[Any] = Future()
    ahead.set_result(np.array([3], np.int32))
    entry = committed(
        engine(lake, clock), ProduceRequests(values("a"), np.full(1, 1e9), turn=1, chosen_ahead=(count, ahead))
    )
    assert entry.outcomes.partitions(1, None).tolist() == [3 if used else 1]


def test_helpers_write_the_segments() -> None:
    lake, _, clock = lake_with(4)
    with ThreadPoolExecutor(2) as helpers:
        entry = committed(engine(lake, clock, helpers), records(*"abcdefgh", partition=[0, 1, 2, 3] * 2))
    assert entry.outcomes.ranges == dict.fromkeys(range(4), (0, 2))
    assert [read(lake, "t", p) for p in range(4)] == [["a", "e"], ["b", "f"], ["c", "g"], ["d", "h"]]


@pytest.mark.parametrize(
    ("acks", "durable"), [((1, 1), False), ((1, -1), True), ((-1, 1), True)], ids=["1, 1", "1, all", "all, 1"]
)
def test_an_entry_is_as_durable_as_the_strongest_acks(acks: tuple[int, int], durable: bool) -> None:
    calls = Calls()
    lake, storage, clock = lake_with()
    storage.hook = calls
    committed(engine(lake, clock), *(records("a", acks=level) for level in acks))
    assert ("sync" in calls.take()) == durable


def test_a_producers_codec() -> None:
    lake, storage, clock = lake_with(1)
    written: list[bytes] = []

    def note(method: str, path: str, phase: str) -> None:
        if method == "put" and phase == "after":
            written.append(storage.inner.get(path))

    storage.hook = note
    group = engine(lake, clock)
    text = "x" * 10_000
    committed(group, records(text, compression="none"), records(text, compression="none"))
    committed(group, records(text, compression="gzip", compression_level=9))
    plain, packed = written
    assert len(plain) > 20_000
    assert len(packed) < 3_000
    with pytest.raises(ValueError, match="compression"):
        group.begin(records(text, compression="none"), records(text, compression="gzip"))


WRONG = {
    "rows and partitions": records("a", "b", partition=[0]),
    "no rows": records(),
    "units without rows": ProduceRequests(values("a"), np.zeros(2), units=np.array([0])),
    "units that begin late": ProduceRequests(values("a"), np.zeros(2), units=np.array([1])),
    "more units than deadlines": ProduceRequests(values("a", "b"), np.zeros(1), units=np.array([0, 1])),
    "sequences for another partition": records("a", batches={0: ProducerBatch(1, 0, {1: (0, 1)})}),
    "too many sequences": records("a", batches={0: ProducerBatch(1, 0, {0: (0, 2)})}),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_requests_that_contradict_themselves(wrong: ProduceRequests) -> None:
    lake, _, clock = lake_with()
    with pytest.raises(InvalidRecordError):
        engine(lake, clock).begin(wrong)


# --- refused alone -----------------------------------------------------------------------------------------


def test_a_request_is_refused_alone() -> None:
    lake, _, clock = lake_with(max_message_bytes="50")
    lake.topic("t").append(values("before", partition=[0]))
    cases: list[tuple[ProduceRequests, Any]] = [
        (records("a"), [1]),
        (records("b" * 51), RecordTooLargeError),
        (records("c", partition=2), UnknownPartitionError),
        (sent(7, 0, "d"), [2]),
        (sent(7, 5, "e"), OutOfOrderSequenceError),
        (sent(7, 1, "f", "g", partition=[0, 0]), [3, 4]),
        (sent(7, 0, "d"), [-1]),
        (sent(8, 0, "h", epoch=3), [5]),
        (sent(8, 1, "i", epoch=2), InvalidProducerEpochError),
        (records("j", "x" * 51), RecordTooLargeError),  # as a whole
        (records("k"), [6]),
    ]
    requests = [one for one, _ in cases]
    entry = committed(engine(lake, clock), *requests)
    assert answers(entry, *requests) == [wanted for _, wanted in cases]
    assert read(lake, "t") == ["before", "a", "d", "f", "g", "h", "k"]


def test_many_that_are_refused_among_many() -> None:
    lake, _, clock = lake_with(max_message_bytes="5")
    refused = {0, 3, 4, 17, 99}
    requests = [records("x" * 6 if i in refused else str(i), partition=i % 2) for i in range(100)]
    entry = committed(engine(lake, clock), *requests)
    assert {unit for unit, e in entry.outcomes.errors.items() if isinstance(e, RecordTooLargeError)} == refused
    assert sorted(int(v) for p in (0, 1) for v in read(lake, "t", p)) == sorted(set(range(100)) - refused)


def test_a_partition_of_a_request_that_is_there_already_is_left_out() -> None:
    lake, _, clock = lake_with()
    group = engine(lake, clock)
    committed(group, sent(7, 0, "a"))
    again = sent(7, 0, "a", "b", partition=[0, 1])
    entry = committed(group, again)
    assert answers(entry, again) == [[-1, 0]]
    assert (read(lake, "t", 0), read(lake, "t", 1)) == (["a"], ["b"])


def test_when_all_are_refused_there_is_no_entry() -> None:
    lake, _, clock = lake_with()
    before = entries(lake)
    wrong = records("a", partition=9)
    assert answers(committed(engine(lake, clock), wrong), wrong) == [UnknownPartitionError]
    assert entries(lake) == before


def test_no_topic_and_none_may_be_created() -> None:
    lake, _, clock = memory_lake()
    lake.alter_config({"auto.create.topics.enable": "false"})
    group = engine(lake, clock)
    one = records("a")
    assert answers(committed(group, one), one) == [UnknownTopicError]
    lake.create_topic("t")
    assert answers(committed(group, one), one) == [[0]]


# --- a producer's own numbering ----------------------------------------------------------------------------


def test_records_are_numbered_when_they_are_taken() -> None:
    """Those that are refused use no sequence, and the next entry goes on behind those that landed."""
    lake, _, clock = lake_with(2, max_message_bytes="5")
    group, numbering = engine(lake, clock), Numbering(CountingIds())

    def rows(*texts: str) -> ProduceRequests:
        chosen = np.arange(len(texts), dtype=np.int32) % 2
        deadlines_s = np.full(len(texts), 1e9)
        return ProduceRequests(values(*texts), deadlines_s, chosen, np.arange(len(texts)), numbering=numbering)

    first = committed(group, rows("a", "b", "x" * 6, "c"))
    assert (list(first.outcomes.errors), numbering.snapshot()[1:]) == ([2], (0, {0: 1, 1: 2}))
    committed(group, rows("d", "e"))
    assert numbering.snapshot()[1:] == (0, {0: 2, 1: 3})
    committed(group, rows("x" * 6))
    assert numbering.snapshot()[1:] == (0, {0: 2, 1: 3})


def test_a_producer_that_the_log_has_seen_more_of_begins_with_another_id() -> None:
    lake, _, clock = lake_with(1)
    group, numbering = engine(lake, clock), Numbering(CountingIds())
    producer_id = numbering.snapshot()[0]
    committed(group, sent(producer_id, 0, "a", "b", "c"))
    own = records("d", "e", "f", "g", numbering=numbering)
    assert answers(committed(group, own), own) == [OutOfOrderSequenceError]
    assert numbering.snapshot()[0] != producer_id
    assert answers(committed(group, own), own) == [[3, 4, 5, 6]]
