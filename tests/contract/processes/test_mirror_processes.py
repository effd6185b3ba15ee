"""Mirrors as real processes on a local disk, killed while everything goes on at the source."""

import os
import random
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.forked_processes import forking
from support.logs import read
from support.mirror_processes import mirror, mirror_to_the_end, new_source, write
from support.waiting import eventually

from tidelog.check.lake import check_lake
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.log.storage import open_storage
from tidelog.mirror.comparison import differences
from tidelog.mirror.promotion import NotPromotedError, promote
from tidelog.operations.mirrors import read_status

KILLS = int(os.environ.get("TIDELOG_MIRROR_KILLS", "3"))
SEEN: set[str] = set()
LONGEST_S = float(os.environ.get("TIDELOG_MIRROR_LIFE_S", "2"))


def test_a_mirror_that_is_killed_again_and_again_ends_equal_to_its_source(tmp_path: Path) -> None:
    source, follower = str(tmp_path / "source"), str(tmp_path / "follower")
    new_source(source)
    mirror_to_the_end(source, follower)
    stop, chance = forking().Event(), random.Random(7)
    writer = forking().Process(target=write, args=(source, stop))
    writer.start()
    try:
        for n in range(KILLS):
            running = forking().Process(target=mirror, args=(source, follower))
            running.start()
            eventually(partial(shipped_by, running, follower), "entries by this mirror")
            running.join(chance.random() * LONGEST_S)  # the rest of its life
            assert running.is_alive()
            os.kill(running.pid or 0, signal.SIGKILL)
            running.join()
            copy = tmp_path / f"copy-{n}"
            shutil.copytree(follower, copy)
            require_promotable_if_whole(copy)
            shutil.rmtree(copy)
    finally:
        stop.set()
        writer.join(120)
        if writer.is_alive():
            writer.kill()
    assert writer.exitcode == 0
    last = mirror_to_the_end(source, follower)
    assert last.problems == {}
    with Lake(source) as ours, Lake(follower) as theirs:
        assert list(differences(ours, theirs)) == []
        assert len(read(ours, "b")) > KILLS
    assert [f for f in check_lake(open_storage(follower), deep=True).findings if f.severity == "error"] == []


def shipped_by(running: Any, follower: str) -> bool:
    """Whether this mirror has shipped something, by its own word."""
    assert running.is_alive()
    status = read_status(open_storage(follower))
    seen = status is not None and status.run not in SEEN and status.shipped_entries > 10
    if seen and status is not None:
        SEEN.add(status.run)
    return seen


def require_promotable_if_whole(copy: Path) -> None:
    """What is left of a killed mirror becomes a lake in which each transaction is whole, or is refused as not whole."""
    storage = open_storage(str(copy))
    status = read_status(storage)
    if status is None or status.whole_ms is None:
        # It was away for longer than the source keeps its log, and began a table again: tables are of different times.
        with Lake(str(copy), may_change_follower=True) as lake, pytest.raises(NotPromotedError, match="is not whole"):
            promote(lake, None)
        return
    with Lake(str(copy), may_change_follower=True) as lake:
        promote(lake, None)
    with Lake(str(copy)) as lake:
        a, b = read(lake, "a"), read(lake, "b")
        assert a == b
        offsets = GroupLog(lake).stable_offsets("g")
        assert {place: one.offset for place, one in offsets.items()} == ({("in", 0): len(a)} if a else {})
        for (topic, partition), one in GroupLog(lake).offsets("readers").items():
            assert one.offset <= lake.offsets(topic)[partition][1]
