"""deltalake, another implementation of Delta, reads what a topic holds: the same rows at the same offsets."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tidelog.log.lake import Lake

AWKWARD = ["plain", "with space", "ümläut-文字", "a=b&c+d", "quote'd"]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path / "lake")) as opened:
        yield opened


def by_tidelog(lake: Lake, topic: str = "t") -> list[tuple[int, int, object, object, object]]:
    """(partition, offset, key, value, timestamp) of every record."""
    handle = lake.topic(topic)
    return [
        (r["partition"], r["offset"], r["key"], r["value"], r["timestamp"])
        for p in handle.offsets()
        for batch in handle.read(p)
        for r in batch.to_pylist()
    ]


def by_deltalake(lake: Lake, topic: str = "t") -> list[tuple[int, int, object, object, object]]:
    table = DeltaTable(f"{lake.uri}/{topic}").to_pyarrow_table()
    rows = [
        (r["partition"], r["base_offset"] + r["position"], r["key"], r["value"], r["timestamp"])
        for r in table.to_pylist()
    ]
    return sorted(rows, key=lambda row: row[:2])


def some(n: int, **more: object) -> pa.Table:
    headers = pa.array([[("h", b"1")]] * n, pa.map_(pa.string(), pa.binary()))
    return pa.table(
        {"key": [b"k%d" % i for i in range(n)], "value": [b"v%d" % i for i in range(n)], "headers": headers, **more}
    )


def test_after_appends(lake: Lake) -> None:
    lake.create_topic("t", partitions=3)
    for n in (5, 1, 40):
        lake.topic("t").append(some(n))
    assert by_deltalake(lake) == by_tidelog(lake)
    assert len(by_tidelog(lake)) == 46


def test_schema_and_partitions(lake: Lake) -> None:
    lake.create_topic("t", partitions=2)
    lake.topic("t").append(some(3))
    table = DeltaTable(f"{lake.uri}/t")
    assert table.metadata().partition_columns == ["partition", "base_offset"]
    assert [f.name for f in table.schema().fields] == [
        "partition",
        "base_offset",
        "position",
        "key",
        "value",
        "headers",
        "timestamp",
        "timestamp_type",
    ]


def test_after_delete_records_of_whole_segments(lake: Lake) -> None:
    for n in (3, 4):
        lake.topic("t").append(some(n))
    lake.delete_records("t", {0: 3})
    assert by_deltalake(lake) == by_tidelog(lake)
    assert [row[1] for row in by_tidelog(lake)] == [3, 4, 5, 6]


def test_after_a_delete_and_a_new_life(lake: Lake) -> None:
    lake.topic("t").append(some(3))
    lake.delete_topic("t")
    assert by_deltalake(lake) == []
    lake.create_topic("t", partitions=2)
    lake.topic("t").append(some(2))
    assert by_deltalake(lake) == by_tidelog(lake)


def test_after_checkpoints(lake: Lake) -> None:
    lake.create_topic("t", config={"log.checkpoint.interval": "10"})
    for _ in range(25):
        lake.topic("t").append(some(1))
    lake.close()
    assert list((Path(lake.uri.removeprefix("file://")) / "t/_delta_log").glob("*.checkpoint.parquet"))
    assert by_deltalake(lake) == by_tidelog(lake)
    with Lake(lake.uri) as fresh:
        assert by_tidelog(fresh) == by_tidelog(lake)
        assert fresh.topic("t").append(some(1)) == {0: (25, 26)}


def test_pruning_by_partition_and_by_statistics(lake: Lake) -> None:
    lake.create_topic("t", partitions=3)
    lake.topic("t").append(some(30, partition=[i % 3 for i in range(30)]))
    table = DeltaTable(f"{lake.uri}/t")
    assert table.to_pyarrow_table(filters=[("partition", "=", 1), ("position", ">=", 8)]).num_rows == 2


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_folders(tmp_path: Path, name: str) -> None:
    with Lake(str(tmp_path / name / "lake")) as lake:
        lake.create_topic("t", config={"log.checkpoint.interval": "10"})
        for _ in range(12):
            lake.topic("t").append(some(1))
    with Lake(str(tmp_path / name / "lake"), create=False) as again:
        log = tmp_path / name / "lake/t/_delta_log"
        # A little behind the head, as it was when the background came to it.
        [checkpoint] = log.glob("*.checkpoint.parquet")
        assert int(checkpoint.name[:20]) in range(8, 11)
        assert len(by_tidelog(again)) == 12
        assert by_deltalake(again) == by_tidelog(again)


@pytest.mark.parametrize("style", ["file://{}", "{}/", "file:{}", "{}/.", "{}/x/.."])
def test_one_lake_by_many_addresses(tmp_path: Path, style: str) -> None:
    root = tmp_path / "lake"
    with Lake(str(root)) as lake:
        lake.topic("t").append(some(2))
    with Lake(style.format(root), create=False) as again:
        assert again.uri == f"file://{root}"
        assert len(by_tidelog(again)) == 2


def test_a_relative_address_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Lake("some/lake") as lake:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        lake.topic("t").append(some(2))
    assert (tmp_path / "some/lake/t/_delta_log").is_dir()
    assert not list((tmp_path / "elsewhere").iterdir())
