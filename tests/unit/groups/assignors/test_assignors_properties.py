"""Assignors: what holds for every group."""

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidelog.groups import ASSIGNORS, assign

TOPICS = ["t0", "t1", "t2", "t3"]
MEMBERS = [f"{prefix}{number}" for prefix in ("consumer", "C") for number in range(5)]
EAGER = ["range", "roundrobin", "sticky"]

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
topics = st.lists(st.sampled_from(TOPICS), unique=True)
members = st.lists(st.sampled_from(MEMBERS), unique=True, min_size=1)
differing = st.dictionaries(st.sampled_from(MEMBERS), topics, min_size=1)
equal = st.builds(dict.fromkeys, members, topics)
subscriptions = differing | equal
claims = st.dictionaries(
    st.sampled_from(MEMBERS), st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 9)), unique=True, max_size=20)
)
static_ids = st.dictionaries(st.sampled_from(MEMBERS), st.text("abc", min_size=1, max_size=2))


def wanted_partitions(wanted, counts):
    read = {topic for names in wanted.values() for topic in names}
    return {(topic, number) for topic, count in counts.items() if topic in read for number in range(count)}


def owners(shared):
    return Counter(partition for held in shared.values() for partition in held)


@pytest.mark.parametrize("strategy", EAGER)
@given(wanted=subscriptions, counts=counts, owned=claims, static_ids=static_ids)
def test_every_partition_has_one_owner(strategy, wanted, counts, owned, static_ids):
    shared = assign(strategy, wanted, counts, owned, static_ids)
    assert owners(shared) == Counter(wanted_partitions(wanted, counts))


@given(wanted=subscriptions, counts=counts, owned=claims)
def test_cooperative_gives_nobody_what_another_still_owns(wanted, counts, owned):
    first = assign("cooperative-sticky", wanted, counts, owned)
    assert set(owners(first).values()) <= {1}
    for member, held in first.items():
        for partition in set(held) - set(owned.get(member, ())):
            assert not any(partition in owned.get(other, ()) for other in wanted)


@given(wanted=equal, counts=counts, owned=claims)
def test_cooperative_is_done_in_a_second_round(wanted, counts, owned):
    first = assign("cooperative-sticky", wanted, counts, owned)
    second = assign("cooperative-sticky", wanted, counts, first)
    assert owners(second) == Counter(wanted_partitions(wanted, counts))
    assert all(set(first[member]) <= set(second[member]) for member in wanted)


@given(wanted=differing, counts=counts, owned=claims)
def test_cooperative_settles_in_a_few_rounds_where_subscriptions_differ(wanted, counts, owned):
    """Four follow-up rounds are what Kafka's own test allows (`CooperativeStickyAssignorTest`)."""
    shared = assign("cooperative-sticky", wanted, counts, owned)
    for _ in range(4):
        shared = assign("cooperative-sticky", wanted, counts, shared)
    assert owners(shared) == Counter(wanted_partitions(wanted, counts))
    assert assign("cooperative-sticky", wanted, counts, shared) == shared


@pytest.mark.parametrize("strategy", ASSIGNORS)
@given(wanted=subscriptions, counts=counts, owned=claims, static_ids=static_ids)
def test_every_member_is_answered_and_gets_sorted_partitions_of_its_topics(strategy, wanted, counts, owned, static_ids):
    shared = assign(strategy, wanted, counts, owned, static_ids)
    assert shared.keys() == wanted.keys()
    for member, held in shared.items():
        assert held == sorted(held)
        assert {topic for topic, _ in held} <= set(wanted[member])


@pytest.mark.parametrize("strategy", ["roundrobin", "sticky"])
@given(wanted=equal, counts=counts, owned=claims)
def test_equal_subscriptions_are_balanced_within_one(strategy, wanted, counts, owned):
    loads = [len(held) for held in assign(strategy, wanted, counts, owned).values()]
    assert max(loads) - min(loads) <= 1


@given(wanted=equal, counts=counts)
def test_range_is_balanced_within_one_by_topic(wanted, counts):
    for topic in counts:
        loads = [sum(name == topic for name, _ in held) for held in assign("range", wanted, counts).values()]
        assert max(loads) - min(loads) <= 1


@given(wanted=differing, counts=counts, owned=claims)
def test_sticky_leaves_no_partition_that_could_go_to_a_member_with_two_less(wanted, counts, owned):
    shared = assign("sticky", wanted, counts, owned)
    loads = {member: len(held) for member, held in shared.items()}
    for held in shared.values():
        for topic, _ in held:
            assert all(len(held) <= loads[other] + 1 for other in wanted if topic in wanted[other])


@pytest.mark.parametrize("strategy", ASSIGNORS)
@given(wanted=subscriptions, counts=counts, static_ids=static_ids)
def test_nothing_moves_when_nothing_changes(strategy, wanted, counts, static_ids):
    shared = assign(strategy, wanted, counts, None, static_ids)
    assert assign(strategy, wanted, counts, shared, static_ids) == shared


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@given(wanted=equal, counts=counts, choice=st.integers(0, 9))
def test_only_the_partitions_of_a_member_that_leaves_move(strategy, wanted, counts, choice):
    assume(len(wanted) > 1)
    before = assign(strategy, wanted, counts)
    leaver = sorted(wanted)[choice % len(wanted)]
    stay = {member: names for member, names in wanted.items() if member != leaver}
    after = assign(strategy, stay, counts, before)
    assert all(set(before[member]) <= set(after[member]) for member in stay)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@given(wanted=equal, counts=counts)
def test_nobody_who_stays_gets_anything_when_a_member_joins(strategy, wanted, counts):
    before = assign(strategy, wanted, counts)
    joined = {**wanted, "joiner": next(iter(wanted.values()))}
    after = assign(strategy, joined, counts, before)
    assert all(set(after[member]) <= set(before[member]) for member in wanted)


@pytest.mark.parametrize("strategy", ASSIGNORS)
@given(wanted=subscriptions, counts=counts, owned=claims, static_ids=static_ids, random=st.randoms())
def test_the_order_in_which_things_are_listed_does_not_matter(strategy, wanted, counts, owned, static_ids, random):
    def mixed(items):
        return random.sample(list(items), len(items))

    assert assign(strategy, wanted, counts, owned, static_ids) == assign(
        strategy,
        {member: mixed(names) for member, names in mixed(wanted.items())},
        dict(mixed(counts.items())),
        {member: mixed(partitions) for member, partitions in mixed(owned.items())},
        dict(mixed(static_ids.items())),
    )
