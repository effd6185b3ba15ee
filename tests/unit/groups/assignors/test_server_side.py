"""The assignors of the consumer protocol: every partition once, balance, few moves, and Kafka's own examples."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.groups.assignors.server_side import SERVER_ASSIGNORS, Subscriber, range_, uniform

TOPICS = ["a", "b", "c", "d"]
COUNTS = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})


@st.composite
def groups(draw, mixed: bool = True):
    """Members that subscribe, each to some of the topics, and what they had: no partition twice."""
    counts = draw(COUNTS)
    names = draw(st.lists(st.sampled_from("klmnopq"), min_size=1, max_size=6, unique=True))
    same = frozenset(draw(st.sets(st.sampled_from(TOPICS), min_size=1)))
    owner = {(t, n): draw(st.none() | st.sampled_from(names)) for t in TOPICS for n in range(counts[t])}
    members = []
    for name in names:
        topics = frozenset(draw(st.sets(st.sampled_from(TOPICS), min_size=1))) if mixed else same
        share = frozenset(place for place, who in owner.items() if who == name)
        instance = draw(st.none() | st.just(f"i{name}"))
        members.append(Subscriber(name, topics, share, instance))
    return members, counts


def every(members, counts):
    wanted = frozenset().union(*(m.topics for m in members))
    return sorted((topic, number) for topic in wanted for number in range(counts[topic]))


@pytest.mark.parametrize("name", SERVER_ASSIGNORS)
@given(data=st.data())
def test_each_partition_goes_once_and_to_a_subscriber(name, data):
    members, counts = data.draw(groups())
    shares = SERVER_ASSIGNORS[name](members, counts)
    assert sorted(place for share in shares.values() for place in share) == every(members, counts)
    assert all(topic in m.topics for m in members for topic, _ in shares[m.member_id])
    assert shares.keys() == {m.member_id for m in members}


@given(groups(mixed=False))
def test_uniform_is_balanced_and_moves_no_more_than_it_must(group):
    members, counts = group
    shares = uniform(members, counts)
    sizes = [len(shares[m.member_id]) for m in members]
    assert max(sizes) - min(sizes) <= 1
    valid = set(every(members, counts))
    for m in members:
        kept, had = shares[m.member_id] & m.share, m.share & valid
        assert len(kept) == min(len(had), len(shares[m.member_id])) or len(kept) >= len(valid) // len(members)
    again = [Subscriber(m.member_id, m.topics, shares[m.member_id], m.instance_id) for m in members]
    assert uniform(again, counts) == shares


@given(groups())
def test_mixed_uniform_leaves_no_move_that_balances(group):
    members, counts = group
    shares = uniform(members, counts)
    sizes = {m.member_id: len(shares[m.member_id]) for m in members}
    for giver in members:
        for topic, _ in shares[giver.member_id]:
            takers = [m.member_id for m in members if topic in m.topics]
            assert all(sizes[giver.member_id] - sizes[taker] <= 1 for taker in takers)
    again = [Subscriber(m.member_id, m.topics, shares[m.member_id], m.instance_id) for m in members]
    assert uniform(again, counts) == shares


@pytest.mark.parametrize(
    ("members", "counts", "expected"),
    [
        ({"A": "xy", "B": "xy"}, {"x": 3, "y": 3}, {"A": "x0 x1 y0 y1", "B": "x2 y2"}),
        ({"A": "xy", "B": "x"}, {"x": 3, "y": 2}, {"A": "x0 x1 y0 y1", "B": "x2"}),
        ({"A": "x", "B": "x", "C": "x"}, {"x": 2}, {"A": "x0", "B": "x1", "C": ""}),
    ],
)
def test_range_shares_each_topic_out_by_itself(members, counts, expected):
    subscribers = [Subscriber(name, frozenset(topics)) for name, topics in members.items()]
    shares = range_(subscribers, counts)
    assert {name: " ".join(f"{t}{n}" for t, n in sorted(share)) for name, share in shares.items()} == expected


def test_static_members_keep_their_ranges_under_new_ids():
    first = range_([Subscriber("z", frozenset("x"), instance_id="1"), Subscriber("a", frozenset("x"))], {"x": 3})
    again = range_([Subscriber("b", frozenset("x"), instance_id="1"), Subscriber("a", frozenset("x"))], {"x": 3})
    assert (first["z"], first["a"]) == (again["b"], again["a"])


VECTORS = json.loads((Path(__file__).parents[2] / "vectors/server_assignors.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("name", SERVER_ASSIGNORS)
def test_assignments_equal_those_of_kafkas_coordinator(name):
    """Random groups, and what the assignors of Kafka's group coordinator 4.1.2 gave for members in this order."""
    cases = [case for case in VECTORS if case["assignor"] == name]
    assert len(cases) > 15
    for case in cases:
        members = [
            Subscriber(m["id"], frozenset(m["topics"]), frozenset(map(tuple, m["had"])), m["instance"])
            for m in case["members"]
        ]
        expected = {m["id"]: frozenset(map(tuple, m["gets"])) for m in case["members"]}
        assert SERVER_ASSIGNORS[name](members, case["partitions"]) == expected
