"""Files that a folder source has read, and those that it can't: left, moved, deleted, set aside."""

import gzip
import os

import pytest
from support.connect_tasks import SourceContext, StoredOffsets, polled, started_source

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.files.folder_source import FolderSource, FolderSourceTask
from tidelog.connect.data.errors import ConnectError, DataError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def config(folder, **others):
    given = {"input.path": str(folder), "topic": "t", "finished.path": str(folder.parent / "done")}
    return given | {key.replace("_", "."): value for key, value in others.items()}


def stored_by(task, stored, polls=20):
    """All values of a task whose records are stored, as a worker does it, after each poll."""
    found = []
    for _ in range(polls):
        records = task.poll()
        stored.keep(records)
        found += [record.value for record in records]
        if records:
            task.commit()
    return found


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("policy", "left", "done"), [("NONE", ["a", "b"], []), ("move", [], ["a", "b"]),
                                                      ("DELETE", [], [])])  # fmt: skip
def test_files_that_were_read_are_left_or_moved_or_deleted(folder, policy, left, done):
    (folder / "a").write_text("1\n2\n")
    (folder / "b").write_text("")
    task, _ = started_source(FolderSource, config(folder, cleanup_policy=policy, batch_size="1"))
    assert stored_by(task, StoredOffsets()) == ["1", "2"]
    assert (names(folder), names(folder.parent / "done")) == (left, done)


def test_a_file_is_moved_when_its_records_are_stored_and_not_before(folder):
    stored = StoredOffsets()
    (folder / "a").write_text("1\n2\nlast")
    task, _ = started_source(FolderSource, config(folder, cleanup_policy="MOVE"), stored)
    records = task.poll()
    assert [record.value for record in records] == ["1", "2", "last"]  # it came whole: its last line needs no end
    assert (polled(task), names(folder)) == ([], ["a"])
    stored.keep(records[:2])  # the worker dies here
    task, _ = started_source(FolderSource, config(folder, cleanup_policy="MOVE"), stored)
    records = task.poll()
    assert [record.value for record in records] == ["last"]
    stored.keep(records)
    task, _ = started_source(FolderSource, config(folder, cleanup_policy="MOVE"), stored)  # and here, before the move
    assert polled(task) == []
    assert (names(folder), names(folder.parent / "done")) == ([], ["a"])


def test_another_file_of_the_same_name_is_read_from_its_start(folder):
    stored = StoredOffsets()
    task, _ = started_source(FolderSource, config(folder, cleanup_policy="MOVE"), stored)
    for number, text in enumerate(("1\n2\n", "3\n4\n5\n")):
        (folder / "a").write_text(text)
        os.utime(folder / "a", (number, number))
        assert stored_by(task, stored) == text.split()
        task, _ = started_source(FolderSource, config(folder, cleanup_policy="MOVE"), stored)
    assert names(folder.parent / "done") == ["a", "a.1"]
    assert (folder.parent / "done" / "a").read_text() == "1\n2\n"


@pytest.mark.parametrize(
    ("kind", "name", "data", "values"),
    [
        ("lines", "f", b"x\n\xff\ny\n", ["x"]),
        ("json", "f", b'{"a": 1}\n{', [{"a": 1}]),
        ("csv", "f", b'a,b\n1,2\n3,"4', [{"a": "1", "b": "2"}]),
        ("parquet", "f", b"none", []),
        ("lines", "f.gz", gzip.compress(b"x\n", mtime=0)[:-4], []),
    ],
    ids=["lines", "json", "csv", "parquet", "gzip"],
)
def test_files_that_can_not_be_read_are_set_aside_and_the_next_are_read(folder, kind, name, data, values):
    (folder / name).write_bytes(data)
    (folder / "z").write_bytes({"json": b"7\n", "csv": b"a,b\n", "parquet": b"no", "lines": b"7\n"}[kind])
    wrong = folder.parent / "wrong"
    given = config(folder, cleanup_policy="DELETE", format=kind)
    task, _ = started_source(FolderSource, given)
    with pytest.raises((ConnectError, DataError)):
        stored_by(task, StoredOffsets())
    assert name in names(folder)
    task, _ = started_source(FolderSource, given | {"halt.on.error": "false", "error.path": str(wrong)})
    after = {"json": [7], "lines": ["7"]}.get(kind, [])
    assert stored_by(task, StoredOffsets()) == values + after
    assert names(folder) == []
    assert names(wrong) == ([name, "z"] if kind == "parquet" else [name])
    assert (wrong / name).read_bytes() == data


def test_folders_for_files_that_were_read_may_be_below_the_folder(folder):
    (folder / "a").write_text("1\n")
    given = config(folder, cleanup_policy="MOVE", finished_path=str(folder / "done")) | {
        "input.path.walk.recursively": "true"
    }
    task, _ = started_source(FolderSource, given)
    assert stored_by(task, StoredOffsets()) == ["1"]
    assert names(folder) == ["done/a"]


def test_files_wait_until_they_are_unchanged_for_a_while(folder):
    class Clock:
        ms = 10_000

        def now_ms(self):
            return self.ms

    (folder / "a").write_text("1\n")
    os.utime(folder / "a", (8, 8))
    clock, given = Clock(), config(folder, file_minimum_age_ms="3000")
    task = FolderSourceTask(clock)
    task.start(given, SourceContext())
    assert polled(task) == []
    clock.ms = 11_001
    assert [record.value for record in polled(task)] == ["1"]


@pytest.mark.parametrize(
    ("others", "key"),
    [
        ({"cleanup_policy": "MOVE", "finished_path": ""}, "finished.path"),
        ({"cleanup_policy": "KEEP"}, "cleanup.policy"),
        ({"error_path": "/tmp/wrong"}, "error.path"),
    ],
)
def test_keys_that_contradict_each_other_are_named(folder, others, key):
    given = config(folder, **others)
    assert [value.name for value in FolderSource.validate(given) if value.errors] == [key]
    with pytest.raises(ConnectConfigError):
        started_source(FolderSource, given)
