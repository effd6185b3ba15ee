"""How far a group is behind, in records and in the age of the oldest of them, as tables over a snapshot."""

from dataclasses import replace

import pytest
from support.streams_members import Streams

from tidelog.groups.consumer_protocol import Assignment, encode_assignment
from tidelog.groups.model import CommittedOffset, Group, GroupPhase, GroupView, Member
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.groups.topology import StreamsTopology, Subtopology
from tidelog.log.base.errors import GroupNotFoundError
from tidelog.log.delta.actions import Metadata
from tidelog.log.state.topic_state import PARTITIONS, Segment, TopicState
from tidelog.operations.groups import PartitionLag, describe_group, require_group
from tidelog.operations.snapshots import LakeSnapshot
from tidelog.transactions.model import TransactionKey

NOW_MS = 100_000


def topic(*segments, end, start=0):
    """A topic of one partition; segments are (first offset, end, time in s)."""
    live = [Segment(f"{base}", 0, base, stop, 1, s * 1000, None) for base, stop, s in segments]
    table = Metadata("id", "t", "{}", (), {PARTITIONS: "1"}, 0)
    return TopicState(metadata=table, segments={0: live}, ends={0: end}, starts={0: start})


def member(name, *places, data=None, **named):
    """A member that reads these partitions, or that has other bytes."""
    assignment = encode_assignment(Assignment(places)) if data is None else data
    return Member(name, f"client-of-{name}", "here", 2_000, 60_000, (), assignment=assignment, **named)


def group(*members, protocol_type="consumer"):
    return Group("g", GroupPhase.STABLE, 1, protocol_type, "range", "m", {one.member_id: one for one in members})


def described(topics, offsets=None, members=None):
    """The group `g` with these offsets by place."""
    committed = {place: CommittedOffset(offset, "so far") for place, offset in (offsets or {}).items()}
    return describe_group(LakeSnapshot(NOW_MS, topics, groups={"g": GroupView(members, committed)}), "g")


@pytest.mark.parametrize(
    ("state", "offset", "records", "seconds"),
    [
        (topic(end=0), 0, 0, 0),
        (topic((0, 10, 40), (10, 20, 90), end=20), 0, 20, 60),
        (topic((0, 10, 40), (10, 20, 90), end=20), 9, 11, 60),
        (topic((0, 10, 40), (10, 20, 90), end=20), 10, 10, 10),
        (topic((0, 10, 40), (10, 20, 90), end=20), 19, 1, 10),
        (topic((0, 10, 40), (10, 20, 90), end=20), 20, 0, 0),
        # The log starts behind the committed offset, as retention took what was yet to read: the oldest that is left.
        (topic((10, 20, 90), end=20, start=10), 3, 17, 10),
        # Compaction left a gap: the next record's age.
        (topic((0, 5, 40), (15, 20, 90), end=20), 7, 13, 10),
        # All that is behind the offset was removed, and its offsets stay.
        (topic((0, 5, 40), end=20), 7, 13, 0),
        # A group that was ahead of a topic that was created again: never below 0.
        (topic((0, 10, 40), end=10), 25, 0, 0),
        # A clock that is behind the writer's.
        (topic((0, 10, 200), end=10), 0, 10, 0),
    ],
)
def test_lag_in_a_partition(state, offset, records, seconds):
    found = described({"t": state}, {("t", 0): offset})
    assert found.partitions == [PartitionLag("t", 0, offset, state.end(0), records, seconds, None, "so far")]
    assert (found.lag.by_topic, found.lag.seconds(NOW_MS)) == ({"t": records}, seconds)


@pytest.mark.parametrize("place", [("t", 1), ("gone", 0)])
def test_a_partition_that_is_not_there_has_no_lag(place):
    found = described({"t": topic(end=5)}, {place: 3})
    assert found.partitions == [PartitionLag(*place, 3, None, None, None, None, "so far")]
    assert (found.lag.by_topic, found.lag.records, found.lag.seconds(NOW_MS)) == ({}, 0, 0.0)


@pytest.mark.parametrize("reader", [member("m", ("t", 0)), member("m", ("t", 0), instance_id="static")])
def test_a_partition_that_is_read_and_not_committed(reader):
    found = described({"t": topic(end=5)}, members=group(reader))
    assert found.partitions == [PartitionLag("t", 0, None, 5, None, None, reader)]
    assert found.members == [(reader, [("t", 0)])]
    assert (found.is_simple, found.topics, found.lag.members, found.lag.records) == (False, ["t"], 1, 0)


def test_partitions_that_members_read_or_have_offsets_of_stand_in_order():
    topics = {"t": topic((0, 10, 40), end=10), "u": topic((0, 10, 70), end=10)}
    first, second = member("b", ("u", 0), ("t", 0)), member("a", ("v", 0))
    found = described(topics, {("u", 0): 4, ("t", 0): 9, ("s", 0): 1}, group(first, second))
    assert [(lag.topic, lag.records, lag.seconds, lag.reader) for lag in found.partitions] == [
        ("s", None, None, None), ("t", 1, 60, first), ("u", 6, 30, first), ("v", None, None, second),
    ]  # fmt: skip
    assert found.members == [(second, [("v", 0)]), (first, [("t", 0), ("u", 0)])]
    assert (found.lag.by_topic, found.lag.records, found.lag.seconds(NOW_MS)) == ({"t": 1, "u": 6}, 7, 60)
    assert found.lag.seconds(NOW_MS + 5_000) == 65


@pytest.mark.parametrize(
    "members", [group(member("m", data=b"no assignment")), group(member("m", ("t", 0)), protocol_type="connect")]
)
def test_members_of_which_nothing_is_known_read_nothing(members):
    found = described({"t": topic(end=5)}, {("t", 0): 3}, members)
    assert found.members == [(members.members["m"], [])]
    assert found.partitions[0].reader is None


def test_a_group_without_members_is_simple():
    found = described({}, {("t", 0): 3})
    assert (found.is_simple, found.group, found.members) == (True, Group("g"), [])


def test_a_group_that_is_not_there():
    with pytest.raises(GroupNotFoundError, match="no group 'g'"):
        describe_group(LakeSnapshot(NOW_MS), "g")
    with pytest.raises(GroupNotFoundError, match="no group 'g'"):
        require_group(GroupView(), "g")


@pytest.mark.parametrize(
    "view",
    [
        GroupView(Group("g")),
        GroupView(offsets={("t", 0): CommittedOffset(3)}),
        GroupView(pending={(TransactionKey("x", 7, 0, 1), ("t", 0)): CommittedOffset(3)}),
    ],
)
def test_a_group_of_which_there_is_anything_is_there(view):
    assert require_group(view, "g") is view
    assert describe_group(LakeSnapshot(NOW_MS, groups={"g": view}), "g").group == Group("g")


def test_a_task_reads_only_partitions_that_are_there():
    """The topics of a subtopology may differ: it has as many tasks as the largest has partitions."""
    made = Streams(topics={name: AssignableTopic(name, 2 if name == "large" else 1) for name in ("large", "small")})
    made.join("m", StreamsTopology(0, (Subtopology("0", sources=("large", "small")),)))
    made.settle()
    metadata = replace(topic(end=0).metadata, configuration={PARTITIONS: "2"})
    topics = {"small": topic(end=0), "large": replace(topic(end=0), metadata=metadata)}
    snapshot = LakeSnapshot(NOW_MS, topics, groups={"g": made.view})
    read = [("large", 0), ("large", 1), ("small", 0)]
    described = describe_group(snapshot, "g")
    assert described.assignments == {"m": read}
    assert [(lag.topic, lag.partition) for lag in described.partitions] == read
    hidden = describe_group(replace(snapshot, topics={}), "g")
    assert hidden.assignments == {"m": [*read, ("small", 1)]}, "how many partitions there are is not known"
