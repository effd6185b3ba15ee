"""Real processes on a local disk: two with one transactional id, and some that are killed in the midst of a commit."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.faults import FaultyStorage
from support.forked_processes import forking
from support.logs import read, values

from tidelog.check.lake import check_lake
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import ProducerFencedError
from tidelog.log.lake import Lake
from tidelog.log.storage import open_storage
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit
from tidelog.transactions.transaction_log import TransactionLog

EACH = 15


def new_lake(path: Path) -> str:
    uri = str(path / "lake")
    with Lake(uri) as lake:
        for topic in ("in", "a", "b"):
            lake.create_topic(topic, 1)
        lake.topic("in").append(values(*map(str, range(1_000))))
    return uri


def producer(lake: Lake) -> TransactionManager:
    return TransactionManager(lake, "x", LoggedOffsets(GroupLog(lake)))


def copy(manager: TransactionManager, text: str, offset: int) -> None:
    """A record for both topics, and the group's offset."""
    manager.begin()
    for topic in ("a", "b"):
        manager.stage(topic, values(text), np.zeros(1, np.int32))
    manager.add_offsets(GroupIdentity("g"), {("in", 0): OffsetToCommit(offset)})
    manager.commit()


# --- two with one id ---------------------------------------------------------------------------------------


def race(uri: str, who: str, go: Any, answers: Any) -> None:
    """Commit until `EACH` commits succeeded; whenever the other one fences it, a new producer takes over again."""
    with Lake(uri) as lake:
        go.wait(60)
        committed: list[str] = []
        tried = 0
        while len(committed) < EACH:
            manager = producer(lake)
            manager.init()
            try:
                for _ in range(3):
                    tried += 1
                    copy(manager, f"{who}{tried}", len(committed) + 1)
                    committed.append(f"{who}{tried}")
            except ProducerFencedError:
                continue
        answers.put((who, committed, tried))


def test_two_processes_with_one_id_fence_each_other_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    uri = new_lake(tmp_path)
    go, answers = forking().Event(), forking().Queue()
    processes = [forking().Process(target=race, args=(uri, who, go, answers)) for who in "pq"]
    for process in processes:
        process.start()
    go.set()
    told = [answers.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(60)
    with Lake(uri) as lake:
        producer(lake).init()
        a, b = read(lake, "a"), read(lake, "b")
        assert sorted(a) == sorted(b)
        assert len(set(a)) == len(a)
        assert {text for _, committed, _ in told for text in committed} <= set(a)
        for who, _, tried in told:
            own = [int(text[1:]) for text in a if text[0] == who]
            assert own == sorted(own)
            assert max(own) <= tried
        assert TransactionLog(lake).incomplete() == []
        assert GroupLog(lake).stable_offsets("g")["in", 0].offset in range(1, EACH + 3)
    assert check_lake(open_storage(uri), deep=True).green


# --- killed ------------------------------------------------------------------------------------------------


def die_at(uri: str, moment: str, at: int) -> None:
    """Copy one record after another, as far as the group's offset says, and kill this process at a put."""
    left = [at]

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path.startswith(moment):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    storage = FaultyStorage(open_storage(uri), hook)
    with Lake(uri, storage=storage) as lake:
        manager = producer(lake)
        manager.init()
        while True:
            done = GroupLog(lake).stable_offsets("g").get(("in", 0))
            offset = 0 if done is None else done.offset
            copy(manager, str(offset), offset + 1)


@pytest.mark.parametrize("moment", ["a/", "b/", "__consumer_offsets/", "__transaction_state/"])
def test_a_process_that_is_killed_in_a_commit_leaves_it_whole_or_not_at_all(moment: str, tmp_path: Path) -> None:
    """For `a/` and `b/`: between the intent and its roll-forward."""
    uri = new_lake(tmp_path)
    for at in (2, 1, 3):
        process = forking().Process(target=die_at, args=(uri, moment, at))
        process.start()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
    with Lake(uri) as lake:
        undone = len(TransactionLog(lake).incomplete())
        if moment in ("a/", "b/"):
            assert (undone, len(read(lake, "b")) < len(read(lake, "a")) + (moment == "a/")) == (1, True)
        producer(lake).init()
        done = GroupLog(lake).stable_offsets("g")["in", 0].offset
        a, b = read(lake, "a"), read(lake, "b")
        assert a == b == [str(i) for i in range(done)]
        assert done >= 1
        assert TransactionLog(lake).incomplete() == []
    assert check_lake(open_storage(uri), deep=True).green
