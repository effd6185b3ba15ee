"""Assignors: Kafka's published examples, claims, where Kafka errs, and bad input."""

import pytest

import tidelog
from tidelog.groups import ASSIGNORS, assign
from tidelog.log.base.errors import InvalidConfigError, InvalidPartitionsError

STICKY = ["sticky", "cooperative-sticky"]


def partitions(text):
    """`"t0-0 t1-2"` is `[("t0", 0), ("t1", 2)]`."""
    return sorted((name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in text.split())


def holdings(**members):
    return {member: partitions(text) for member, text in members.items()}


def subscriptions(**members):
    return {member: topics.split() for member, topics in members.items()}


TWO_MEMBERS = subscriptions(C0="t0 t1", C1="t0 t1")
STAIRS = subscriptions(C0="t0", C1="t0 t1", C2="t0 t1 t2")
STAIR_COUNTS = {"t0": 1, "t1": 2, "t2": 3}


# --- range and roundrobin: the classes' javadoc and their tests --------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "wanted", "counts", "expected"),
    [
        ("range", TWO_MEMBERS, {"t0": 3, "t1": 3}, holdings(C0="t0-0 t0-1 t1-0 t1-1", C1="t0-2 t1-2")),
        ("roundrobin", TWO_MEMBERS, {"t0": 3, "t1": 3}, holdings(C0="t0-0 t0-2 t1-1", C1="t0-1 t1-0 t1-2")),
        ("roundrobin", STAIRS, STAIR_COUNTS, holdings(C0="t0-0", C1="t1-0", C2="t1-1 t2-0 t2-1 t2-2")),
        (
            "roundrobin",
            subscriptions(C1="t0 t1", C2="t0 t1 t2"),
            STAIR_COUNTS,
            holdings(C1="t0-0 t1-1", C2="t1-0 t2-0 t2-1 t2-2"),
        ),
        (
            "range",
            subscriptions(c1="t1", c2="t1 t2", c3="t1"),
            {"t1": 3, "t2": 2},
            holdings(c1="t1-0", c2="t1-1 t2-0 t2-1", c3="t1-2"),
        ),
        ("range", subscriptions(a="t", b="t", c="t"), {"t": 2}, holdings(a="t-0", b="t-1", c="")),
        ("roundrobin", subscriptions(a="t", b="t", c="t"), {"t": 2}, holdings(a="t-0", b="t-1", c="")),
    ],
)
def test_partitions_are_laid_out(strategy, wanted, counts, expected):
    assert assign(strategy, wanted, counts) == expected


@pytest.mark.parametrize(
    ("strategy", "first", "second", "third"),
    [
        ("range", "t0-0 t1-0", "t0-1 t1-1", "t0-2 t1-2"),
        ("roundrobin", "t0-0 t1-0", "t0-1 t1-1", "t0-2 t1-2"),
    ],
)
def test_a_rolling_bounce_moves_nothing_between_static_members(strategy, first, second, third):
    counts = {"t0": 3, "t1": 3}
    before = assign(
        strategy,
        subscriptions(C0="t0 t1", C1="t0 t1", C2="t0 t1"),
        counts,
        static_ids={"C0": "I1", "C1": "I2", "C2": "I3"},
    )
    after = assign(
        strategy,
        subscriptions(C3="t0 t1", C4="t0 t1", C5="t0 t1"),
        counts,
        static_ids={"C5": "I1", "C3": "I2", "C4": "I3"},
    )
    assert before == holdings(C0=first, C1=second, C2=third)
    assert after == holdings(C5=first, C3=second, C4=third)


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize(
    ("static_ids", "order"),
    [
        ({}, "abc"),
        ({"b": "i"}, "bac"),
        ({"a": "i2", "c": "i1"}, "cab"),
        ({"a": None, "b": "i"}, "bac"),
        ({"gone": "i"}, "abc"),
    ],
)
def test_static_members_come_first_by_their_static_ids(strategy, static_ids, order):
    shared = assign(strategy, subscriptions(a="t", b="t", c="t"), {"t": 3}, static_ids=static_ids)
    assert [shared[member] for member in order] == [[("t", 0)], [("t", 1)], [("t", 2)]]


def test_the_sticky_assignors_do_not_look_at_static_ids():
    shared = assign("sticky", subscriptions(a="t", b="t"), {"t": 2}, static_ids={"b": "i"})
    assert shared == holdings(a="t-0", b="t-1")


# --- sticky: the class's javadoc, AbstractStickyAssignorTest -----------------------------------------------


def test_sticky_javadoc_example_1():
    """The javadoc gives t2-0 to C0 and t0-1 to C2, as an older algorithm did; what stays is the same."""
    topics, counts = "t0 t1 t2 t3", {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
    first = assign("sticky", subscriptions(C0=topics, C1=topics, C2=topics), counts)
    assert first == holdings(C0="t0-0 t1-1 t3-0", C1="t0-1 t2-0 t3-1", C2="t1-0 t2-1")
    without_c1 = assign("sticky", subscriptions(C0=topics, C2=topics), counts, first)
    assert without_c1 == holdings(C0="t0-0 t1-1 t3-0 t0-1", C2="t1-0 t2-1 t2-0 t3-1")
    assert assign("roundrobin", subscriptions(C0=topics, C2=topics), counts, first) == holdings(
        C0="t0-0 t1-0 t2-0 t3-0", C2="t0-1 t1-1 t2-1 t3-1"
    )


def test_sticky_javadoc_example_2():
    first = assign("sticky", STAIRS, STAIR_COUNTS)
    assert first == holdings(C0="t0-0", C1="t1-0 t1-1", C2="t2-0 t2-1 t2-2")
    without_c0 = assign("sticky", subscriptions(C1="t0 t1", C2="t0 t1 t2"), STAIR_COUNTS, first)
    assert without_c0 == holdings(C1="t1-0 t1-1 t0-0", C2="t2-0 t2-1 t2-2")


ALL = "topic1 topic2"
FIVE = "topic1 topic2 topic3 topic4 topic5"


@pytest.mark.parametrize(
    ("wanted", "counts", "owned", "expected"),
    [
        pytest.param(
            subscriptions(consumer1="topic1", consumer2=ALL, consumer3="topic1"),
            {"topic1": 3, "topic2": 2},
            {},
            holdings(consumer1="topic1-0 topic1-2", consumer2="topic2-0 topic2-1", consumer3="topic1-1"),
            id="mixed subscriptions",
        ),
        pytest.param(
            subscriptions(consumer1=ALL, consumer2=ALL),
            {"topic1": 2, "topic2": 3},
            holdings(consumer1="topic1-0 topic2-1", consumer2="topic1-1 topic2-2"),
            holdings(consumer1="topic1-0 topic2-1 topic2-0", consumer2="topic1-1 topic2-2"),
            id="a member at its quota gets one more",
        ),
        pytest.param(
            # consumer2, not consumer1, keeps two: a HashMap walks consumer2 first
            subscriptions(consumer1=ALL, consumer2=ALL, consumer3=ALL),
            {"topic1": 2, "topic2": 2},
            holdings(consumer1="topic1-0 topic2-0", consumer2="topic1-1 topic2-1"),
            holdings(consumer1="topic1-0", consumer2="topic1-1 topic2-1", consumer3="topic2-0"),
            id="more members above their quota than there may be",
        ),
        pytest.param(
            subscriptions(consumer1=ALL, consumer2=ALL, consumer3=ALL),
            {"topic1": 2, "topic2": 3},
            holdings(consumer1="topic1-0", consumer2="topic1-1"),
            holdings(consumer1="topic1-0 topic2-1", consumer2="topic1-1 topic2-2", consumer3="topic2-0"),
            id="all below their quota",
        ),
        pytest.param(
            subscriptions(consumer1=ALL, consumer2=ALL, consumer3=ALL, consumer4=ALL),
            {"topic1": 3, "topic2": 4},
            holdings(consumer1="topic1-0 topic1-2 topic2-1 topic2-3", consumer2="topic1-1 topic2-0 topic2-2"),
            holdings(
                consumer1="topic1-0 topic2-1",
                consumer2="topic1-1 topic2-0",
                consumer3="topic1-2 topic2-3",
                consumer4="topic2-2",
            ),
            id="two join two",
        ),
        pytest.param(
            subscriptions(consumer3=ALL, consumer4=ALL),
            {"topic1": 3, "topic2": 4},
            holdings(consumer3="topic1-2 topic2-3", consumer4="topic2-2"),
            holdings(consumer3="topic1-2 topic2-3 topic1-0 topic2-1", consumer4="topic2-2 topic1-1 topic2-0"),
            id="two of four leave",
        ),
        pytest.param(
            subscriptions(
                consumer1=FIVE, consumer2="topic1 topic3 topic5", consumer3="topic1 topic3 topic5", consumer4=FIVE
            ),
            {"topic1": 2, "topic2": 1, "topic3": 2, "topic4": 1, "topic5": 2},
            {},
            holdings(
                consumer1="topic2-0 topic3-0",
                consumer2="topic1-0 topic3-1",
                consumer3="topic1-1 topic5-0",
                consumer4="topic4-0 topic5-1",
            ),
            id="what roundrobin does poorly",
        ),
        pytest.param(
            subscriptions(consumer="topic"),
            {"topic": 2, "other": 2},
            holdings(consumer="topic-0 topic-1 other-0 other-1"),
            holdings(consumer="topic-0 topic-1"),
            id="owned, but of a topic that nobody reads any more",
        ),
    ],
)
def test_sticky_by_kafkas_tests(wanted, counts, owned, expected):
    assert assign("sticky", wanted, counts, owned) == expected


def test_each_topic_stays_even_while_members_come_and_go():
    """AbstractStickyAssignorTest.testTopicBalanceAfterReassignment: 12 partitions of two topics, 1, 2, 4, 2 members."""
    counts, owned = {"topic1": 12, "topic2": 12}, {}
    for members in (["1"], ["1", "2"], ["1", "2", "3", "4"], ["3", "4"]):
        wanted = {f"consumer{number}": ["topic1", "topic2"] for number in members}
        owned = assign("sticky", wanted, counts, owned)
        for held in owned.values():
            assert [topic for topic, _ in held] == ["topic1"] * (12 // len(members)) + ["topic2"] * (12 // len(members))


# --- cooperative-sticky: KIP-429, CooperativeStickyAssignorTest --------------------------------------------


def test_a_join_takes_two_rounds_of_which_nobody_stops_reading_what_it_keeps():
    """KIP-429: what moves is revoked in the first round and assigned in the second."""
    topic = {"t": 4}
    alone = assign("cooperative-sticky", subscriptions(a="t"), topic)
    assert alone == holdings(a="t-0 t-1 t-2 t-3")
    b_joins = assign("cooperative-sticky", subscriptions(a="t", b="t"), topic, alone)
    assert b_joins == holdings(a="t-0 t-1", b="")
    a_has_revoked = assign("cooperative-sticky", subscriptions(a="t", b="t"), topic, b_joins)
    assert a_has_revoked == holdings(a="t-0 t-1", b="t-2 t-3")
    b_is_gone = assign("cooperative-sticky", subscriptions(a="t"), topic, a_has_revoked)
    assert b_is_gone == alone


def test_eager_sticky_moves_the_same_partitions_in_one_round():
    wanted, owned = subscriptions(a="t", b="t"), holdings(a="t-0 t-1 t-2 t-3")
    assert assign("sticky", wanted, {"t": 4}, owned) == holdings(a="t-0 t-1", b="t-2 t-3")


def test_partitions_are_withheld_where_subscriptions_differ_too():
    wanted, counts = subscriptions(a="t u", b="t"), {"t": 3, "u": 1}
    owned = holdings(a="t-0 t-1 t-2 u-0")
    assert assign("sticky", wanted, counts, owned) == holdings(a="t-2 u-0", b="t-0 t-1")
    first = assign("cooperative-sticky", wanted, counts, owned)
    assert first == holdings(a="t-2 u-0", b="")
    assert assign("cooperative-sticky", wanted, counts, first) == holdings(a="t-2 u-0", b="t-0 t-1")


# --- claims ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "count", "expected"),
    [
        ("sticky", 3, holdings(c1="t-1", c2="t-2", c3="t-0")),
        ("sticky", 4, holdings(c1="t-1 t-3", c2="t-2", c3="t-0")),
        ("cooperative-sticky", 3, holdings(c1="t-1", c2="t-2", c3="")),
        ("cooperative-sticky", 4, holdings(c1="t-1 t-3", c2="t-2", c3="")),
    ],
)
def test_a_partition_claimed_twice_is_nobodys(strategy, count, expected):
    owned = holdings(c1="t-0 t-1", c2="t-0 t-2")
    assert assign(strategy, subscriptions(c1="t", c2="t", c3="t"), {"t": count}, owned) == expected


def test_who_claims_a_contested_partition_must_give_it_up_even_if_it_is_to_have_it():
    wanted, owned = subscriptions(a="t", b="t"), holdings(a="t-0 t-1", b="t-0 t-2 t-3")
    assert assign("sticky", wanted, {"t": 4}, owned) == holdings(a="t-0 t-1", b="t-2 t-3")
    assert assign("cooperative-sticky", wanted, {"t": 4}, owned) == holdings(a="t-1", b="t-2 t-3")


def test_where_subscriptions_differ_one_claimant_goes_on():
    wanted, owned = subscriptions(a="t", b="t u"), holdings(a="t-0", b="t-0 u-0")
    assert assign("cooperative-sticky", wanted, {"t": 1, "u": 1}, owned) == holdings(a="t-0", b="u-0")


@pytest.mark.parametrize("strategy", STICKY)
@pytest.mark.parametrize(
    "claim",
    [
        pytest.param({"gone": [("t", 0), ("t", 1)]}, id="a member that left"),
        pytest.param({"a": [("u", 0)]}, id="a topic that nobody reads"),
        pytest.param({"a": [("none", 0)]}, id="a topic that does not exist"),
        pytest.param({"a": [("t", 7)]}, id="past the end of the topic"),
        pytest.param({"a": [("t", -1)]}, id="below 0"),
    ],
)
def test_claims_that_do_not_count(strategy, claim):
    wanted, counts = subscriptions(a="t", b="t"), {"t": 2, "u": 1}
    assert assign(strategy, wanted, counts, claim) == holdings(a="t-0", b="t-1")


# --- where Kafka errs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ASSIGNORS)
@pytest.mark.parametrize("idle", ["A", "Z"])
def test_who_subscribes_to_nothing_gets_nothing(strategy, idle):
    # a HashMap walks A before B and Z before B: Kafka takes the group for one of equal subscriptions
    assert assign(strategy, {idle: [], "B": ["t"]}, {"t": 4}) == {idle: [], "B": partitions("t-0 t-1 t-2 t-3")}


def test_moves_that_lead_in_a_circle_come_to_an_end():
    """Kafka moves t0-1 and t0-2 around for ever: a move that undoes another is taken from a third member."""
    wanted = subscriptions(a="t0 t1 t2 t3 t4", b="t0 t1 t2 t4", c="t0 t5", d="t2 t4")
    counts = {"t0": 4, "t1": 9, "t2": 18, "t3": 5, "t4": 15, "t5": 19}
    owned = {
        "a": partitions("t0-2 t1-2 t1-3 t1-5 t1-6 t1-8 t2-8 t2-11")
        + [("t4", number) for number in (0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14)],
        "b": [("t2", number) for number in (0, 1, 2, 3, 4, 6, 7, 10, 12, 13, 14, 15, 16)],
    }
    shared = assign("sticky", wanted, counts, owned)
    assert {member: len(held) for member, held in shared.items()} == {"a": 17, "b": 17, "c": 19, "d": 17}
    assert sorted(partition for held in shared.values() for partition in held) == [
        (topic, number) for topic, count in counts.items() for number in range(count)
    ]


# --- input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_topics_that_do_not_exist_are_left_out(strategy):
    wanted = subscriptions(a="t none empty", b="t none empty")
    assert assign(strategy, wanted, {"t": 2, "empty": 0, "unread": 5}) == holdings(a="t-0", b="t-1")


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_nobody_and_nothing(strategy):
    assert assign(strategy, {}, {"t": 2}) == {}
    assert assign(strategy, {"a": ["t"]}, {}) == {"a": []}
    assert assign(strategy, {"a": []}, {"t": 2}) == {"a": []}


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_a_topic_named_twice_counts_once(strategy):
    assert assign(strategy, {"a": ["t", "t"], "b": ["t"]}, {"t": 2}) == holdings(a="t-0", b="t-1")


@pytest.mark.parametrize("strategy", ["rang", "Sticky", "", "uniform"])
def test_an_unknown_strategy_is_refused_with_the_known_ones(strategy):
    with pytest.raises(InvalidConfigError) as refusal:
        assign(strategy, {"a": ["t"]}, {"t": 1})
    assert repr(strategy) in str(refusal.value)
    assert "range, roundrobin, sticky, cooperative-sticky" in str(refusal.value)


def test_a_misspelt_strategy_is_refused_with_the_nearest():
    with pytest.raises(InvalidConfigError, match="Did you mean 'cooperative-sticky'"):
        assign("cooperative_sticky", {"a": ["t"]}, {"t": 1})


def test_a_count_below_0_is_refused():
    with pytest.raises(InvalidPartitionsError, match="'t' was given -1 partitions"):
        assign("range", {"a": ["t"]}, {"t": -1})


def test_the_front_door_has_groups():
    assert tidelog.groups.assign is assign
