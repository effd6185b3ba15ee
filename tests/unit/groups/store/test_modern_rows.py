"""Groups of the type consumer as rows: what a decision changes, and nothing else, comes back in any way of reading."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import memory_lake, open_lake

from tidelog.groups.config import GroupConfig
from tidelog.groups.model import (
    AssignedPartition,
    CommittedOffset,
    ConsumerGroup,
    ConsumerMember,
    Decision,
    Group,
    GroupPhase,
    GroupView,
)
from tidelog.groups.rules.configuring import configure
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.rows import KIND, SCHEMA, GroupsFold, changes
from tidelog.log.rows.compaction import RowCompactionPlan, compact_rows
from tidelog.log.state.topic_state import ROWS_VERSION

NAMES = st.sampled_from(["a", "b", "c"])
PARTITIONS = st.frozensets(st.builds(AssignedPartition, NAMES, NAMES, st.integers(0, 5)), max_size=6)
EPOCHS = st.integers(-2, 2**31 - 1)
MEMBERS = st.builds(
    ConsumerMember,
    member_id=NAMES,
    client_id=NAMES,
    host=NAMES,
    session_timeout_ms=st.integers(1, 9),
    rebalance_timeout_ms=st.integers(1, 9),
    instance_id=st.none() | NAMES,
    rack=st.none() | NAMES,
    topics=st.frozensets(NAMES),
    regex=st.none() | NAMES,
    matched=st.frozensets(NAMES),
    assignor=st.none() | st.just("range"),
    epoch=EPOCHS,
    previous_epoch=EPOCHS,
    assigned=PARTITIONS,
    revoking=PARTITIONS,
    protocols=st.lists(st.tuples(NAMES, st.binary(max_size=3)), max_size=2).map(tuple),
)
MODERN = st.builds(
    ConsumerGroup,
    st.just("g"),
    EPOCHS,
    EPOCHS,
    st.none() | st.just("uniform"),
    st.integers(-(2**63), 2**63 - 1),
    st.lists(MEMBERS, max_size=3).map(lambda members: {m.member_id: m for m in members}),
    st.dictionaries(NAMES, PARTITIONS, max_size=3),
    st.none() | st.integers(0, 2**41),
)
DEAD = Group("g", phase=GroupPhase.DEAD)
CLASSIC = st.builds(Group, st.just("g"), generation=st.integers(0, 9))
STATES = st.lists(MODERN | CLASSIC | st.just(DEAD), min_size=1, max_size=5)


def rows_of(states: list) -> list[list[dict]]:
    """The rows of one decision after another."""
    view, every = GroupView(), []
    for state in states:
        new = changes(view, "g", Decision(response=None, group=state), 1)
        rows = [SCHEMA.from_json(SCHEMA.to_json(row)) for row in new]
        every.append(rows)
        fold = GroupsFold({"g": view})
        fold.take(rows)
        view = fold.view("g")
        assert view.group == (None if state is DEAD else state)
    return every


@given(STATES)
def test_each_state_comes_back_and_a_repeat_writes_nothing(states: list) -> None:
    rows_of(states)
    last = states[-1]
    before = GroupView(None if last is DEAD else last)
    assert changes(before, "g", Decision(response=None, group=last), 1) == []


@given(STATES, st.integers(0, 5), st.booleans())
def test_compacted_rows_say_the_same(states: list, first: int, whole: bool) -> None:
    """A rewrite of any of the newest entries: what is left of them comes in its order, after the rest."""
    entries = rows_of(states)
    placed = list(enumerate(row for rows in entries for row in rows))
    start = 0 if whole else sum(len(rows) for rows in entries[:first])
    kept = compact_rows(KIND, RowCompactionPlan((), start == 0), placed[start:]) if placed[start:] else []
    fold, last = GroupsFold(), states[-1]
    for _, row in [*placed[:start], *kept]:
        fold.take([row])
    assert fold.view("g").group == (None if last is DEAD else last)


def test_a_change_of_one_member_does_not_write_the_others() -> None:
    members = {name: ConsumerMember(name, topics=frozenset({"t"})) for name in "abc"}
    before = ConsumerGroup("g", 1, 1, "uniform", 1, members)
    after = replace(before, members={**members, "b": replace(members["b"], epoch=1)})
    (row,) = changes(GroupView(before), "g", Decision(response=None, group=after), 1)
    assert (row["kind"], row["member_id"], row["member_epoch"]) == ("member", "b", 1)


def test_a_table_gets_the_columns_with_the_first_group_of_the_type() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    log = GroupLog(lake)
    log.commit_offsets("old", {("t", 0): CommittedOffset(0)})
    (table,) = log.tables()
    assert table.fact(ROWS_VERSION) is None
    group = ConsumerGroup("g", 1, 1, "uniform", 1, {"m": ConsumerMember("m", topics=frozenset({"t"}))})
    log.decide("g", lambda view: Decision(response=None, group=group))
    assert table.fact(ROWS_VERSION) == "2"
    again = GroupLog(open_lake(storage, clock))
    assert again.group("g") == group
    assert again.groups() == ["g", "old"]


def test_what_a_group_is_configured_with_outlives_it() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    log = GroupLog(lake)
    log.commit_offsets("g", {("t", 0): CommittedOffset(0)})
    (table,) = log.tables()

    def put(changes: dict[str, str | None]) -> GroupConfig:
        return log.decide("g", lambda view: configure(view, "g", changes))

    assert put({"consumer.session.timeout.ms": "50000"}).consumer_session_timeout_ms == 50_000
    assert table.fact(ROWS_VERSION) == "3"
    version = log.version("g")
    put({"consumer.session.timeout.ms": "50000"})
    assert log.version("g") == version  # it says nothing new
    log.delete_group("g")
    again = GroupLog(open_lake(storage, clock))
    assert (again.groups(), again.configured()) == ([], ["g"])
    assert dict(again.config("g")) == {"consumer.session.timeout.ms": "50000"}
    put({"consumer.session.timeout.ms": None})
    assert (again.configured(), dict(again.config("g"))) == ([], {})


def test_a_group_of_a_type_that_is_not_known_is_none_of_the_kind() -> None:
    row = {"kind": "group", "group": "g", "type": "share", "group_epoch": 1, "assignment_epoch": 1, "metadata_hash": 0}
    with pytest.raises(ValueError, match="of type 'share'"):
        KIND.folded([row])
