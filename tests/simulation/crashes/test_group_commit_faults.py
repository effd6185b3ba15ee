"""Random faults under group commit: acknowledged records are there once, in order, at the reported offsets."""

import random
from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.faults import of_this_thread
from support.group_commits import answers
from support.logs import CountingIds, memory_lake, open_lake, quiet, read, values

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.group_commit.engine import GroupCommit
from tidelog.log.group_commit.requests import ProduceRequests
from tidelog.log.rules.sequences import ProducerBatch

PRODUCERS, PARTITIONS = 3, 2


@given(st.integers(0, 2**32), st.floats(0, 0.6))
def test_acknowledged_records_are_there_once_and_in_order(seed: int, rate: float) -> None:
    rng = random.Random(seed)
    lake, storage, clock = memory_lake()
    lake.create_topic("t", PARTITIONS)
    other = open_lake(storage, clock)

    @of_this_thread
    def hook(method: str, path: str, phase: str) -> None:
        if path.startswith("t/") and rng.random() < rate:
            if rng.random() < 0.1:
                storage.hook = quiet
                other.topic("t").append(values("x", partition=[0]))
                storage.hook = hook
            raise StorageUnavailableError("no answer")

    group = GroupCommit(lambda: lake.topic("t"), clock, CountingIds(9_000_000))
    following: dict[tuple[int, int], int] = defaultdict(int)
    waiting, results = [], []
    for _ in range(rng.randint(1, 12)):
        producer, partition, count = rng.randrange(PRODUCERS), rng.randrange(PARTITIONS), rng.randint(1, 3)
        first = following[producer, partition]
        following[producer, partition] += count
        texts = [f"{producer}-{partition}-{first + i}" for i in range(count)]
        chosen, batch = np.full(count, partition, np.int32), ProducerBatch(producer, 0, {partition: (first, count)})
        request = ProduceRequests(values(*texts), np.array([1e9]), chosen, batches={0: batch}, acks=rng.choice([1, -1]))
        waiting.append((request, partition, texts))
    at = 0
    while at < len(waiting):
        taken = waiting[at : at + rng.randint(1, 4)]
        at += len(taken)
        requests = [request for request, _, _ in taken]
        entry = group.begin(*requests)
        storage.hook = hook
        for turn in range(400):
            if entry.is_done:
                break
            if turn == 300:
                storage.hook = quiet
            clock.pass_s(entry.due_s())
            entry.advance()
        results += zip(answers(entry, *requests), [(p, texts) for _, p, texts in taken], strict=True)
    storage.hook = quiet
    found = {p: read(lake, "t", p) for p in range(PARTITIONS)}
    for offsets, (partition, texts) in results:
        assert isinstance(offsets, list)
        if -1 not in offsets:
            assert [found[partition][at] for at in offsets] == texts
    for (producer, partition), count in following.items():
        own = [v for v in found[partition] if v.startswith(f"{producer}-")]
        assert own == [f"{producer}-{partition}-{i}" for i in range(count)]
