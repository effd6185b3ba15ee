"""Leaders dealt in turn: even for every number of partitions, and few move when brokers come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.base.partition_leaders import MOST_IN_TURN, Dealt, in_rounds, seated, seats_in_turn

TOPICS = [f"topic {number}".encode() for number in range(60)]
broker_ids = st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=12)
partition_counts = st.integers(1, 60)


def leaders(topic: bytes, known: object, serving: object, partitions: int, at_most: int | None = None) -> list[int]:
    dealt = Dealt(topic, sorted(known), sorted(serving), at_most)  # type: ignore[call-overload]
    return [dealt.leader(partition) for partition in range(partitions)]


def difference(leads: list[int], brokers: object) -> int:
    counts = [leads.count(broker) for broker in brokers]  # type: ignore[attr-defined]
    return max(counts) - min(counts)


def moved(before: list[int], after: list[int]) -> int:
    return sum(one != other for one, other in zip(before, after, strict=True))


@given(broker_ids, st.data(), partition_counts, st.sampled_from(TOPICS))
def test_the_busiest_leads_one_partition_more_than_the_idlest_at_most(known, data, partitions, topic):
    serving = data.draw(st.sets(st.sampled_from(sorted(known)), min_size=1))
    leads = leaders(topic, known, serving, partitions)
    assert set(leads) <= serving
    assert difference(leads, serving) <= 1


@given(broker_ids, st.data(), partition_counts, st.sampled_from(TOPICS), st.integers(1, 12))
def test_as_many_brokers_lead_as_are_asked_for_and_evenly(known, data, partitions, topic, at_most):
    serving = data.draw(st.sets(st.sampled_from(sorted(known)), min_size=1))
    leads = leaders(topic, known, serving, partitions, at_most)
    count = min(at_most, len(serving))
    assert len(set(leads)) == min(count, partitions)
    assert difference(leads, sorted(set(leads))) <= 1
    assert Dealt(topic, sorted(known), sorted(serving), at_most).order[0] in leaders(
        topic, known, serving, count, at_most
    )


@given(broker_ids, partition_counts, st.sampled_from(TOPICS))
def test_a_partitions_leader_is_the_same_however_many_partitions_there_are(known, partitions, topic):
    assert leaders(topic, known, known, partitions) == leaders(topic, known, known, 60)[:partitions]


@given(st.integers(2, 4), st.integers(1, 40), st.sampled_from(TOPICS), st.data())
def test_of_few_brokers_one_that_goes_takes_along_its_own_partitions_only(brokers, partitions, topic, data):
    known = set(range(1, brokers + 1))
    gone = data.draw(st.sampled_from(sorted(known)))
    before = leaders(topic, known, known, partitions)
    assert moved(before, leaders(topic, known, known - {gone}, partitions)) == before.count(gone)


@given(st.integers(2, 12), st.integers(1, 12), st.sampled_from(TOPICS), st.data())
def test_a_leader_of_some_that_goes_takes_along_its_own_partitions_only(brokers, at_most, topic, data):
    known = set(range(1, brokers + 1))
    gone = data.draw(st.sampled_from(sorted(known)))
    if at_most < brokers - 1:
        before = leaders(topic, known, known, 40, at_most)
        assert moved(before, leaders(topic, known, known - {gone}, 40, at_most)) == before.count(gone)


@pytest.mark.parametrize(
    ("brokers", "partitions", "goes", "comes"),
    [
        (3, 12, 1.0, 1.5),
        (4, 12, 1.0, 2.3),
        (8, 12, 1.0, 2.4),
        (8, 48, 1.5, 2.8),
        (8, 100, 1.6, 2.6),
        (16, 100, 2.5, 4.0),
    ],
)
def test_not_many_more_partitions_move_than_have_to(brokers, partitions, goes, comes):
    """Times the least that keeps leaders even: what a broker that goes has led, what one that comes must get."""
    known = set(range(1, brokers + 1))
    least_goes = went = least_comes = came = 0
    for topic in TOPICS:
        before = leaders(topic, known, known, partitions)
        for gone in known:
            least_goes += before.count(gone)
            went += moved(before, leaders(topic, known, known - {gone}, partitions))
        more = known | {brokers + 1}
        most = -(-partitions // len(more))
        spare = sum(max(0, before.count(one) - most) for one in known)
        least_comes += max(spare, partitions // len(more))
        came += moved(before, leaders(topic, more, more, partitions))
    assert went <= goes * least_goes
    assert came <= comes * max(1, least_comes)


def test_what_comes_back_leads_what_it_led():
    known = {1, 2, 3, 4, 5}
    for topic in TOPICS:
        before = leaders(topic, known, known, 30)
        leaders(topic, known, known - {2}, 30)
        assert leaders(topic, known, known, 30) == before


def test_more_leaders_are_the_former_ones_and_others():
    for topic in TOPICS:
        few = [set(leaders(topic, range(1, 9), range(1, 9), 40, at_most)) for at_most in (1, 2, 4, 8)]
        assert few[0] < few[1] < few[2] < few[3]


def test_every_order_of_brokers_is_as_likely():
    """So that topics of one partition are spread as well as a hash can."""
    firsts = [seated(f"{number}".encode(), (1, 2, 3, 7))[0] for number in range(4_000)]
    lasts = [seated(f"{number}".encode(), (1, 2, 3, 7))[-1] for number in range(4_000)]
    for broker in (1, 2, 3, 7):
        assert 850 < firsts.count(broker) < 1150
        assert 850 < lasts.count(broker) < 1150


def test_a_broker_above_the_others_takes_one_seat():
    for topic in TOPICS:
        before, after = seated(topic, (1, 2, 3)), seated(topic, (1, 2, 3, 4))
        assert moved(before, after[:3]) <= 1


@pytest.mark.parametrize("seats", [1, 2, 7, 100, MOST_IN_TURN + 1])
def test_rounds_repeat_as_wholes(seats):
    turns = seats_in_turn(seats)
    assert len(turns) % seats == 0
    assert sorted(turns[:seats]) == sorted(turns[-seats:]) == list(range(seats))


def test_any_number_of_a_partition_has_a_leader():
    for serving in ((1, 2, 3), (1, 3)):
        dealt = Dealt(b"t", (1, 2, 3), serving)
        assert {dealt.leader(partition) for partition in (-1, 10**9, 2**31 - 1)} <= set(serving)


def test_a_round_keeps_what_it_can():
    assert in_rounds(["a", "b", "a", None], ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
    assert in_rounds(["x", "b"], ["a", "b"]) == ["a", "b"]
