"""Copies of files between two folders: the kernel makes them, whole or not at all."""

import errno
import os
from pathlib import Path

import pytest
from support.logs import FakeClock

from tidelog.log.base.errors import MissingSegmentError, StorageError
from tidelog.log.base.rate import Rate
from tidelog.log.storage.local import LocalStorage
from tidelog.log.storage.local_files import WORTH_WRITEBACK
from tidelog.mirror import copying
from tidelog.mirror.copying import Copier

SIZES = {"t/empty": 0, "t/small": 10, "u/large": 3 * WORTH_WRITEBACK + 7}


def contents(folder: Path) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in SIZES}


def filled(folder: Path) -> None:
    store = LocalStorage(folder)
    for path, size in SIZES.items():
        store.put(path, os.urandom(size))


def copier(tmp_path: Path, rate: Rate | None = None) -> Copier:
    ours, theirs = LocalStorage(tmp_path / "ours"), LocalStorage(tmp_path / "theirs")
    return Copier(ours, theirs, rate or Rate(FakeClock(), None))


@pytest.mark.parametrize("kernel", [True, False], ids=["by the kernel", "by its bytes"])
def test_files_are_the_same_on_the_other_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: bool) -> None:
    asked = []

    def refusing(*_: object) -> int:
        asked.append(1)
        raise OSError(errno.EXDEV, "two file systems")

    if not kernel:
        monkeypatch.setattr(os, "copy_file_range", refusing)
    filled(tmp_path / "ours")
    found = copier(tmp_path)
    assert found.copy(SIZES) == []
    assert contents(tmp_path / "theirs") == contents(tmp_path / "ours")
    assert found.copied_bytes == sum(SIZES.values())
    assert bool(asked) is not kernel
    filled(tmp_path / "ours")  # other bytes under the same names
    assert found.copy(SIZES) == []
    assert contents(tmp_path / "theirs") == contents(tmp_path / "ours")


def test_the_bytes_do_not_come_into_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "ours")
    found = copier(tmp_path)
    for name in ("get", "open"):
        monkeypatch.setattr(found.source, name, None)
    assert found.copy({"u/large": SIZES["u/large"]}) == []


def test_a_file_that_is_not_there_is_named_and_one_of_another_size_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "ours")
    found = copier(tmp_path)
    assert found.copy({"t/gone": 5, "t/small": 10}) == ["t/gone"]
    with pytest.raises(MissingSegmentError, match="t/small has 10 bytes at the source, and its log says 11"):
        found.copy({"t/small": 11})


def test_a_copy_that_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    filled(tmp_path / "ours")
    found = copier(tmp_path)
    theirs = LocalStorage(tmp_path / "theirs")
    theirs.put("u/large", b"before")
    calls = []

    def fail() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise OSError(errno.EIO, "half way")

    with pytest.raises(Exception, match="half way"):
        theirs.copy_in("u/large", str(tmp_path / "ours" / "u/large"), WORTH_WRITEBACK, fail)
    assert theirs.get("u/large") == b"before"
    assert theirs.unfinished("u") == []
    assert found.copy({"u/large": SIZES["u/large"]}) == []


def test_a_limit_holds_for_copies_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PIECE_BYTES", WORTH_WRITEBACK)
    filled(tmp_path / "ours")
    clock = FakeClock()
    began_s = clock.elapsed_s()
    found = copier(tmp_path, Rate(clock, WORTH_WRITEBACK))
    assert found.copy({"u/large": SIZES["u/large"]}) == []
    assert 2.5 <= clock.elapsed_s() - began_s <= 4.5


def test_what_was_copied_since_the_machine_started_is_not_copied_again(tmp_path: Path) -> None:
    filled(tmp_path / "ours")
    assert copier(tmp_path).copy(SIZES) == []
    started_s = copying.started_ms(LocalStorage(tmp_path / "theirs")) / 1000
    os.utime(tmp_path / "theirs" / "t" / "small", (started_s - 5, started_s - 5))  # it may not have lasted
    found = copier(tmp_path)
    assert found.copy(SIZES, again=True) == []
    assert found.copied_bytes == SIZES["t/small"]
    assert contents(tmp_path / "theirs") == contents(tmp_path / "ours")


def test_after_a_failed_sync_everything_is_copied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "ours")
    found = copier(tmp_path)
    with monkeypatch.context() as patched:

        def fail(_: object) -> list[str]:
            raise StorageError("the disk failed")

        patched.setattr(found.follower, "sync", fail)
        with pytest.raises(StorageError, match="the disk failed"):
            found.copy(SIZES)
    before = found.copied_bytes
    assert found.copy(SIZES, again=True) == []
    assert found.copied_bytes - before == sum(SIZES.values())
