"""Batches in files: what memory drops is there, as it was, until its room is needed or the log has it no more."""

import asyncio
import os
from functools import partial, wraps
from itertools import accumulate
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import FakeClock

from tidelog.broker.base import batch_files as subject
from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.batch_files import BatchFiles, FiledRun
from tidelog.broker.base.batch_runs import BatchRun
from tidelog.broker.records.batches import NONE, BatchHeader, sealed
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.state.rewrites import Rewrite
from tidelog.log.storage.scratch import ScratchFile
from tidelog.server.base.blocking import here

T, U = UUID(int=1), UUID(int=2)
FILE = 1 << 20


def batch(first, last, size=0, epoch=3):
    return sealed(BatchHeader(first, 0, epoch, 2, 0, 0, last - first, -1, -1, -1, -1, -1, 1), bytes(size), NONE)


def run(first, *batches, partition=0, version=-1, end=None):
    lasts = [int.from_bytes(one[:8]) + int.from_bytes(one[23:27]) for one in batches]
    size = sum(map(len, batches))
    return BatchRun((T, partition, NONE), first, end or lasts[-1] + 1, lasts, list(batches), size, version)


class Kept:
    """Files in a folder, and a loop."""

    def __init__(self, folder, most_bytes=16 * FILE, new_file=None):
        self.clock = FakeClock()
        self.files = BatchFiles(most_bytes, new_file or partial(ScratchFile, str(folder)), here, self.clock)

    async def put(self, *runs, writes=True):
        """Put runs there, and have them written together, or not yet."""
        self.files._write_bytes = 1 if writes else 1 << 30
        for one in runs:
            self.files.put(one)
        await self.written()

    async def written(self):
        while self.files._writing is not None:
            await asyncio.sleep(0)

    def bytes_of(self, offset, most=1 << 30, partition=0, epoch=3):
        part = self.files.part((T, partition, NONE), offset, most)
        return None if part is None else b"".join(piece for _, piece in part.read(epoch))


def in_loop(test):
    @wraps(test)
    def run_it(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run_it


BATCHES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(0, 40_000)), min_size=1, max_size=12)


@given(BATCHES, st.integers(0, 90), st.integers(1, 200_000), st.integers(0, 4))
def test_a_file_gives_what_memory_would(tmp_path_factory, gaps, offset, most, epoch):
    made, at = [], 0
    for gap, count, size in gaps:
        made.append(batch(at + gap, at + gap + count - 1, size))
        at += gap + count
    memory = run(0, *made, end=at + 2)

    async def compare():
        kept = Kept(tmp_path_factory.getbasetemp())
        await kept.put(run(0, *made, end=at + 2))
        assert isinstance(kept.files.find((T, 0, NONE), 0), FiledRun)
        found = memory.read(offset, most, at_least_one=True)
        part = kept.files.part((T, 0, NONE), offset, most)
        if not found.batches or offset >= at + 2:
            assert part is None
            return
        pieces = part.read(epoch)
        sent = b"".join(piece for _, piece in pieces)
        ours = [b[:12] + epoch.to_bytes(4) + b[16:] for b in found.batches]
        # A group is not cut where whole groups are enough.
        assert sent
        assert b"".join(ours).startswith(sent)
        assert len(sent) == sum(map(len, ours)) or len(sent) >= most - subject.GROUP_BYTES - 40_061
        sizes = list(accumulate(map(len, ours)))
        assert pieces[-1][0] == [last for last in memory.lasts if last >= offset][sizes.index(len(sent))]

    asyncio.run(compare())


@in_loop
async def test_what_waits_for_a_file_is_there_too(tmp_path):
    kept = Kept(tmp_path)
    await kept.put(run(0, batch(0, 4), batch(5, 9)), writes=False)
    assert kept.bytes_of(7) == batch(5, 9)
    assert kept.bytes_of(0, epoch=8) == batch(0, 4, epoch=8) + batch(5, 9, epoch=8)
    assert kept.files.next_first((T, 0, NONE), -1) == 0
    assert not kept.files.size


@in_loop
async def test_runs_that_follow_one_another_become_one(tmp_path):
    kept = Kept(tmp_path)
    await kept.put(run(5, batch(5, 9)), run(7, batch(7, 9), partition=1), run(0, batch(0, 4)), run(10, batch(10, 11)))
    found = kept.files.find((T, 0, NONE), 11)
    assert (found.first, found.end) == (0, 12)
    assert kept.bytes_of(0) == batch(0, 4) + batch(5, 9) + batch(10, 11)
    assert kept.bytes_of(7, partition=1) == batch(7, 9)


@in_loop
async def test_the_oldest_file_goes_when_its_room_is_needed(tmp_path):
    kept = Kept(tmp_path)
    for at in range(40):
        await kept.put(run(at, batch(at, at, FILE - 61)))
    assert kept.files.size == 16 * FILE
    left = [at for at in range(40) if kept.files.find((T, 0, NONE), at) is not None]
    assert left == list(range(24, 40))
    assert all(kept.bytes_of(at) == batch(at, at, FILE - 61) for at in left)


@in_loop
async def test_what_is_looked_at_stays_as_it_is_when_its_file_goes(tmp_path):
    kept = Kept(tmp_path)
    await kept.put(run(0, batch(0, 9, 5000)))
    ((_, view),) = kept.files.part((T, 0, NONE), 0, 1 << 20).read(3)
    assert isinstance(view, memoryview)
    kept.files.close()
    for at in range(10):
        await kept.put(run(at, batch(at, at, 90_000)))
    assert view == batch(0, 9, 5000)
    assert kept.bytes_of(0) is None


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("version", [-1, 4, 7])
@in_loop
async def test_what_is_rewritten_is_forgotten_and_its_file_goes_in_a_while(tmp_path, monkeypatch, writes, version):
    due = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda wait_s, call: due.append((wait_s, call)))
    kept = Kept(tmp_path)
    await kept.put(run(0, batch(0, 4), version=version), run(9, batch(9, 9), version=version), writes=writes)
    kept.files.forget(T, [Rewrite(5, 0, 2, 3)])
    is_old = version < 5
    assert (kept.bytes_of(0) is None) == is_old
    assert kept.bytes_of(9) == batch(9, 9)
    kept.files.forget(T, None)
    assert kept.bytes_of(9) is None
    if not writes:  # what was forgotten is not brought back when it is written
        await kept.put(run(20, batch(20, 20)))
        assert kept.bytes_of(20) == batch(20, 20)
        assert kept.bytes_of(0) is kept.bytes_of(9) is None
    if writes:
        assert due[0][0] == subject.FORGOTTEN_S
        kept.clock.pass_s(subject.FORGOTTEN_S)
        due[0][1]()
        assert not kept.files.size


@in_loop
async def test_what_is_forgotten_while_it_is_written_does_not_come_back(tmp_path):
    kept = Kept(tmp_path)
    forgotten = []

    def forgets(size):
        kept.files.forget(T, None)
        forgotten.append(size)
        return ScratchFile(str(tmp_path), size)

    kept.files._new_file = forgets
    await kept.put(run(0, batch(0, 4)))
    assert forgotten
    assert kept.bytes_of(0) is None


@pytest.mark.parametrize("at", [0, 14, 100, 70_000])
@in_loop
async def test_a_byte_that_is_not_as_it_was_is_an_error(tmp_path, at):
    kept = Kept(tmp_path)
    await kept.put(run(0, batch(0, 4, 66_000), batch(5, 9, 66_000)))
    filed = kept.files.find((T, 0, NONE), 0)
    number, place = filed.file.scratch._number, filed.at + at
    os.pwrite(number, bytes([os.pread(number, 1, place)[0] ^ 1]), place)
    with pytest.raises(OSError, match="not what was written"):
        kept.bytes_of(0)
    kept.files.drop(filed)
    assert kept.bytes_of(0) is None


@in_loop
async def test_a_full_disk_is_left_alone_for_a_while(tmp_path, caplog):
    def full(_):
        raise OSError(28, "No space left on device")

    kept = Kept(tmp_path, new_file=full)
    await kept.put(run(0, batch(0, 4)))
    assert kept.bytes_of(0) is None
    assert "No space left" in caplog.text
    kept.files._new_file = partial(ScratchFile, str(tmp_path))
    await kept.put(run(0, batch(0, 4)))
    assert kept.bytes_of(0) is None
    kept.clock.pass_s(61)
    await kept.put(run(0, batch(0, 4)))
    assert kept.bytes_of(0) == batch(0, 4)


@in_loop
async def test_what_comes_faster_than_it_is_written_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "MOST_WAITING_BYTES", 1000)
    kept = Kept(tmp_path)
    await kept.put(run(0, batch(0, 4, 600)), run(5, batch(5, 9, 600)), writes=False)
    assert kept.bytes_of(0) == batch(0, 4, 600)
    assert kept.bytes_of(5) is None


@in_loop
async def test_memory_gives_what_it_drops(tmp_path):
    kept = Kept(tmp_path)
    cache = BatchCache(3000, kept.files)
    kept.files._write_bytes = 1
    for at in range(10):
        cache.add(T, at % 2, at, at, batch(at, at, 500))
    await kept.written()
    here_or_there = [cache.get(T, at % 2, at) or kept.bytes_of(at, partition=at % 2) for at in range(10)]
    assert here_or_there == [batch(at, at, 500) for at in range(10)]
    assert kept.bytes_of(0) == batch(0, 0, 500)
    assert cache.next_first((T, 0, NONE), -1) == 0
    cache.forget(T, None)
    assert kept.bytes_of(0) is None


def test_there_are_none_unless_they_are_asked_for_and_a_folder_that_takes_none_is_refused(tmp_path):
    make = partial(subject.batch_files, blocking=here, clock=FakeClock())
    assert make(0, str(tmp_path / "none")) is None
    assert make(1000, str(tmp_path)).most_bytes == 1000
    with pytest.raises(InvalidConfigError, match=r"cache\.files\.dir"):
        make(1000, str(tmp_path / "none"))
