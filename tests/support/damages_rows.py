"""Damages of tables of rows, noted with the others in `support.damages.DAMAGES`."""

from collections.abc import Callable

import numpy as np
import orjson
from support.damages import ENTRY, damage
from support.logs import values
from support.patients import Line, Patient

from tidelog.check.lake import Kind
from tidelog.groups.model import CommittedOffset, Decision
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.rows import SCHEMA, offset_row
from tidelog.log.delta.layout import OFFSETS_TABLE
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.transaction_log import TransactionLog


def grouped(commits: int = 3) -> Patient:
    """A lake whose group `g` has committed offsets 1 to 6 of partition 0, over and over; entry n >= 1 is the n-th."""
    patient = Patient()
    log = GroupLog(patient.lake)
    for offset in range(1, commits + 1):
        log.commit_offsets("g", {("orders", 0): CommittedOffset(1 + (offset - 1) % 6)})
    return patient


def path(patient: Patient, version: int) -> str:
    """The file that a commit added."""
    data = patient.storage.get(f"{OFFSETS_TABLE}/{ENTRY.format(version)}")
    return f"{OFFSETS_TABLE}/{orjson.loads(data.splitlines()[0])['add']['path']}"


def edited(version: int, change: Callable[[list[Line]], object]) -> Patient:
    """A commit's entry, changed by hand."""
    patient = grouped()
    where = f"{OFFSETS_TABLE}/{ENTRY.format(version)}"
    lines = [orjson.loads(line) for line in patient.storage.get(where).splitlines()]
    change(lines)
    patient.storage.put(where, b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return patient


def rewritten(rows: bytes) -> Patient:
    """The second commit's file with other rows in it; the entry says the new size."""
    patient = edited(2, lambda lines: lines[0]["add"].update(size=len(rows)))
    patient.storage.put(path(patient, 2), rows)
    return patient


@damage(Kind.SEGMENT_MISSING, "rows/")
def a_file_of_rows_is_gone() -> Patient:
    patient = grouped()
    patient.storage.delete(path(patient, 2))
    return patient


@damage(Kind.COMMITTED_PAST_END, "group 'g'", deep=True)
def an_offset_passed_the_end() -> Patient:
    patient = grouped()
    committed = CommittedOffset(10**6, topic_id=patient.lake.topic("orders").id)
    GroupLog(patient.lake).decide("g", lambda view: Decision(response=None, offsets={("orders", 0): committed}))
    return patient


def undone() -> Patient:
    """A lake with a committed transaction of id `x` that nobody has rolled forward."""
    patient = Patient()
    producer = TransactionManager(patient.lake, "x")
    producer.init()
    producer.begin()
    producer.stage("orders", values("1"), np.zeros(1, np.int32))
    TransactionLog(patient.lake).intent(producer._key(), producer._staged.parts(), [])
    return patient


damage(Kind.INTENT_UNDONE, "transactional id 'x'", deep=True)(undone)


@damage(Kind.INTENT_FILE_MISSING, "transactional id 'x'", deep=True)
def a_file_of_an_intent_is_gone() -> Patient:
    patient = undone()
    intent = TransactionLog(patient.lake).undone()[0].intent
    assert intent is not None
    patient.storage.delete(f"orders/{intent.parts[0].segments[0].path}")
    return patient


damage(Kind.ENTRY_BROKEN, "entry 2")(lambda: edited(2, lambda ls: ls[-1]["commitInfo"]["tidelog"].pop("rows")))
damage(Kind.ENTRY_BROKEN, "entry 3")(
    lambda: edited(3, lambda ls: ls[-1]["commitInfo"]["tidelog"]["rows"][0].update(offset="3"))
)
damage(Kind.SEGMENT_UNREADABLE, "rows/", deep=True)(lambda: rewritten(b"PAR1 and nothing"))
damage(Kind.SEGMENT_ROWS_WRONG, "rows/", deep=True)(
    lambda: rewritten(SCHEMA.to_file([(0, offset_row("g", ("orders", 0), CommittedOffset(1)))]))
)
damage(Kind.POSITIONS_WRONG, "rows/", Kind.SEGMENT_ROWS_WRONG, deep=True)(
    lambda: rewritten(SCHEMA.to_file([(1, offset_row("g", ("orders", 0), CommittedOffset(1)))]))
)
