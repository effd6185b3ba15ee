"""Corruptions of tables of rows, listed with the others in `support.corruptions.CORRUPTIONS`."""

from collections.abc import Callable

import numpy as np
import orjson
from support.corruptible_lakes import CorruptibleLake, Line
from support.corruptions import ENTRY, corruption
from support.logs import values

from tidelog.check.lake import Kind
from tidelog.groups.model import CommittedOffset, Decision
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.rows import SCHEMA, offset_row
from tidelog.log.delta.layout import OFFSETS_TABLE
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.transaction_log import TransactionLog


def grouped(commits: int = 3) -> CorruptibleLake:
    """A lake whose group `g` has committed offsets 1 to 6 of partition 0, over and over; entry n >= 1 is the n-th."""
    corruptible = CorruptibleLake()
    log = GroupLog(corruptible.lake)
    for offset in range(1, commits + 1):
        log.commit_offsets("g", {("orders", 0): CommittedOffset(1 + (offset - 1) % 6)})
    return corruptible


def path(corruptible: CorruptibleLake, version: int) -> str:
    """The file that a commit added."""
    data = corruptible.storage.get(f"{OFFSETS_TABLE}/{ENTRY.format(version)}")
    return f"{OFFSETS_TABLE}/{orjson.loads(data.splitlines()[0])['add']['path']}"


def edited(version: int, change: Callable[[list[Line]], object]) -> CorruptibleLake:
    """A commit's entry, changed by hand."""
    corruptible = grouped()
    where = f"{OFFSETS_TABLE}/{ENTRY.format(version)}"
    lines = [orjson.loads(line) for line in corruptible.storage.get(where).splitlines()]
    change(lines)
    corruptible.storage.put(where, b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return corruptible


def rewritten(rows: bytes) -> CorruptibleLake:
    """The second commit's file with other rows in it; the entry says the new size."""
    corruptible = edited(2, lambda lines: lines[0]["add"].update(size=len(rows)))
    corruptible.storage.put(path(corruptible, 2), rows)
    return corruptible


@corruption(Kind.SEGMENT_MISSING, "rows/")
def a_file_of_rows_is_gone() -> CorruptibleLake:
    corruptible = grouped()
    corruptible.storage.delete(path(corruptible, 2))
    return corruptible


@corruption(Kind.COMMITTED_PAST_END, "group 'g'", deep=True)
def an_offset_passed_the_end() -> CorruptibleLake:
    corruptible = grouped()
    committed = CommittedOffset(10**6, topic_id=corruptible.lake.topic("orders").id)
    GroupLog(corruptible.lake).decide("g", lambda view: Decision(response=None, offsets={("orders", 0): committed}))
    return corruptible


def undone() -> CorruptibleLake:
    """A lake with a committed transaction of id `x` that no process has rolled forward."""
    corruptible = CorruptibleLake()
    producer = TransactionManager(corruptible.lake, "x")
    producer.init()
    producer.begin()
    producer.stage("orders", values("1"), np.zeros(1, np.int32))
    TransactionLog(corruptible.lake).intent(producer._key(), producer._staged.parts(), [])
    return corruptible


corruption(Kind.INTENT_UNDONE, "transactional id 'x'", deep=True)(undone)


@corruption(Kind.INTENT_FILE_MISSING, "transactional id 'x'", deep=True)
def a_file_of_an_intent_is_gone() -> CorruptibleLake:
    corruptible = undone()
    intent = TransactionLog(corruptible.lake).incomplete()[0].intent
    assert intent is not None
    corruptible.storage.delete(f"orders/{intent.parts[0].segments[0].path}")
    return corruptible


corruption(Kind.ENTRY_BROKEN, "entry 2")(lambda: edited(2, lambda ls: ls[-1]["commitInfo"]["tidelog"].pop("rows")))
corruption(Kind.ENTRY_BROKEN, "entry 3")(
    lambda: edited(3, lambda ls: ls[-1]["commitInfo"]["tidelog"]["rows"][0].update(offset="3"))
)
corruption(Kind.SEGMENT_UNREADABLE, "rows/", deep=True)(lambda: rewritten(b"PAR1 and nothing"))
corruption(Kind.SEGMENT_ROWS_WRONG, "rows/", deep=True)(
    lambda: rewritten(SCHEMA.to_file([(0, offset_row("g", ("orders", 0), CommittedOffset(1)))]))
)
corruption(Kind.POSITIONS_WRONG, "rows/", Kind.SEGMENT_ROWS_WRONG, deep=True)(
    lambda: rewritten(SCHEMA.to_file([(1, offset_row("g", ("orders", 0), CommittedOffset(1)))]))
)
