"""Streams groups through anything: no task is run twice, no process has two copies, and all comes to rest."""

from hypothesis import given
from hypothesis import strategies as st
from support.streams_members import Streams, topics

from tidelog.groups.model import Decision, GroupView
from tidelog.groups.rules.members import evict_silent
from tidelog.groups.store.rows import GroupsFold, changes
from tidelog.groups.topology import StreamsTask
from tidelog.log.base.errors import TidelogError

NAMES = ("a", "b", "c", "d")
COUNTS = st.sampled_from([None, 1, 2, 5])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["join", "leave", "beat", "lose", "late", "evict"]), st.sampled_from(NAMES)),
        st.tuples(st.just("lines"), COUNTS),
        st.tuples(st.just("standbys"), st.integers(0, 2)),
        st.tuples(st.just("waits"), st.booleans()),
    ),
    max_size=40,
)


def hold(streams: Streams) -> None:
    """What must hold after each entry."""
    held = [member.held for member in streams.group.members.values()]
    run = [task for tasks in held for task in tasks.active]
    assert len(run) == len(set(run)), "a task is run by two members"
    by_process: dict[str, list[StreamsTask]] = {}
    for member in streams.group.members.values():
        kept = member.assigned
        by_process.setdefault(member.process_id, []).extend([*kept.active, *kept.standby, *kept.warmup])
    for tasks in by_process.values():
        assert len(tasks) == len(set(tasks)), "a process has a state twice"


def stepped(streams: Streams, what: str, of: object) -> None:
    name = str(of)
    if what == "lines":
        count = of if isinstance(of, int) else None
        streams.topics = topics(lines=count, by_word=count, counts_changelog=count)
    elif what == "standbys" and isinstance(of, int):
        streams.standbys = of
    elif what == "waits":
        streams.waits = bool(of)
    elif what == "join" and name not in streams.epochs:
        streams.join(name, process="p" if name in "ab" else "q")
    elif what == "evict" and name in streams.epochs:
        after = evict_silent(streams.view, "g", {name: streams.member(name).epoch}, now_ms=9).group
        streams.view = GroupView(after)
        streams.epochs.pop(name)
        streams.owned.pop(name)
    elif what == "leave" and name in streams.epochs:
        streams.leave(name)
    elif what == "beat" and name in streams.epochs:
        streams.beat(name, refresh=True)
    elif what == "lose" and name in streams.epochs:  # the answer: the member goes on as it was
        streams.ask(name, streams.epochs[name], owned=streams.owned[name])
    elif what == "late" and name in streams.epochs:  # it does not say what it owns
        streams.ask(name, streams.epochs[name])


@given(STEPS)
def test_no_task_is_run_twice_and_all_comes_to_rest(steps: list[tuple[str, object]]) -> None:
    streams = Streams()
    streams.join("a", process="p")
    fold = GroupsFold()
    fold.take(changes(GroupView(), "g", _decided(streams), 7))
    for what, of in steps:
        before = streams.view
        try:
            stepped(streams, what, of)
        except TidelogError:  # a member that lost too many answers is fenced: it joins again
            streams.view = before
            streams.leave(str(of))
        hold(streams)
        fold.take(changes(before, "g", _decided(streams), 7))
        assert fold.view("g").group == streams.group, "rows say what the group is"
    streams.waits = False
    for name in sorted(streams.epochs):
        streams.beat(name, refresh=True)
    streams.settle()
    assert not any(member.revoking for member in streams.group.members.values())
    if streams.group.ready and streams.epochs:
        count = streams.topics["lines"].partitions if streams.topics["lines"] else 0
        run = {task for member in streams.group.members.values() for task in member.assigned.active}
        assert run == {StreamsTask(part, number) for part in "01" for number in range(count)}


def _decided(streams: Streams) -> Decision[None]:
    return Decision(response=None, group=streams.group)
