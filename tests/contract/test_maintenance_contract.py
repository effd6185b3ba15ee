"""Maintenance of a lake on disk while others write and read it; and what other engines see of it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from support.logs import values

from tidelog.check.lake import Severity, check_lake
from tidelog.log.lake import Lake
from tidelog.retention.maintenance import maintain

APPENDS = 60
PARTITIONS = 2


def texts(lake: Lake, partition: int) -> list[tuple[int, str]]:
    batches = lake.topic("t").read(partition)
    return [
        (offset, value.decode())
        for batch in batches
        for offset, value in zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True)
    ]


def all_of(*works: Callable[[], None]) -> None:
    """Do works side by side; the first error that one raised is raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


@pytest.mark.parametrize("jobs", [1, 2])
def test_producers_and_readers_go_on_while_jobs_merge(tmp_path: Path, jobs: int) -> None:
    root = tmp_path / "lake"
    with Lake(root) as lake:
        lake.create_topic("t", partitions=PARTITIONS)
    produced = threading.Event()
    reports = []

    def produce() -> None:
        with Lake(root) as lake:
            for n in range(APPENDS):
                rows = [f"{n}-{i}" for i in range(5)]
                lake.topic("t").append(values(*rows * PARTITIONS, partition=[0] * 5 + [1] * 5), acks=1)
        produced.set()

    def read() -> None:
        with Lake(root) as lake:
            while not produced.is_set():
                for partition in range(PARTITIONS):
                    found = texts(lake, partition)
                    assert found == [(5 * n + i, f"{n}-{i}") for n in range(APPENDS) for i in range(5)][: len(found)]

    def merge() -> None:
        with Lake(root) as lake:
            while not produced.is_set():
                reports.append(maintain(lake, only=["retention", "merge"]))

    all_of(produce, read, *[merge] * jobs)
    with Lake(root) as lake:
        reports.append(maintain(lake, only=["merge"]))
        for partition in range(PARTITIONS):
            assert texts(lake, partition) == [(5 * n + i, f"{n}-{i}") for n in range(APPENDS) for i in range(5)]
        assert sum(len(lake.topic("t").state().live(p)) for p in range(PARTITIONS)) <= 20
        assert not check_lake(lake.storage, None, True).of(Severity.ERROR)
    assert [report.failures() for report in reports if report.failed] == []
    assert sum(report.topics[0].merge.units - report.topics[0].merge.lost for report in reports) > 0


def test_a_reader_that_planned_before_a_merge_still_reads_all(tmp_path: Path) -> None:
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("t", partitions=1)
        for n in range(10):
            lake.topic("t").append(values(f"v{n}"))
        reading = lake.topic("t").read(0)
        first = next(reading)
        maintain(lake)
        rest = [value for batch in (first, *reading) for value in batch.column("value").to_pylist()]
        assert rest == [f"v{n}".encode() for n in range(10)]


def test_deltalake_sees_the_records_and_each_run_in_the_history(tmp_path: Path) -> None:
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("t", partitions=1, config={"segment.ms": "600000"})
        for n in range(10):
            lake.topic("t").append(values(f"v{n}"))
        lake.delete_records("t", {0: 3})
        merged = maintain(lake, only=["merge"])
        table = DeltaTable(str(tmp_path / "lake" / "t"))
        rows = table.to_pyarrow_table().sort_by([("base_offset", "ascending"), ("position", "ascending")])
        offsets = [b + p for b, p in zip(rows["base_offset"].to_pylist(), rows["position"].to_pylist(), strict=True)]
        assert offsets == list(range(3, 10))
        assert rows["value"].to_pylist() == [f"v{n}".encode() for n in range(3, 10)]
        expired = maintain(lake, only=["retention"], now_ms=lake.clock.now_ms() + 8 * 86_400_000)
        history = DeltaTable(str(tmp_path / "lake" / "t")).history(3)
    told = [(entry["operation"], entry["operationParameters"].get("run")) for entry in history]
    assert told[:2] == [("RETENTION", expired.run_id), ("OPTIMIZE", merged.run_id)]
    assert DeltaTable(str(tmp_path / "lake" / "t")).to_pyarrow_table().num_rows == 0
