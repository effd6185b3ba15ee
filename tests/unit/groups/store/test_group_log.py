"""The log of consumer groups: what was decided is what all readers see, and members that may not commit don't."""

from dataclasses import replace
from typing import Any

import pytest
from support.logs import FakeClock, memory_lake, open_lake, values

from tidelog.groups.consumer_protocol import Subscription, encode_subscription
from tidelog.groups.model import CommittedOffset, Decision, Group, GroupPhase, GroupView, Member
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import (
    GroupNotEmptyError,
    GroupNotFoundError,
    GroupSubscribedError,
    IllegalGenerationError,
    InvalidConfigError,
    InvalidGroupError,
    InvalidTopicError,
    OffsetMetadataTooLargeError,
    OffsetOutOfRangeError,
    TidelogError,
    UnknownMemberError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.group_ports import GroupPositions


class Groups:
    """A lake in memory with topic `t`: partitions 0 and 1, ten records each; and its groups."""

    def __init__(self, **config: str) -> None:
        self.lake, self.storage, self.clock = memory_lake()
        self.lake.alter_config({k.replace("_", "."): v for k, v in config.items()})
        self.lake.create_topic("t", 2)
        self.lake.topic("t").append(values(*"abcdefghijklmnopqrst", partition=[0, 1] * 10))
        self.log = GroupLog(self.lake)

    def reopened(self) -> GroupLog:
        """The groups as a process sees them that starts now."""
        return GroupLog(open_lake(self.storage, self.clock))

    def tables(self) -> list[str]:
        return [name for name in self.storage.list_folders("") if name.startswith("__consumer_offsets")]


def member(member_id: str, *topics: str) -> Member:
    metadata = encode_subscription(Subscription(tuple(topics)))
    return Member(member_id, "client", "/host", 10_000, 60_000, (("range", metadata),), assignment=b"\x00\xff", turn=1)


def stable(group_id: str, generation: int, *members: Member) -> Group:
    by_id = {m.member_id: m for m in members}
    return Group(group_id, GroupPhase.STABLE, generation, "consumer", "range", members[0].member_id, by_id, turns=2)


def write(log: GroupLog, group: Group) -> None:
    log.decide(group.group_id, lambda view: Decision(response=None, group=group))


# --- what is committed -------------------------------------------------------------------------------------


def test_a_lake_without_groups_has_no_table_and_reading_makes_none() -> None:
    groups = Groups()
    assert (groups.log.groups(), groups.log.group("g"), groups.log.offsets("g")) == ([], None, {})
    assert groups.log.expire_offsets(10**15) == {}
    assert groups.log.version("g") == -1
    with pytest.raises(GroupNotFoundError):
        groups.log.delete_group("g")
    assert groups.tables() == []


def test_commits_are_there_at_once_for_everybody() -> None:
    groups = Groups()
    other = groups.reopened()
    assert other.offsets("g") == {}
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(3, "note", 2), ("t", 1): CommittedOffset(4)})
    groups.clock.pass_s(1)
    other.commit_offsets("g", {("t", 1): CommittedOffset(10)})
    life = groups.lake.topic("t").id
    expected = {
        ("t", 0): CommittedOffset(3, "note", 2, -1, groups.clock.now_ms() - 1000, life),
        ("t", 1): CommittedOffset(10, commit_ms=groups.clock.now_ms(), topic_id=life),
    }
    assert groups.log.offsets("g") == other.offsets("g") == groups.reopened().offsets("g") == expected
    assert groups.log.groups() == ["g"]
    assert groups.log.group("g") is None  # no member joined it
    assert groups.log.version("g") == 2


def test_a_group_comes_back_as_it_was_written() -> None:
    groups = Groups()
    static = replace(member("m2", "t"), instance_id="i", joined=True, session_timeout_ms=1)
    group = replace(stable("g", 7, member("m1"), static), empty_since_ms=12)
    write(groups.log, group)
    write(groups.log, replace(group, group_id="bare", members={}, leader=None, protocol=None, phase=GroupPhase.EMPTY))
    for log in (groups.log, groups.reopened()):
        assert log.group("g") == group
        found = log.group("bare")
        assert found is not None
        assert (found.phase, found.members, found.leader, found.protocol) == (GroupPhase.EMPTY, {}, None, None)


def test_a_decision_that_changes_nothing_writes_nothing() -> None:
    groups = Groups()
    group = stable("g", 1, member("m"))
    write(groups.log, group)
    before = groups.log.version("g")
    write(groups.log, replace(group))
    groups.log.decide("g", lambda view: Decision(response=None, offsets={("t", 0): None}))
    groups.log.commit_offsets("g", {}, "m", 1)
    assert groups.log.version("g") == before


def test_a_rule_sees_group_and_offsets_of_one_moment() -> None:
    groups = Groups()
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(3)})
    write(groups.log, stable("g", 1, member("m")))

    def rule(view: GroupView) -> Decision[tuple[int, int]]:
        assert view.group is not None
        return Decision(response=(view.group.generation, view.offsets["t", 0].offset))

    assert groups.log.decide("g", rule) == (1, 3)


# --- refused commits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offsets", "who", "error"),
    [
        ({("t", 0): CommittedOffset(10)}, ("m", 3), None),
        ({("t", 0): CommittedOffset(1)}, ("m", 2), IllegalGenerationError),
        ({("t", 0): CommittedOffset(1)}, ("m", 4), IllegalGenerationError),
        ({("t", 0): CommittedOffset(1)}, ("other", 3), UnknownMemberError),
        ({("t", 0): CommittedOffset(1)}, (), UnknownMemberError),
        ({("t", 0): CommittedOffset(11)}, ("m", 3), OffsetOutOfRangeError),
        ({("t", 0): CommittedOffset(-1)}, ("m", 3), OffsetOutOfRangeError),
        ({("t", 0): CommittedOffset("1")}, ("m", 3), OffsetOutOfRangeError),  # type: ignore[arg-type]
        ({("t", 0): CommittedOffset(True)}, ("m", 3), OffsetOutOfRangeError),
        ({("t", 0): CommittedOffset(1, "x" * 4096)}, ("m", 3), None),
        ({("t", 0): CommittedOffset(1, "x" * 4097)}, ("m", 3), OffsetMetadataTooLargeError),
        ({("t", 2): CommittedOffset(1)}, ("m", 3), UnknownPartitionError),
        ({("t", -1): CommittedOffset(1)}, ("m", 3), UnknownPartitionError),
        ({("u", 0): CommittedOffset(0)}, ("m", 3), UnknownTopicError),
    ],
)
def test_commits_are_fenced_and_checked_all_or_none(offsets: Any, who: tuple, error: type[TidelogError] | None) -> None:
    groups = Groups()
    write(groups.log, stable("g", 3, member("m")))
    offsets = {("t", 1): CommittedOffset(5), **offsets}
    if error is None:
        groups.log.commit_offsets("g", offsets, *who)
        found = groups.log.offsets("g")
        assert {p: (c.offset, c.metadata, c.generation) for p, c in found.items()} == {
            p: (c.offset, c.metadata, 3) for p, c in offsets.items()
        }
    else:
        with pytest.raises(error):
            groups.log.commit_offsets("g", offsets, *who)
        assert groups.log.offsets("g") == {}


def test_a_member_that_slept_through_a_rebalance_does_not_commit_however_late_its_log_is() -> None:
    groups = Groups()
    write(groups.log, stable("g", 1, member("m")))
    sleeper = groups.reopened()
    assert sleeper.group("g") is not None
    write(groups.log, stable("g", 2, member("n")))
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(9)}, "n", 2)
    with pytest.raises((UnknownMemberError, IllegalGenerationError)):
        sleeper.commit_offsets("g", {("t", 0): CommittedOffset(1)}, "m", 1)
    assert groups.log.offsets("g")["t", 0].offset == 9


@pytest.mark.parametrize("group_id", ["", "x" * 250])
def test_group_ids_that_nobody_may_have(group_id: str) -> None:
    groups = Groups()
    for call in (groups.log.group, groups.log.offsets, groups.log.delete_group):
        with pytest.raises(InvalidGroupError):
            call(group_id)
    with pytest.raises(InvalidGroupError):
        groups.log.commit_offsets(group_id, {("t", 0): CommittedOffset(1)})


# --- what goes ---------------------------------------------------------------------------------------------


def test_a_group_is_deleted_with_its_offsets_once_it_has_no_members() -> None:
    groups = Groups()
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(1)})
    groups.log.commit_offsets("h", {("t", 0): CommittedOffset(2)})
    group = stable("g", 1, member("m"))
    write(groups.log, group)
    with pytest.raises(GroupNotEmptyError):
        groups.log.delete_group("g")
    write(groups.log, replace(group, phase=GroupPhase.EMPTY, members={}, leader=None))
    groups.log.delete_group("g")
    for log in (groups.log, groups.reopened()):
        assert (log.groups(), log.view("g")) == (["h"], GroupView())
    with pytest.raises(GroupNotFoundError):
        groups.log.delete_group("g")


def test_offsets_of_topics_that_members_subscribe_to_stay() -> None:
    groups = Groups()
    groups.lake.create_topic("u")
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(1), ("u", 0): CommittedOffset(0)})
    write(groups.log, stable("g", 1, member("m", "t")))
    answers = groups.log.delete_offsets("g", [("t", 0), ("u", 0), ("u", 5)])
    assert {p: type(e) for p, e in answers.items()} == {
        ("t", 0): GroupSubscribedError,
        ("u", 0): type(None),
        ("u", 5): type(None),
    }
    assert list(groups.reopened().offsets("g")) == [("t", 0)]


def test_offsets_of_a_topic_that_was_deleted_mean_nothing_in_its_next_life() -> None:
    groups = Groups()
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(3)})
    groups.lake.delete_topic("t")
    assert groups.log.offsets("g") == {}
    groups.lake.create_topic("t", 2)
    assert groups.log.offsets("g") == groups.reopened().view("g").offsets == {}
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(0)})
    assert {place: c.offset for place, c in groups.reopened().offsets("g").items()} == {("t", 0): 0}


MINUTE = 60_000


def test_offsets_expire_when_their_group_has_been_empty_for_the_retention() -> None:
    groups = Groups(offsets_retention_minutes="10")
    start = groups.clock.now_ms()
    groups.log.commit_offsets("simple", {("t", 0): CommittedOffset(1)})
    groups.log.commit_offsets("left", {("t", 0): CommittedOffset(1)})
    write(groups.log, Group("left", GroupPhase.EMPTY, 4, "consumer", empty_since_ms=start + 5 * MINUTE))
    groups.log.commit_offsets("live", {("t", 0): CommittedOffset(1)})
    write(groups.log, stable("live", 1, member("m", "t")))
    assert groups.log.expire_offsets(start + 10 * MINUTE - 1) == {}
    assert groups.log.expire_offsets(start + 10 * MINUTE) == {"simple": [("t", 0)]}
    assert groups.log.groups() == ["left", "live"]
    assert groups.log.expire_offsets(start + 15 * MINUTE) == {"left": [("t", 0)]}
    assert groups.log.expire_offsets(start + 10**9) == {}
    assert groups.reopened().groups() == ["live"]


# --- tables ------------------------------------------------------------------------------------------------


def test_groups_are_spread_over_as_many_tables_as_the_lake_has() -> None:
    groups = Groups(offsets_topic_num_partitions="3")
    names = [f"group-{i}" for i in range(20)]
    for i, name in enumerate(names):
        groups.log.commit_offsets(name, {("t", 0): CommittedOffset(i % 10)})
    assert groups.tables() == ["__consumer_offsets", "__consumer_offsets-1", "__consumer_offsets-2"]
    assert {groups.log.table(name) for name in names} == set(groups.tables())
    for log in (groups.log, groups.reopened()):
        assert log.groups() == sorted(names)
        assert log.offsets("group-7")["t", 0].offset == 7
    # (murmur3("group-0") & 0x7fffffff) % 3, as every other program must work it out
    assert [groups.log.table(name) for name in names[:4]] == [groups.reopened().table(name) for name in names[:4]]


def test_the_number_of_tables_is_fixed_by_the_first_one() -> None:
    groups = Groups(offsets_topic_num_partitions="2")
    stale = GroupLog(open_lake(groups.storage, groups.clock))
    groups.lake.alter_config({"offsets.topic.num.partitions": "5"})  # nothing is there yet
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(1)})
    with pytest.raises(InvalidConfigError, match="fixed at 5"):
        groups.lake.alter_config({"offsets.topic.num.partitions": "7"})
    groups.lake.alter_config({"num.partitions": "3"})
    assert stale.offsets("g")["t", 0].offset == 1
    assert stale.table("g") == groups.log.table("g")


@pytest.mark.parametrize("name", ["__consumer_offsets", "__consumer_offsets-12"])
def test_no_topic_stands_in_the_way_of_the_tables(name: str) -> None:
    groups = Groups()
    with pytest.raises(InvalidTopicError, match="table of its own"):
        groups.lake.create_topic(name)
    with pytest.raises(InvalidTopicError, match="table of its own"):
        groups.lake.topic(name).append(values("a"))
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(1)})


# --- others' views -----------------------------------------------------------------------------------------


def test_positions_for_those_who_know_no_groups() -> None:
    groups = Groups()
    positions: GroupPositions = LoggedPositions(groups.log)
    positions.publish("spark", {"t": {0: 3, 1: 10}})
    positions.publish("spark", {"t": {0: 4}})
    assert {place: one.offset for place, one in groups.log.offsets("spark").items()} == {("t", 0): 4, ("t", 1): 10}
    write(groups.log, stable("spark", 1, member("m")))
    with pytest.raises(UnknownMemberError):
        positions.publish("spark", {"t": {0: 5}})


def test_the_clock_dates_commits_that_have_no_time() -> None:
    groups = Groups()
    groups.log.commit_offsets("g", {("t", 0): CommittedOffset(1, commit_ms=5), ("t", 1): CommittedOffset(1)})
    found = groups.log.offsets("g")
    assert (found["t", 0].commit_ms, found["t", 1].commit_ms) == (5, FakeClock().now_ms())
