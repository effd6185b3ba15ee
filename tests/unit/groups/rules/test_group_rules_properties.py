"""Whatever members ask for in whatever order, a group stays one that makes sense."""

from hypothesis import given
from hypothesis import strategies as st
from support.group_scripts import GROUP, Script

from tidelog.groups.model import Group, GroupPhase
from tidelog.groups.rules.rounds import common_protocols

names = st.sampled_from("abcd")
generations = st.integers(0, 4)
assignors = st.sampled_from(["range", "sticky", "range,sticky", "sticky,range"])
lines = st.one_of(
    st.builds(
        "{} {} {} t{}".format, st.sampled_from(["join", "rejoin"]), names, assignors, st.sampled_from(["", ",u"])
    ),
    st.builds("{} {}s range t instance={}".format, st.sampled_from(["join", "rejoin"]), names, st.sampled_from("xy")),
    st.builds("sync {} {} a=1 b=2 c=3 d=4".format, names, generations),
    st.builds("leave {}".format, names),
    st.builds("commit {} {}".format, names, generations),
    st.builds("silent {}@{}".format, names, st.integers(0, 9)),
    st.builds("late {}".format, generations),
)


def follow(script: Script, line: str) -> None:
    """Carry a request out; one for the group's own generation where it names generation 0."""
    group = script.view.group or Group(GROUP)
    script.run(line.replace(" 0", f" {group.generation}") if line.split()[0] in ("sync", "commit", "late") else line)


@given(st.lists(lines, max_size=40))
def test_a_group_always_makes_sense(script_lines: list[str]) -> None:
    script = Script()
    for line in script_lines:
        before = script.view.group or Group(GROUP)
        offsets = dict(script.view.offsets)
        follow(script, line)
        after = script.view.group or Group(GROUP)
        assert_sound(after)
        assert_follows(before, after)
        if script.view.offsets != offsets:
            assert after.phase is not GroupPhase.COMPLETING


def assert_sound(group: Group) -> None:
    members = group.members.values()
    assert (group.phase is GroupPhase.EMPTY) == (not members)
    assert (group.leader in group.members) if members else group.leader is None
    instances = [member.instance_id for member in members if member.instance_id is not None]
    assert len(instances) == len(set(instances))
    if group.phase is GroupPhase.PREPARING:
        assert not all(member.joined for member in members), "a round that is complete has ended"
    else:
        assert not any(member.joined for member in members)
    if group.phase in (GroupPhase.COMPLETING, GroupPhase.STABLE):
        assert group.protocol in common_protocols(members)
    assert not members or common_protocols(members)
    assert group.turns >= max((member.turn for member in members), default=0)
    assert (group.empty_since_ms is not None) == (group.phase is GroupPhase.EMPTY and group.generation > 0)


def assert_follows(before: Group, after: Group) -> None:
    assert after.generation >= before.generation
    assert after.turns >= before.turns
    if before.phase is GroupPhase.STABLE and after.phase is GroupPhase.STABLE:
        assert after.generation == before.generation
        kept = {member.assignment for member in before.members.values()}
        assert {member.assignment for member in after.members.values()} == kept
    if after.phase is GroupPhase.STABLE and before.phase is not GroupPhase.STABLE:
        assert before.phase is GroupPhase.COMPLETING
        assert before.generation == after.generation
