"""Real processes that append to one topic at once, on a local disk and on an object store."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.forked_processes import forking
from support.versitygw import S3Place

from tidelog.log.lake import Lake

PER_PROCESS = 30


def append_many(
    uri: str, options: dict[str, str], who: int, partition: int | None, ready: Any, go: Any, answers: Any
) -> None:
    """Append `PER_PROCESS` times, two records each; answer with the ranges."""
    with Lake(uri, options=options) as lake:
        topic = lake.topic("t")
        topic.state()
        ready.release()
        go.wait(30)
        ranges = []
        for i in range(PER_PROCESS):
            texts = [f"{who}-{i}-{half}".encode() for half in "ab"]
            columns = {"value": texts, **({} if partition is None else {"partition": [partition] * 2})}
            ranges.append(topic.append(pa.table(columns), acks=1 if i % 2 else "all"))
        answers.put((who, ranges))


@pytest.mark.parametrize(("processes", "partitions"), [(2, 1), (8, 4)])
def test_offsets_are_dense_unique_and_nothing_is_lost(tmp_path: Path, processes: int, partitions: int) -> None:
    race(str(tmp_path / "lake"), {}, processes, partitions)


def test_offsets_are_dense_unique_and_nothing_is_lost_on_s3(s3: S3Place) -> None:
    race(s3.uri, s3.options, 4, 2)


def race(uri: str, options: dict[str, str], processes: int, partitions: int) -> None:
    lake = Lake(uri, options=options)
    lake.create_topic("t", partitions=partitions, config={"log.checkpoint.interval": "50", "log.min.age.ms": "10000"})
    context = forking()
    ready, go, answers = context.Semaphore(0), context.Event(), context.Queue()
    started = [
        context.Process(target=append_many, args=(uri, options, i, i % partitions, ready, go, answers))
        for i in range(processes)
    ]
    for process in started:
        process.start()
    assert all(ready.acquire(timeout=60) for _ in started)
    go.set()
    answered = dict(answers.get(timeout=60) for _ in started)
    for process in started:
        process.join(30)
    assert [p.exitcode for p in started] == [0] * processes

    for partition in range(partitions):
        rows = [
            (offset, value.decode())
            for batch in lake.topic("t").read(partition)
            for offset, value in zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True)
        ]
        writers = [who for who in answered if who % partitions == partition]
        assert [offset for offset, _ in rows] == list(range(len(writers) * PER_PROCESS * 2))
        by_offset = dict(rows)
        for who in writers:
            for i, answer in enumerate(answered[who]):
                ((answered_in, (first, end)),) = answer.items()
                assert (answered_in, end - first) == (partition, 2)
                assert [by_offset[first], by_offset[first + 1]] == [f"{who}-{i}-a", f"{who}-{i}-b"]
