"""Writers and purges at once: a file that was taken for an orphan is refused, and nothing acknowledged is lost."""

from collections.abc import Callable

import pytest
from support.faults import FaultyStorage
from support.logs import FakeClock, open_lake, quiet, read, stage, values
from support.purges import HOUR_S, LEFT, data_files, missing_files, purge_once, resting_topic
from support.shares import commit_alone

from tidelog.log.base.errors import MissingSegmentError, SegmentTooOldError
from tidelog.log.delta import layout


def frozen_before_its_commit(storage: FaultyStorage, clock: FakeClock, meanwhile: Callable[[], object]) -> list[str]:
    """An append whose writer sleeps for hours just before it creates its entry."""
    writer = open_lake(storage, clock)
    slept = []

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and layout.LOG_FOLDER in path and not slept:
            slept.append(path)
            storage.hook = quiet
            clock.pass_s(3 * HOUR_S)
            meanwhile()
            storage.hook = hook

    topic = writer.topic("t")
    storage.hook = hook
    topic.append(values("late"))
    storage.hook = quiet
    assert slept
    return read(open_lake(storage, clock), "t")


def test_a_writer_whose_file_was_taken_for_an_orphan_writes_it_again() -> None:
    lake, storage, clock = resting_topic()
    deleted = []
    records = frozen_before_its_commit(storage, clock, lambda: deleted.extend(purge_once(lake).deleted))
    assert [d.why for d in deleted].count("orphan") == 2
    assert records == [*LEFT, "late"]
    assert missing_files(storage) == set()


def test_a_writer_whose_commit_comes_first_keeps_its_file() -> None:
    """The orphans are listed, then one of them is committed: the purge floor's entry sees it."""
    lake, storage, clock = resting_topic()
    writer = open_lake(storage, clock)
    staged = stage(writer.topic("t"), "slow")
    clock.pass_s(2 * HOUR_S)

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path == f"t/{layout.entry_path(9)}":
            storage.hook = quiet
            writer.topic("t").commit(staged)

    storage.hook = hook
    done = purge_once(lake)
    assert staged[0].path not in {d.path for d in done.deleted}
    assert staged[0].path in data_files(storage)
    assert read(open_lake(storage, clock), "t") == [*LEFT, "slow"]


def test_a_file_that_was_committed_and_removed_meanwhile_waits() -> None:
    """A version in between names it."""
    lake, storage, clock = resting_topic()
    writer = open_lake(storage, clock)
    staged = stage(writer.topic("t"), "slow")
    clock.pass_s(2 * HOUR_S)

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path == f"t/{layout.entry_path(9)}":
            storage.hook = quiet
            writer.topic("t").commit(staged)
            writer.delete_records("t", {0: -1})

    storage.hook = hook
    purge_once(lake)
    assert staged[0].path in data_files(storage)
    assert missing_files(storage) == set()


def test_a_staged_file_that_is_too_old_is_refused_and_named() -> None:
    lake, storage, clock = resting_topic()
    writer = open_lake(storage, clock)
    staged = stage(writer.topic("t"), "slow")
    clock.pass_s(2 * HOUR_S)
    purge_once(lake)
    with pytest.raises(SegmentTooOldError, match="Write the records again"):
        commit_alone(writer.topic("t"), staged)
    with pytest.raises(MissingSegmentError):  # a writer that has only the file has nothing to write again
        writer.topic("t").commit(staged)
    assert read(open_lake(storage, clock), "t") == LEFT


def test_a_writer_at_work_is_not_refused() -> None:
    """Its file is young, and what it knows is the head."""
    lake, storage, clock = resting_topic()
    writer = open_lake(storage, clock)
    writer.topic("t").append(values("new"))
    staged = stage(writer.topic("t"), "newer")
    purge_once(lake)
    commit_alone(writer.topic("t"), staged)
    assert read(open_lake(storage, clock), "t") == [*LEFT, "new", "newer"]
