"""How many brokers lead a topic by its load: as tables, and for every course that loads may take."""

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.cluster import rules
from tidelog.cluster.leading import PATIENCE, LeadersDecider, wanted_leaders
from tidelog.cluster.loads import BrokerLoad, TopicLoad, load_of
from tidelog.cluster.model import ALL, ClusterState, RegisteredBroker, TopicLeaders
from tidelog.cluster.rows import ClusterFold

INTERVAL_S = 30.0
LOOK_S = 5.0


@pytest.mark.parametrize(
    ("leaders", "cores", "most", "expected"),
    [
        # One leads while it can.
        (1, 0.0, 8, 1),
        (1, 0.6, 8, 1),
        (1, 0.61, 8, 2),
        # As many join as the load needs, twice as many at once at most.
        (1, 1.3, 8, 2),
        (2, 1.3, 8, 3),
        (2, 4.0, 8, 4),
        (4, 4.0, 8, 7),
        # Never more than there are, of brokers or of partitions.
        (1, 4.0, 1, 1),
        (2, 4.0, 3, 3),
        # They leave where fewer would be far from busy, and not before.
        (2, 0.61, 8, 2),
        (2, 0.31, 8, 2),
        (2, 0.3, 8, 1),
        (8, 1.0, 8, 4),
        (8, 0.0, 8, 1),
    ],
)
def test_wanted_leaders(leaders, cores, most, expected):
    assert wanted_leaders(leaders, cores, most) == expected


@pytest.mark.parametrize(
    ("leaders", "cores", "most", "expected"),
    [(1, 0.5, 8, 2), (1, 0.5, 1, 1), (1, 0.3, 8, 1), (2, 0.5, 8, 2), (2, 0.7, 8, 3), (3, 0.2, 8, 1)],
)
def test_a_broker_is_relieved_where_the_other_would_not_leave_again(leaders, cores, most, expected):
    assert wanted_leaders(leaders, cores, most, relieve=True) == expected


@given(st.integers(1, 16), st.floats(0, 20), st.integers(1, 16), st.booleans())
def test_a_number_of_leaders_stays_while_the_load_does(leaders, cores, most, relieve):
    leaders = min(leaders, most)
    for _ in range(6):
        before, leaders = leaders, wanted_leaders(leaders, cores, most)
        assert 1 <= leaders <= most
    assert leaders == before
    relieved = wanted_leaders(leaders, cores, most, relieve=relieve)
    assert wanted_leaders(relieved, cores, most) == relieved


class Cluster:
    """A cluster whose controller is one decider or another, and what was decided when."""

    def __init__(self, brokers: int = 4, most: int | None = None, deciders: int = 1) -> None:
        self.fold = ClusterFold(ClusterState({n: RegisteredBroker(n, f"r{n}") for n in range(1, brokers + 1)}))
        self.deciders = [LeadersDecider(most, INTERVAL_S) for _ in range(deciders)]
        self.now_s = 0.0
        self.changed: defaultdict[str, list[float]] = defaultdict(list)

    @property
    def state(self) -> ClusterState:
        return self.fold.state

    def look(self, *loads: BrokerLoad, decider: int = 0) -> list[tuple[str, int]]:
        """What the decider does in one look."""
        self.now_s += LOOK_S
        serving = self.state.serving
        told = [*loads, *[BrokerLoad()] * (len(serving) - len(loads))]
        changes = self.deciders[decider].changes(self.state, told, self.now_s, int(self.now_s * 1000))
        assert all(change.before != change.after for change in changes)
        outcome = rules.decide_leaders(self.state, serving[0].registration, changes)
        self.fold.take(outcome.rows)
        for one in outcome.response:
            self.changed[one.topic].append(self.now_s)
        return [(one.topic, one.leaders) for one in outcome.response]

    def looks(self, seconds: float, *loads: BrokerLoad, decider: int = 0) -> list[tuple[str, int]]:
        """All that it does meanwhile."""
        return [one for _ in range(int(seconds / LOOK_S)) for one in self.look(*loads, decider=decider)]


def load(busy: float | None = None, partitions: int = 12, **topics: float) -> BrokerLoad:
    told = tuple(TopicLoad(topic, f"name of {topic}", partitions, cores) for topic, cores in topics.items())
    return BrokerLoad(sum(topics.values()) if busy is None else busy, told)


def test_one_leads_until_the_load_has_lasted():
    cluster = Cluster()
    assert cluster.looks(INTERVAL_S, load(t=0.9)) == []
    assert cluster.look(load(t=0.9)) == [("t", 2)]
    assert cluster.state.leaders["t"] == TopicLeaders("t", "name of t", 2, int(cluster.now_s * 1000))
    assert cluster.looks(600, load(t=0.5), load(t=0.5)) == []


def test_a_burst_changes_nothing():
    cluster = Cluster()
    for _ in range(10):
        assert cluster.looks(20, load(t=1.0)) == []
        assert cluster.looks(60) == []


def test_leaders_join_step_by_step_and_leave_once_they_were_not_needed_for_long():
    cluster = Cluster(8)
    assert cluster.looks(300, load(t=3.0)) == [("t", 2), ("t", 4), ("t", 5)]
    low_s = PATIENCE * INTERVAL_S
    assert cluster.looks(low_s, load(t=0.5)) == []
    assert cluster.looks(10, load(t=0.5)) == [("t", 2)]
    assert cluster.looks(low_s - 5) == []
    assert cluster.looks(5, load(t=0.5)) == []  # it was needed for a moment
    assert cluster.looks(low_s) == []
    assert cluster.looks(10) == [("t", 1)]
    assert cluster.state.leaders == {}


def test_leaders_leave_as_far_as_none_was_needed_meanwhile():
    cluster = Cluster(8)
    cluster.looks(300, load(t=3.0))
    assert cluster.looks(60, load(t=0.8)) + cluster.looks(100, load(t=0.2)) == [("t", 3)]


def test_no_more_lead_than_a_topic_has_partitions_than_run_or_than_are_allowed():
    assert Cluster(8).looks(300, load(t=6.0, partitions=3)) == [("t", 2), ("t", 3)]
    assert Cluster(3).looks(300, load(t=6.0)) == [("t", 2), ("t", 3)]
    assert Cluster(8, most=2).looks(300, load(t=6.0)) == [("t", 2)]
    assert Cluster(8, most=1).looks(300, load(t=6.0)) == []


def test_a_bound_that_was_lowered_counts_at_once():
    cluster = Cluster(8)
    cluster.looks(300, load(t=3.0))
    cluster.deciders = [LeadersDecider(2, INTERVAL_S)]
    assert cluster.look(load(t=3.0)) == [("t", 2)]


def test_brokers_that_come_and_go_change_nothing_by_themselves():
    cluster = Cluster(8)
    cluster.looks(300, load(t=3.0))
    few = ClusterFold(ClusterState(dict(list(cluster.state.brokers.items())[:2]), 1, cluster.state.leaders))
    many, cluster.fold = cluster.fold, few
    assert cluster.looks(300, load(t=3.0)) == []
    cluster.fold = many
    assert cluster.looks(300, load(t=3.0)) == []


def test_all_lead_and_one_does_again():
    cluster = Cluster()
    cluster.looks(300, load(t=3.0))
    cluster.deciders = [LeadersDecider(ALL, INTERVAL_S)]
    assert cluster.looks(60, load(t=3.0)) == [("t", 1), ("", ALL)]
    assert (cluster.state.leaders_of("t"), cluster.state.leaders_of("u")) == (ALL, ALL)
    cluster.deciders = [LeadersDecider(None, INTERVAL_S)]
    assert cluster.looks(25, load(t=0.5)) == [("", 1)]
    assert cluster.state.leaders == {}


def test_a_broker_with_too_much_to_do_is_relieved_of_what_costs_it_most():
    cluster = Cluster()
    assert cluster.looks(300, load(a=0.35, b=0.5, c=0.1), load(d=0.4)) == [("b", 2)]
    assert Cluster().looks(300, load(a=0.28, b=0.28, c=0.28, d=0.28)) == []
    assert Cluster(2).looks(300, load(a=0.5, b=0.5), load(c=0.55)) == []


@given(
    st.integers(1, 5),
    st.sampled_from([None, None, 1, 3]),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 12), st.dictionaries(st.sampled_from("tuv"), st.floats(0, 4))),
        max_size=80,
    ),
)
def test_no_topic_changes_more_often_than_it_may_whatever_is_asked_of_it_and_whichever_broker_decides(
    brokers, most, script
):
    cluster = Cluster(brokers, most, deciders=3)
    for decider, partitions, topics in script:
        for _ in range(3):
            cluster.look(load(None, partitions, **topics), decider=decider)
            for told in cluster.state.leaders.values():
                assert 1 < told.leaders <= min(brokers, most or brokers)
    for changes in cluster.changed.values():
        assert all(after - before >= INTERVAL_S for before, after in pairwise(changes))


def test_an_idle_cluster_writes_nothing():
    assert Cluster().looks(3600) == []


# --- what leases say ---------------------------------------------------------------------------------------


def test_a_lease_says_what_topics_cost():
    told = load(t=0.5, u=0.25)
    assert load_of({"id": 1, **told.said()}) == told
    assert BrokerLoad(0.9).said() == {}


@pytest.mark.parametrize(
    "lease",
    [
        None,
        {},
        {"load": 5},
        {"load": {}},
        {"load": {"cores": "x", "topics": []}},
        {"load": {"topics": [[1]]}},
        *(
            {"load": {"cores": 1.0, "topics": [["id", "t", count, cores]]}}
            for count, cores in ((1, "nan"), (1, "inf"), (1, 1e300), (1, -1.0), (float("inf"), 1.0))
        ),
    ],
)
def test_a_lease_that_says_nothing_is_no_load(lease):
    assert load_of(lease) == BrokerLoad()
