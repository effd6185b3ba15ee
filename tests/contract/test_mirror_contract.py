"""Mirrors between any two stores: files, entries and what they mean arrive as they are."""

from pathlib import Path

import numpy as np
import pytest
from support.logs import read, values
from support.storage_adapters import ADAPTERS

from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage
from tidelog.mirror import copying
from tidelog.mirror.comparison import differences
from tidelog.mirror.follower_setup import adopt
from tidelog.mirror.mirror import Mirror
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit

PAIRS = [
    ("local", "local"),
    ("local", "objects in files"),
    ("objects in files", "local, temporary files"),
    ("objects in memory", "memory"),
    ("memory", "objects in memory"),
    ("local", "s3"),
    ("s3", "local"),
]


def ship(source: Storage, follower: Storage) -> None:
    with (
        Lake(source.uri, storage=source) as ours,
        Lake(follower.uri, storage=follower, may_change_follower=True) as theirs,
    ):
        adopt(ours, theirs)
        mirror = Mirror(ours, theirs)
        while mirror.round().entries:
            pass
        mirror.close()
        assert mirror.problems == {}
        assert list(differences(ours, theirs)) == []


@pytest.mark.parametrize(("source", "follower"), PAIRS)
def test_a_follower_in_another_kind_of_store_is_equal(
    source: str, follower: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PIECE_BYTES", 10_000)
    for name in ("source", "follower"):
        (tmp_path / name).mkdir()
    ours, theirs = ADAPTERS[source](tmp_path / "source"), ADAPTERS[follower](tmp_path / "follower")
    with Lake(ours.uri, storage=ours) as lake:
        for topic in ("in", "out"):
            lake.create_topic(topic, 1)
        chance = np.random.default_rng(1)
        lake.topic("in").append(
            values(*(chance.bytes(40).hex() for _ in range(2_000))), compression="none"
        )  # by pieces
        producer = TransactionManager(lake, "x", LoggedOffsets(GroupLog(lake)))
        producer.init()
        for n in range(3):
            producer.begin()
            producer.stage("out", values(f"{n}"), np.zeros(1, np.int32))
            producer.add_offsets(GroupIdentity("g"), {("in", 0): OffsetToCommit(n)})
            producer.commit()
    ship(ours, theirs)
    with Lake(ours.uri, storage=ours) as lake:
        lake.topic("out").append(values("more"))
        lake.alter_topic("out", partitions=3)
    ship(ours, theirs)
    with Lake(theirs.uri, storage=theirs) as lake:
        assert read(lake, "out")[:3] == ["0", "1", "2"]
