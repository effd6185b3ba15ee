"""A snapshot reads no log again whose folder has not changed, and misses no change of one that has."""

from support.passing_clock import PassingClock

from tidelog.log.lake import Lake
from tidelog.operations.snapshots import SnapshotReader


def test_only_logs_that_changed_are_read_again(tmp_path, monkeypatch):
    with Lake(tmp_path / "lake") as lake, SnapshotReader(lake, 0) as reader:
        lake.clock = PassingClock(lake.clock)
        for name in ("orders", "quiet"):
            lake.create_topic(name, 1)
        read, peek = [], lake.peek
        monkeypatch.setattr(lake, "peek", lambda name: (read.append(name), peek(name))[1])
        for _ in range(2):
            assert set(reader.read().topics) == {"orders", "quiet"}
            lake.clock.passed_s += 10
        read.clear()
        reader.read()
        assert read == []
        with Lake(tmp_path / "lake") as other:  # as another process writes
            other.topic("orders").append([{"value": b"v"}] * 3)
        snapshot = reader.read()
        assert read == ["orders"]
        assert snapshot.topics["orders"].end(0) == 3
        lake.delete_topic("quiet")
        assert set(reader.read().topics) == {"orders"}


def test_folders_that_are_no_topics_are_left_out(tmp_path):
    with Lake(tmp_path / "lake") as lake, SnapshotReader(lake, 0) as reader:
        lake.create_topic("orders", 1)
        (tmp_path / "lake" / "some folder").mkdir()
        (tmp_path / "lake" / "plain").mkdir()
        snapshot = reader.read()
        assert (set(snapshot.topics), dict(snapshot.broken)) == ({"orders"}, {})
