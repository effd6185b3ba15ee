"""What other engines read after a purge: every version from the oldest one on, whole, and no file that is gone."""

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from support.logs import read, stage, values
from support.purges import purge_once
from support.rewrites import merge

from tidelog.check.lake import Severity, check_lake
from tidelog.log.base.clock import SystemClock
from tidelog.log.lake import Lake
from tidelog.retention.key_erasure import erase_keys

HOUR_S = 3600.0


class Impatient(SystemClock):
    """Does not wait: the test itself made these files old."""

    def sleep(self, seconds: float) -> None:
        """Not now."""


def age(topic: Path, seconds: float, up_to: int) -> None:
    """Let entries up to a version, and every data file, have come so long ago."""
    entries = [f for f in (topic / "_delta_log").glob("*.json") if int(f.name[:20]) <= up_to]
    for file in [*entries, *topic.glob("partition=*/*.parquet")]:
        then = file.stat().st_mtime - seconds
        os.utime(file, (then, then))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, clock=Impatient())
    lake.create_topic("t", 1, config={"log.min.age.ms": "10000", "file.delete.delay.ms": "0"})
    return lake


def rows(lake: Lake, version: int) -> list[str]:
    table = DeltaTable(f"{lake.uri}/t", version=version).to_pyarrow_table().sort_by("base_offset")
    return [v.decode() for v in table.column("value").to_pylist()]


def test_time_travel_reads_every_version_that_is_left(lake: Lake, tmp_path: Path) -> None:
    topic = lake.topic("t")
    for i in range(4):
        topic.append(values(f"{i}"))  # versions 1 to 4
    merge(lake, "t")  # 5
    lake.delete_records("t", {0: 0})
    topic.append(values("4"))  # 6
    age(tmp_path / "t", HOUR_S, 5)
    topic.append(values("5"))  # 7
    lake.delete_records("t", {0: 4})  # 8
    done = purge_once(lake)
    assert (done.oldest, done.checkpoint, len(done.deleted)) == (5, 5, 4)
    assert [rows(lake, v) for v in (5, 6, 7, 8)] == [
        ["0", "1", "2", "3"],
        ["0", "1", "2", "3", "4"],
        ["0", "1", "2", "3", "4", "5"],
        ["4", "5"],
    ]
    with pytest.raises(DeltaError):
        rows(lake, 4)
    assert len(list((tmp_path / "t").glob("partition=*/*.parquet"))) == 3
    assert not check_lake(lake.storage, deep=True).of(Severity.ERROR)


def test_forgetting_leaves_holes_that_deltalake_reads_around(lake: Lake, tmp_path: Path) -> None:
    lake.topic("t").append(values("0", "1", "2", key=[b"a", b"secret", b"c"]))
    done = erase_keys(lake, "t", [b"secret"])
    assert rows(lake, 2) == ["0", "2"]
    assert rows(lake, 1) == ["0", "1", "2"]  # as long as time travel reaches
    age(tmp_path / "t", HOUR_S, 2)
    again = erase_keys(lake, "t", [b"secret"])
    assert [d.path for d in again.deleted] == [s.path for s in done.rewritten]
    assert rows(lake, lake.topic("t").state().version) == ["0", "2"]
    assert not any(b"secret" in file.read_bytes() for file in (tmp_path / "t").rglob("*") if file.is_file())


def test_an_orphan_on_a_disk(lake: Lake, tmp_path: Path) -> None:
    lake.topic("t").append(values("0"))
    (staged,) = stage(lake.topic("t"), "of a writer that died")
    age(tmp_path / "t", 2 * HOUR_S, 1)
    assert [(d.path, d.why) for d in purge_once(lake).deleted] == [(staged.path, "orphan")]
    assert read(lake, "t") == rows(lake, 2) == ["0"]
