"""What the kept log says of removed files: read past the floor, in any number of entries, and never past a hole."""

import pytest
from support.logs import START_MS, memory_lake, put_checkpoint, values

from tidelog.log.base.errors import CorruptLogError
from tidelog.log.checkpoints.entry_ranges import AT_ONCE
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.delta import layout
from tidelog.log.storage import MemoryStorage, Storage
from tidelog.log.upkeep.replaced_files import Gone, over, read_gone, read_kept


def log_of(appends: int) -> tuple[Storage, list[str]]:
    """Topic "t" with this number of appends, then one entry that removes the segments of the first two; their files."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1)
    for i in range(appends):
        lake.topic("t").append(values(f"{i}"))
    files = [s.path for s in lake.topic("t").state().live(0)]
    lake.delete_records("t", {0: 2})
    clock.pass_s(5)
    return storage.inner, files


@pytest.mark.parametrize("appends", [3, AT_ONCE + 10])
def test_entries_past_the_floor_say_what_they_removed(appends: int) -> None:
    storage, files = log_of(appends)
    kept = read_kept(storage, "t", -1, appends + 1)
    assert (kept.oldest, kept.removed, kept.gone) == (0, dict.fromkeys(files[:2], appends + 1), {})


def test_an_entry_right_past_the_floor_is_in_the_checkpoint() -> None:
    storage, files = log_of(3)
    put_checkpoint(storage, "t", 4)
    storage.put_if_absent(f"t/{layout.floor_path(3)}", b"")
    kept = read_kept(storage, "t", 3, 4)
    assert (kept.oldest, kept.removed) == (4, {})
    assert kept.gone == {path: Gone(START_MS, START_MS + 5000) for path in files[:2]}


def test_a_checkpoint_that_a_newer_floor_passed_says_nothing() -> None:
    storage, _ = log_of(3)
    put_checkpoint(storage, "t", 4)
    listing = list(storage.list_after(f"t/{layout.LOG_FOLDER}"))
    storage.delete(f"t/{layout.checkpoint_path(4)}")
    assert read_gone(storage, "t", 3, listing) == {}
    assert read_gone(storage, "t", 2, listing) == {}


def test_entries_that_were_trimmed_meanwhile_are_passed_over() -> None:
    storage, files = log_of(3)
    for version in range(3):
        storage.delete(f"t/{layout.entry_path(version)}")
    storage.put_if_absent(f"t/{layout.floor_path(2)}", b"")
    assert read_kept(storage, "t", -1, 4).removed == dict.fromkeys(files[:2], 4)


@pytest.mark.parametrize("appends", [3, AT_ONCE + 10])
def test_a_hole_stops_it(appends: int) -> None:
    storage, _ = log_of(appends)
    storage.delete(f"t/{layout.entry_path(2)}")
    with pytest.raises(CorruptLogError, match="lacks entry 2"):
        read_kept(storage, "t", -1, appends + 1)


def test_the_newest_floor() -> None:
    storage = MemoryStorage("floors")
    assert newest_floor(storage, "t") == -1
    for version in (7, 40, 9):
        storage.put_if_absent(f"t/{layout.floor_path(version)}", b"")
    assert newest_floor(storage, "t") == 40


def test_what_is_over() -> None:
    gone = {path: Gone(100, 100) for path in ("there", "live", "not there")}
    made_ms = {"there": 50, "live": 50}
    assert over(gone, made_ms, {"live"}, 110, 10) == ["there"]
    assert over(gone, made_ms, {"live"}, 109, 10) == []
