"""Files without a name: what was written is looked at through a map, and a disk that fails is an error."""

import gc
import os
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.storage import scratch
from tidelog.log.storage.scratch import ScratchFile

PAGE = 4096


@given(st.lists(st.binary(max_size=9000), max_size=8), st.integers(0, 5000))
def test_what_was_written_is_there(tmp_path_factory, parts, at):
    whole = b"".join(parts)
    file = ScratchFile(str(tmp_path_factory.getbasetemp()), at + len(whole) + 1)
    file.write(at, parts)
    assert file.look(at, at + len(whole)) == whole
    assert file.look(0, 0) == b""


def test_more_buffers_than_the_system_takes_at_once_are_written(tmp_path):
    parts = [bytes([n % 256]) * (n % 3) for n in range(5000)]
    file = ScratchFile(str(tmp_path), 10_000)
    file.write(7, parts)
    assert file.look(7, 7 + len(b"".join(parts))) == b"".join(parts)


def held_below(folder) -> list[str]:
    """The files in a folder, with names or without, that this process has open or mapped."""
    opened = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # another thread has closed it
            opened.append(os.readlink(f"/proc/self/fd/{number}"))
    with open("/proc/self/maps") as maps:
        opened += [line.split(maxsplit=5)[5] for line in maps if len(line.split(maxsplit=5)) > 5]
    return [path for path in opened if path.startswith(str(folder))]


def test_it_has_no_name_and_gives_its_room_back(tmp_path):
    file = ScratchFile(str(tmp_path), PAGE)
    assert os.listdir(tmp_path) == []
    assert held_below(tmp_path)
    file.write(0, [b"bytes"])
    view = file.look(0, 5)
    number = file._number
    del file
    gc.collect()
    assert view == b"bytes"
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)
    del view
    gc.collect()
    assert held_below(tmp_path) == []


@pytest.mark.parametrize("has_madvise", [True, False])
def test_bytes_that_the_disk_does_not_give_are_an_error_and_end_no_process(tmp_path, monkeypatch, has_madvise):
    if not has_madvise:
        monkeypatch.setattr(scratch, "_madvise", None)
    file = ScratchFile(str(tmp_path), 4 * PAGE)
    file.write(0, [bytes(4 * PAGE)])
    os.ftruncate(file._number, PAGE)
    assert file.look(0, PAGE) == bytes(PAGE)
    with pytest.raises(OSError, match="Bad address" if has_madvise else "shorter than it was made"):
        file.look(PAGE, 3 * PAGE)


def test_an_old_kernel_is_asked_in_the_other_way(tmp_path, monkeypatch):
    def refuses(*_):
        scratch.ctypes.set_errno(scratch.errno.EINVAL)
        return -1

    monkeypatch.setattr(scratch, "_madvise", refuses)
    file = ScratchFile(str(tmp_path), PAGE)
    file.write(3, [b"bytes"])
    assert file.look(3, 8) == b"bytes"


def test_what_was_just_written_is_near_and_what_can_not_be_told_is_not(tmp_path, monkeypatch):
    file = ScratchFile(str(tmp_path), 64 * PAGE)
    file.write(100, [bytes(20 * PAGE)])
    assert file.is_near(100, 100 + 20 * PAGE)
    assert not file.is_near(100, 40 * PAGE)  # a part was never written
    monkeypatch.setattr(scratch, "_mincore", None)
    assert not file.is_near(100, 200)


def test_a_folder_that_takes_no_files_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ScratchFile(str(tmp_path / "none"), PAGE)
