"""Groups and offsets as rows: they come back as they were written."""

from hypothesis import given
from hypothesis import strategies as st

from tidelog.groups.model import CommittedOffset, Group, GroupPhase, GroupView, Member
from tidelog.groups.store.rows import SCHEMA, GroupsFold, group_row, offset_row

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
MEMBERS = st.builds(
    Member,
    IDS,
    IDS,
    IDS,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.lists(st.tuples(IDS, st.binary(max_size=3)), max_size=2).map(tuple),
    st.none() | IDS,
    st.binary(max_size=3),
    st.booleans(),
    st.integers(0, 2**40),
)
GROUPS = st.builds(
    Group,
    IDS,
    st.sampled_from([p for p in GroupPhase if p is not GroupPhase.DEAD]),
    st.integers(0, 2**31 - 1),
    st.text("ab"),
    st.none() | st.text("ab"),
    st.none() | IDS,
    st.lists(MEMBERS, max_size=3).map(lambda members: {m.member_id: m for m in members}),
    st.integers(0, 2**40),
    st.none() | st.integers(0, 2**41),
)
OFFSETS = st.builds(
    CommittedOffset,
    st.integers(0, 2**62),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**41),
    IDS,
)


@given(GROUPS, st.dictionaries(st.tuples(IDS, st.integers(0, 9)), OFFSETS, max_size=3))
def test_every_group_comes_back_from_its_rows(group: Group, offsets: dict) -> None:
    rows = [group_row(group), *(offset_row(group.group_id, place, c) for place, c in offsets.items())]
    fold = GroupsFold()
    fold.take([SCHEMA.from_json(SCHEMA.to_json(row)) for row in rows])
    assert fold.view(group.group_id) == GroupView(group, offsets)


def test_a_fork_goes_its_own_way() -> None:
    fold = GroupsFold()
    fold.take([offset_row("g", ("t", 0), CommittedOffset(1))])
    fork = fold.fork()
    fork.take([offset_row("g", ("t", 0), None), offset_row("h", ("t", 0), CommittedOffset(2))])
    assert (fork.group_ids(), fold.group_ids()) == (["h"], ["g"])
    assert len(fold) == 1
