"""Heartbeats of streams groups, as scripts: joining, tasks that move, topics that are missing, refusals."""

from dataclasses import replace

import pytest
from support.streams_members import THERE, WORDS, Streams, topics

from tidelog.groups.model import CommittedOffset, Group, GroupPhase, GroupView
from tidelog.groups.rules.members import current, evict_silent, leave
from tidelog.groups.rules.modern.heartbeat import Heartbeat, heartbeat
from tidelog.groups.rules.modern.topics import MissingTopicsError
from tidelog.groups.rules.offsets import decide_commit
from tidelog.groups.rules.streams.configuring import Status
from tidelog.groups.rules.streams.heartbeat import StreamsHeartbeat, streams_heartbeat
from tidelog.groups.topology import NO_TASKS, StreamsTask, Tasks
from tidelog.log.base.errors import (
    FencedMemberEpochError,
    GroupNotFoundError,
    InconsistentProtocolError,
    InvalidTopologyEpochError,
    OtherTopologyError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from tidelog.transactions.ports import GroupIdentity

ALL = frozenset(StreamsTask(part, number) for part in "01" for number in (0, 1))


def test_the_first_member_gets_all_tasks_at_once() -> None:
    streams = Streams()
    answer = streams.join("a")
    assert (answer.epoch, answer.assigned, answer.statuses) == (1, Tasks(active=ALL), ())
    assert (streams.group.phase, streams.group.epoch, streams.group.topology) == (GroupPhase.STABLE, 1, WORDS)


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    streams = Streams()
    streams.join("a")
    before = streams.entries
    assert streams.beat("a").assigned is None
    assert streams.beat("a", refresh=True).assigned is None
    assert streams.entries == before


def test_inner_topics_that_are_missing_are_told_and_then_the_work_begins() -> None:
    streams = Streams(topics=topics(lines=3, by_word=None, counts_changelog=None))
    answer = streams.join("a")
    assert answer.assigned == NO_TASKS
    assert streams.group.phase is GroupPhase.NOT_READY
    ((status, detail),) = answer.statuses
    assert (status, detail) == (
        Status.MISSING_INTERNAL_TOPICS,
        "Internal topics are missing: by-word, counts-changelog",
    )
    assert answer.configured is not None
    assert [(topic.name, topic.partitions) for topic in answer.configured.missing] == [
        ("by-word", 3),
        ("counts-changelog", 3),
    ]
    streams.topics = topics(lines=3, by_word=3, counts_changelog=3)
    answer = streams.beat("a", refresh=True)
    assert answer.assigned is not None
    assert len(answer.assigned.active) == 6
    assert (answer.epoch, answer.statuses) == (2, ())


def test_missing_source_topics_stop_the_work_and_their_return_begins_it_again() -> None:
    streams = Streams(topics=topics(lines=None, by_word=None, counts_changelog=None))
    (status, detail) = streams.join("a").statuses[0]
    assert (status, detail) == (Status.MISSING_SOURCE_TOPICS, "Source topics lines are missing.")
    assert streams.beat("a").statuses == ((status, detail),), "each heartbeat says so"
    streams.topics = dict(THERE)
    streams.settle()
    assert streams.owned["a"].active == ALL
    streams.topics = topics(lines=None, by_word=2, counts_changelog=2)
    streams.beat("a", refresh=True)
    streams.settle()
    assert streams.owned["a"] == NO_TASKS
    assert streams.group.phase is GroupPhase.NOT_READY


def test_a_second_member_gets_what_the_first_one_gives_up() -> None:
    streams = Streams()
    streams.join("a")
    assert streams.join("b").assigned == NO_TASKS
    assert streams.group.phase is GroupPhase.RECONCILING
    told = streams.beat("a")
    assert told.assigned is not None
    assert len(told.assigned.active) == 2
    assert streams.beat("b").assigned is None, "it was not said yet that they were given up"
    streams.settle()
    assert {len(tasks.active) for tasks in streams.owned.values()} == {2}
    assert streams.owned["a"].active | streams.owned["b"].active == ALL
    streams.leave("a")
    streams.settle()
    assert streams.owned["b"].active == ALL


@pytest.mark.parametrize("view", [GroupView(), GroupView(Group("g", generation=6))], ids=["new", "used before"])
def test_members_that_come_while_a_group_waits_share_its_tasks_from_the_beginning(view: GroupView) -> None:
    streams = Streams(view=view)
    first = streams.join("a", waits=True)
    assert first.epoch > 0
    assert (first.assigned, [status for status, _ in first.statuses]) == (NO_TASKS, [Status.ASSIGNMENT_DELAYED])
    streams.join("b", waits=True)
    assert streams.group.phase is GroupPhase.ASSIGNING
    entries = streams.entries
    assert [status for status, _ in streams.beat("a", waits=True).statuses] == [Status.ASSIGNMENT_DELAYED]
    assert streams.entries == entries, "waiting writes nothing"
    told = streams.beat("a")
    assert told.assigned is not None
    assert (len(told.assigned.active), told.statuses) == (2, ())
    streams.settle()
    assert {len(tasks.active) for tasks in streams.owned.values()} == {2}
    assert streams.owned["a"] == told.assigned


def test_a_group_that_has_its_assignment_waits_for_no_member() -> None:
    streams = Streams()
    streams.join("a")
    before = streams.entries
    assert streams.beat("a", waits=True).statuses == ()
    assert streams.entries == before


def test_copies_are_kept_in_other_processes() -> None:
    streams = Streams(standbys=1)
    for name, process in {"a": "p", "b": "p", "c": "q"}.items():
        streams.join(name, process=process)
    streams.settle()
    held = {name: streams.member(name).assigned for name in "abc"}
    of_p, of_q = held["a"].every | held["b"].every, held["c"]
    stateful = {StreamsTask("1", 0), StreamsTask("1", 1)}
    assert held["a"].standby | held["b"].standby | of_q.standby == stateful
    assert not of_q.active & of_q.standby
    assert stateful <= of_p, "one of both is in each process"
    assert stateful <= of_q.every


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0)])
def test_another_number_of_copies_is_a_new_assignment(before: int, after: int) -> None:
    streams = Streams(standbys=before)
    streams.join("a")
    streams.join("b")
    streams.settle()
    epoch = streams.group.epoch
    streams.beat("a", refresh=True)
    assert streams.group.epoch == epoch
    streams.standbys = after
    streams.beat("a", refresh=True)
    assert streams.group.epoch == epoch + 1
    streams.settle()
    assert sum(len(streams.member(name).assigned.standby) for name in "ab") == 2 * after


def test_a_copy_that_becomes_active_is_given_up_as_a_copy_first() -> None:
    streams = Streams(standbys=1)
    streams.join("a")
    streams.join("b")
    streams.settle()
    streams.leave("a")
    copies = streams.owned["b"].standby
    answer = streams.beat("b")
    assert answer.assigned is not None
    assert not answer.assigned.standby & copies
    assert not answer.assigned.active & copies
    streams.settle()
    assert streams.owned["b"] == Tasks(active=ALL)


def test_an_answer_that_was_lost_is_given_again() -> None:
    streams = Streams()
    streams.join("a")
    streams.join("b")
    owned = streams.owned["a"]
    lost = streams.ask("a", streams.epochs["a"], owned=owned)
    again = streams.ask("a", streams.epochs["a"], owned=owned)
    assert again.assigned == lost.assigned
    given_up = streams.ask("a", streams.epochs["a"], owned=lost.assigned)
    assert given_up.epoch == 2
    repeated = streams.ask("a", 1, owned=lost.assigned)
    assert (repeated.epoch, repeated.assigned) == (2, given_up.assigned or lost.assigned)


def test_epochs_and_members_that_are_not_known_are_refused() -> None:
    streams = Streams()
    with pytest.raises(GroupNotFoundError):
        streams.ask("a", 1)
    streams.join("a")
    with pytest.raises(UnknownMemberError):
        streams.ask("b", 1)
    with pytest.raises(FencedMemberEpochError, match="a greater member epoch"):
        streams.ask("a", 2)
    streams.join("b")
    streams.settle()
    with pytest.raises(FencedMemberEpochError, match="a smaller member epoch"):
        streams.ask("a", 1, owned=Tasks(active=ALL))
    with pytest.raises(UnknownMemberError):
        streams.ask("c", -1)


def test_topologies_of_one_epoch_are_equal() -> None:
    streams = Streams()
    streams.join("a", replace(WORDS, epoch=1))
    with pytest.raises(InvalidTopologyEpochError):
        streams.join("b", replace(WORDS, epoch=2))
    with pytest.raises(OtherTopologyError, match="not supported yet"):
        streams.join("b", replace(WORDS, epoch=1, subtopologies=WORDS.subtopologies[:1]))
    (status, detail) = streams.join("b").statuses[0]
    assert (status, detail) == (
        Status.STALE_TOPOLOGY,
        "The member's topology epoch 0 is behind the group's topology epoch 1.",
    )
    streams.leave("a")
    streams.leave("b")
    streams.topics = topics(lines=2)
    streams.join("c", replace(WORDS, subtopologies=(replace(WORDS.subtopologies[0], repartition_sinks=()),)))
    assert streams.owned["c"].active == {StreamsTask("0", 0), StreamsTask("0", 1)}


def test_a_shutdown_reaches_all_until_the_last_one_has_gone() -> None:
    streams = Streams()
    streams.join("a")
    streams.join("b")
    streams.beat("a", shuts_down=True)
    assert [status for status, _ in streams.beat("b").statuses] == [Status.SHUTDOWN_APPLICATION]
    streams.leave("a")
    assert streams.beat("b").statuses
    streams.leave("b")
    assert streams.join("c").statuses == ()


def test_topics_that_were_not_given_are_asked_for() -> None:
    streams = Streams(topics={})
    with pytest.raises(MissingTopicsError) as asked:
        streams.join("a")
    assert asked.value.names == {"lines", "by-word", "counts-changelog"}


# --- other types -------------------------------------------------------------------------------------------


def test_a_group_without_members_becomes_one_of_streams_and_its_epochs_go_on() -> None:
    streams = Streams(view=GroupView(Group("g", generation=6)))
    assert streams.join("a").epoch == 7
    streams.leave("a")
    request = Heartbeat(
        group_id="g",
        member_id="c",
        epoch=0,
        rebalance_timeout_ms=1,
        topics=frozenset(["t"]),
        owned=frozenset(),
    )
    after = heartbeat(streams.view, topics(t=1), request, now_ms=7).group
    assert after is not None
    assert (after.type, after.generation) == ("consumer", 9)


def test_members_of_other_protocols_are_refused() -> None:
    streams = Streams()
    streams.join("a")
    request = Heartbeat(
        group_id="g", member_id="c", epoch=0, rebalance_timeout_ms=1, topics=frozenset(["t"]), owned=frozenset()
    )
    with pytest.raises(GroupNotFoundError, match="not of the type consumer"):
        heartbeat(streams.view, topics(t=1), request, now_ms=7)
    with pytest.raises(GroupNotFoundError):
        heartbeat(streams.view, {}, replace(request, epoch=-1), now_ms=7)
    with pytest.raises(InconsistentProtocolError, match="type streams"):
        current(streams.view, "g")
    consumers = heartbeat(GroupView(), topics(t=1), replace(request, epoch=0), now_ms=7).group
    joins = StreamsHeartbeat(group_id="g", member_id="a", epoch=0, topology=WORDS, owned=NO_TASKS)
    with pytest.raises(GroupNotFoundError, match="not a streams group"):
        streams_heartbeat(GroupView(consumers), THERE, joins, now_ms=7)


def test_only_a_member_in_its_epoch_commits() -> None:
    streams = Streams()
    streams.join("a")
    offsets = {("lines", 0): CommittedOffset(1)}
    decide_commit(streams.view, GroupIdentity("g", "a", 1), offsets)
    with pytest.raises(StaleMemberEpochError):
        decide_commit(streams.view, GroupIdentity("g", "a", 0), offsets)
    with pytest.raises(UnknownMemberError):
        decide_commit(streams.view, GroupIdentity("g"), offsets)
    streams.leave("a")
    decide_commit(streams.view, GroupIdentity("g"), offsets)


def test_a_member_that_has_not_heard_of_its_epoch_commits_for_what_it_runs_in_both() -> None:
    streams = Streams()
    streams.join("a")
    streams.join("b")
    streams.beat("a")
    before = streams.epochs["a"]
    streams.ask("a", before, owned=streams.owned["a"])
    late = GroupIdentity("g", "a", before)
    assert streams.member("a").epoch == before + 1
    assert streams.group.topology is not None
    kept = streams.group.topology.inputs(streams.owned["a"].active)
    decide_commit(streams.view, late, dict.fromkeys(kept, CommittedOffset(1)))
    streams.beat("b")
    given = streams.group.topology.inputs(streams.owned["b"].active)
    for places in (given, [*kept, *given], [("other", 0)]):
        with pytest.raises(StaleMemberEpochError):
            decide_commit(streams.view, late, dict.fromkeys(places, CommittedOffset(1)))


def test_one_that_is_back_in_its_epoch_commits_for_what_it_runs_now() -> None:
    """It was evicted, and joins while the group waits for more: what it sent before that may arrive only now."""
    streams = Streams()
    streams.join("a")
    streams.join("b")
    streams.settle()
    epoch, places = streams.epochs["b"], streams.group.topology.inputs(streams.owned["b"].active)  # type: ignore[union-attr]
    streams.view = replace(streams.view, group=evict_silent(streams.view, "g", {"b": epoch}, now_ms=9).group)
    streams.waits = True
    assert streams.join("b").epoch == epoch
    with pytest.raises(StaleMemberEpochError, match="does not run"):
        decide_commit(streams.view, GroupIdentity("g", "b", epoch), dict.fromkeys(places, CommittedOffset(1)))


def test_the_epoch_before_stays_while_the_rest_of_the_tasks_comes() -> None:
    streams = Streams()
    for name in "abc":
        streams.join(name)
    streams.beat("b")
    waits = streams.member("b")
    assert (waits.epoch, waits.previous_epoch, waits.assigned) == (3, 2, NO_TASKS)
    streams.beat("a")
    streams.beat("a")
    streams.beat("b")
    got = streams.member("b")
    assert got.assigned
    assert (got.epoch, got.previous_epoch) == (3, 2)


def test_silent_members_are_evicted_unless_they_came_to_another_epoch() -> None:
    streams = Streams()
    streams.join("a")
    streams.join("b")
    assert evict_silent(streams.view, "g", {"a": 0}, now_ms=9).group is None
    after = evict_silent(streams.view, "g", {"a": streams.epochs["a"]}, now_ms=9).group
    assert after is not None
    assert list(after.members) == ["b"]
    assert after.generation == streams.group.epoch + 1
    assert list(leave(streams.view, "g", "b", now_ms=9).response.members) == ["a"]
