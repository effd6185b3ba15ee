"""A source that is written to from all sides, and mirrors of it, as processes."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.adapters import GroupsAndTransactions, LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.mirror.follower_setup import adopt
from tidelog.mirror.lease import FollowerLease
from tidelog.mirror.mirror import Mirror
from tidelog.retention.maintenance import maintain
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit
from tidelog.transactions.upkeep import TransactionUpkeep

PARTITIONS = 3


def texts(*found: str) -> pa.Table:
    """Records with these keys and values."""
    return pa.table({"key": [t[-1:].encode() for t in found], "value": [t.encode() for t in found]})


def new_source(folder: str) -> None:
    """A lake whose logs are trimmed after 10 s, with checkpoints often."""
    with Lake(folder) as lake:
        lake.alter_config({"log.min.age.ms": "10000", "log.checkpoint.interval": "50"})
        lake.create_topic("plain", PARTITIONS, {"file.delete.delay.ms": "1000", "retention.ms": "60000"})
        lake.create_topic("compacted", 1, {"cleanup.policy": "compact", "file.delete.delay.ms": "1000"})
        for topic in ("in", "a", "b"):
            lake.create_topic(topic, 1, {"file.delete.delay.ms": "1000"})
        for start in range(0, 20_000, 1000):
            lake.topic("in").append(texts(*map(str, range(start, start + 1000))))


def write(folder: str, stop: Any) -> None:
    """Producers, transactions, groups, topics that come and go, and maintenance, until `stop`."""
    with Lake(folder) as lake:
        works = (_produce, _transact, _commit, _come_and_go, _maintain)
        failed: list[BaseException] = []

        def run(work: Callable[[Lake, Any], None]) -> None:
            try:
                work(lake, stop)
            except BaseException as e:
                failed.append(e)
                raise

        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


def _produce(lake: Lake, stop: Any) -> None:
    chance, n = random.Random(1), 0
    while not stop.wait(0.01):
        n += 1
        lake.topic("plain").append(
            texts(*(f"{n}-{i}" for i in range(chance.randrange(1, 50)))), acks=chance.choice((1, -1))
        )
        lake.topic("compacted").append(texts(f"{n}"), acks=1)
        if n % 100 == 0:
            partition = chance.randrange(PARTITIONS)
            start, end = lake.offsets("plain")[partition]
            lake.delete_records("plain", {partition: (start + end) // 2})


def _transact(lake: Lake, stop: Any) -> None:
    producer, done = None, 0
    while not stop.wait(0.02):
        if producer is None or done % 50 == 0:
            producer = TransactionManager(lake, "copier", LoggedOffsets(GroupLog(lake)))
            producer.init()
        producer.begin()
        for topic in ("a", "b"):
            producer.stage(topic, texts(f"{done}"), np.zeros(1, np.int32))
        producer.add_offsets(GroupIdentity("g"), {("in", 0): OffsetToCommit(done + 1)})
        if done % 7 == 6:
            producer.abort()
            producer.begin()
            for topic in ("a", "b"):
                producer.stage(topic, texts(f"{done} again"), np.zeros(1, np.int32))
            producer.add_offsets(GroupIdentity("g"), {("in", 0): OffsetToCommit(done + 1)})
        producer.commit()
        done += 1


def _commit(lake: Lake, stop: Any) -> None:
    groups = GroupLog(lake)
    while not stop.wait(0.05):
        ends = {("plain", p): end for p, (_, end) in lake.offsets("plain").items()}
        groups.commit_offsets("readers", {place: CommittedOffset(end) for place, end in ends.items()})


def _come_and_go(lake: Lake, stop: Any) -> None:
    while not stop.wait(0.7):
        lake.create_topic("fleeting", 2)
        lake.topic("fleeting").append(texts("a", "b", "c"))
        lake.alter_topic("fleeting", partitions=3)
        if stop.wait(0.7):
            return
        lake.delete_topic("fleeting")


def _maintain(lake: Lake, stop: Any) -> None:
    groups = GroupLog(lake)
    transactions = TransactionUpkeep(lake, LoggedOffsets(groups))
    while not stop.wait(1):
        both = GroupsAndTransactions(groups, transactions, list)
        maintain(lake, groups=both, needed=transactions.needed_files)


def mirror(source: str, follower: str) -> None:
    """A mirror, until it is killed."""
    with Lake(source, create=False) as ours, Lake(follower, may_change_follower=True) as theirs:
        adopt(ours, theirs)
        with FollowerLease(theirs.storage, theirs.clock, theirs.ids.new()) as lease:
            Mirror(ours, theirs, lease=lease).run(threading.Event().wait)


def mirror_to_the_end(source: str, follower: str) -> Mirror:
    """Rounds until there is nothing to ship."""
    with Lake(source, create=False) as ours, Lake(follower, may_change_follower=True) as theirs:
        adopt(ours, theirs)
        found = Mirror(ours, theirs)
        with suppress(TidelogError):
            while found.round().entries:
                pass
        while found.round().entries:
            pass
        found.close()
        return found
