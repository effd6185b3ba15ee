"""Files that compaction replaced are deleted once no reader that follows the log can need them."""

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable
from support.row_tables import NAME, WORDS, put, words

from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.lake import Lake
from tidelog.log.upkeep.trim import trim


def age(folder: Path, seconds: float) -> None:
    """Let the entries have come one after another, some seconds apart."""
    entries = sorted(folder.glob("*.json"))
    newest = max(e.stat().st_mtime for e in entries)
    for back, path in enumerate(reversed(entries)):
        os.utime(path, times=(newest - back * seconds,) * 2)


@pytest.mark.parametrize(("delay_ms", "purged"), [("0", 30), ("86400000", 0)])
def test_replaced_files_go_after_the_floor_has_passed_them(tmp_path: Path, delay_ms: str, purged: int) -> None:
    with Lake(str(tmp_path)) as lake:
        lake.alter_config({"log.segment.delete.delay.ms": delay_ms, "log.min.age.ms": "10000"})
        log, rows = lake.row_log(NAME, WORDS), tmp_path / NAME / "rows"
        for i in range(30):
            put(log, **{f"k{i % 3}": i})
        assert log.chores.compact()
        put(log, n=1)
        assert log.chores.purge() == 0  # no floor has passed anything
        write_checkpoint(lake.storage, NAME, log.version, lake.clock.now_ms())
        for i in range(15):
            put(log, n=i)
        age(tmp_path / NAME / "_delta_log", 2)
        assert trim(lake.storage, NAME, 10_000).floor == 31
        assert len(os.listdir(rows)) == 47
        assert log.chores.purge() == purged
        assert log.chores.purge() == 0
        assert len(os.listdir(rows)) == 47 - purged
        expected = words(log)
    with Lake(str(tmp_path)) as lake:
        assert words(lake.row_log(NAME, WORDS)) == expected == {"k0": 27, "k1": 28, "k2": 29, "n": 14}
    assert DeltaTable(f"{tmp_path}/{NAME}").to_pyarrow_table().num_rows == 19
