"""Many decisions over groups at once: one entry a table, and each with its own answer."""

import pytest
from support.group_scripts import NOW_MS, member
from support.logs import memory_lake, values

from tidelog.groups.model import CommittedOffset, Decision
from tidelog.groups.rules.members import join, leave
from tidelog.groups.rules.offsets import decide_commit
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import IllegalGenerationError, InvalidGroupError
from tidelog.log.lake import Lake
from tidelog.transactions.ports import GroupIdentity


@pytest.fixture
def lake() -> Lake:
    lake, _, _ = memory_lake()
    lake.topic("t").append(values(*"abc"))
    return lake


def committing(group_id: str, offset: int, member_id: str = "", generation: int = -1):
    who = GroupIdentity(group_id, member_id, generation)
    return group_id, lambda view: decide_commit(view, who, {("t", 0): CommittedOffset(offset)})


def look(view):
    return Decision(response={place: one.offset for place, one in view.offsets.items()})


def test_all_share_an_entry(lake: Lake) -> None:
    log = GroupLog(lake)
    log.decide_all([committing("g", 1)])
    before = log.version("g")
    answers = log.decide_all([committing("g", 2), ("g", look), committing("h", 3), ("g", look), ("h", look)])
    assert answers == [(None, None), ({("t", 0): 2}, None), (None, None), ({("t", 0): 2}, None), ({("t", 0): 3}, None)]
    assert log.version("g") == before + 1
    assert {name: view.offsets["t", 0].offset for name, view in log.views().items()} == {"g": 2, "h": 3}


def test_a_refusal_is_its_own_callers_only(lake: Lake) -> None:
    def breaks(_):
        raise ZeroDivisionError

    answers = GroupLog(lake).decide_all(
        [committing("g", 1), ("", look), committing("g", 2, "m", 0), ("g", breaks), committing("g", 3), ("g", look)]
    )
    kinds = [type(error) for _, error in answers]
    none = type(None)
    assert kinds == [none, InvalidGroupError, IllegalGenerationError, ZeroDivisionError, none, none]
    assert answers[-1][0] == {("t", 0): 3}


def test_looks_make_no_table(lake: Lake) -> None:
    log = GroupLog(lake)
    assert log.decide_all([("g", look), ("h", look)]) == [({}, None), ({}, None)]
    assert log.tables() == []
    assert log.decide_all([]) == []


def test_many_tables(lake: Lake) -> None:
    lake.alter_config({"offsets.topic.num.partitions": "3"})
    log = GroupLog(lake)
    names = [f"g{number}" for number in range(20)]
    assert log.decide_all([committing(name, 1) for name in names]) == [(None, None)] * 20
    assert log.groups() == sorted(names)
    assert len(log.tables()) == 3


def test_groups_with_members(lake: Lake) -> None:
    log = GroupLog(lake)
    assert log.with_members() == {}
    for name in ("g", "h"):
        log.decide(name, lambda view, name=name: join(view, name, member("a"), rejoins=False, now_ms=NOW_MS))
    log.decide("h", lambda view: leave(view, "h", "a", now_ms=NOW_MS))
    log.decide_all([committing("i", 1)])
    assert list(log.with_members()) == ["g"]
