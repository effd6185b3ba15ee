"""The rules of a cluster: as tables, and for every order of decisions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.cluster import rules
from tidelog.cluster.model import (
    ALL,
    BrokerState,
    ClusterState,
    DuplicateBrokerError,
    LeadersChange,
    Listener,
    RegisteredBroker,
    StaleRegistrationError,
    TopicLeaders,
    UnknownBrokerError,
)
from tidelog.cluster.rows import KIND, ClusterFold
from tidelog.log.rows.rules import RowOutcome

RUNNING, DRAINING, GONE = BrokerState


def broker(registration: str, broker_id: int = -1, port: int = 9092, **more: Any) -> RegisteredBroker:
    return RegisteredBroker(broker_id, registration, (Listener("PLAINTEXT", "h", port),), started_ms=7, **more)


class Log:
    """The fold, going on by what is decided, as its rows come back from a log."""

    def __init__(self) -> None:
        self.fold = ClusterFold()
        self.rows: list[Any] = []

    @property
    def state(self) -> ClusterState:
        return self.fold.state

    def take(self, outcome: RowOutcome[Any]) -> Any:
        rows = [KIND.schema.checked(row) for row in outcome.rows]
        self.rows.extend(rows)
        self.fold.take(rows)
        return outcome.response

    def register(self, registration: str, broker_id: int | None = None, port: int = 9092, **more: Any) -> int:
        wanted = broker(registration, -1 if broker_id is None else broker_id, port)
        found: RegisteredBroker = self.take(rules.decide_register(self.state, wanted, any_id=broker_id is None, **more))
        return found.id

    def drain(self, registration: str) -> None:
        self.take(rules.decide_drain(self.state, registration))

    def gone(self, registration: str) -> bool:
        changed: bool = self.take(rules.decide_gone(self.state, registration))
        return changed

    def lead(self, registration: str, topic: str, leaders: int, before: TopicLeaders | None = None) -> bool:
        """Whether that number of brokers leads the topic from then on."""
        change = LeadersChange(before, TopicLeaders(topic, topic and "name", leaders, 5))
        return bool(self.take(rules.decide_leaders(self.state, registration, [change])))

    def states(self) -> dict[int, tuple[str, BrokerState]]:
        return {n: (one.registration, one.state) for n, one in self.state.brokers.items()}


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_broker_gets_the_lowest_id_that_no_live_broker_has(log):
    assert [log.register(name, port=n) for n, name in enumerate("abc")] == [1, 2, 3]
    log.gone("b")
    assert log.register("d", port=7) == 2
    assert log.register("e", port=8) == 4


def test_a_broker_that_drains_keeps_its_id(log):
    log.register("a", port=1)
    log.drain("a")
    assert log.register("b", port=2) == 2


def test_a_given_id_is_used_unless_a_live_broker_has_it(log):
    assert log.register("a", 7) == 7
    with pytest.raises(DuplicateBrokerError, match=r"id 7 is taken by a broker that lives, at h:9092"):
        log.register("b", 7)
    log.drain("a")
    with pytest.raises(DuplicateBrokerError):
        log.register("b", 7)
    log.gone("a")
    assert log.register("b", 7) == 7


def test_a_process_that_begins_again_at_an_address_takes_its_predecessors_place(log):
    assert log.register("a", port=1) == 1
    assert log.register("b", port=2) == 2
    assert log.register("c", port=1, takes_place=True) == 1
    assert log.states() == {1: ("c", RUNNING), 2: ("b", RUNNING)}
    log.register("x", 5, port=5)
    assert log.register("d", port=5, takes_place=True) == 3
    assert log.states()[5] == ("x", GONE)


def test_only_who_asks_for_it_takes_a_place(log):
    assert log.register("a", port=1) == 1
    assert log.register("b", port=1) == 2


def test_a_given_id_is_not_taken_by_an_address_and_other_ids_are(log):
    log.register("a", 1, port=1)
    log.register("b", 2, port=1)
    with pytest.raises(DuplicateBrokerError):
        log.register("c", 1, port=1, takes_place=True)
    assert log.register("d", 3, port=1, takes_place=True) == 3
    assert log.states() == {1: ("a", GONE), 2: ("b", GONE), 3: ("d", RUNNING)}


def test_a_repeat_of_a_registration_changes_nothing(log):
    assert log.register("a", port=1) == 1
    rows = len(log.rows)
    assert log.register("a", port=1) == 1
    assert len(log.rows) == rows


@pytest.mark.parametrize("ended", ["drained", "gone", "drained and gone"])
def test_a_registration_that_is_over_can_not_register_again(log, ended):
    log.register("a", 3)
    if "drained" in ended:
        log.drain("a")
    if "gone" in ended:
        log.gone("a")
    with pytest.raises(StaleRegistrationError):
        log.register("a", 3)


def test_a_broker_that_is_gone_does_nothing_under_its_old_registration(log):
    log.register("old", 3)
    log.gone("old")
    with pytest.raises(StaleRegistrationError):
        log.drain("old")
    log.register("new", 3)
    before = log.state
    with pytest.raises(StaleRegistrationError):
        log.drain("old")
    assert log.gone("old") is False
    assert log.state == before


def test_who_sees_a_death_later_changes_nothing(log):
    log.register("a")
    assert [log.gone("a"), log.gone("a"), log.gone("never there")] == [True, False, False]


def test_the_epoch_rises_when_others_serve_than_before(log):
    epochs = []

    def note(_: object = None) -> None:
        epochs.append(log.state.epoch)

    note(log.register("a", port=1))
    note(log.register("b", port=2))
    note(log.drain("a"))
    note(log.drain("a"))
    note(log.gone("a"))  # it served no more
    note(log.drain("b"))  # alone, it serves until its end
    note(log.gone("b"))
    note(log.register("c", port=2))
    assert epochs == [1, 2, 3, 3, 3, 3, 4, 5]


def test_brokers_that_drain_serve_only_while_no_other_runs(log):
    log.register("a", port=1)
    log.register("b", port=2)
    log.drain("a")
    assert [one.registration for one in log.state.serving] == ["b"]
    log.drain("b")
    assert [one.registration for one in log.state.serving] == ["a", "b"]


def test_an_unregistered_broker_is_forgotten(log):
    log.register("a", 3)
    epoch = log.state.epoch
    log.take(rules.decide_unregister(log.state, 3))
    assert (log.states(), log.state.epoch) == ({}, epoch + 1)
    with pytest.raises(UnknownBrokerError):
        rules.decide_unregister(log.state, 3)
    with pytest.raises(StaleRegistrationError):
        log.drain("a")


def test_the_controller_says_how_many_lead_a_topic(log):
    log.register("a", port=1)
    log.register("b", port=2)
    epoch = log.state.epoch
    assert not log.lead("b", "t", 2)
    assert log.lead("a", "t", 2)
    assert (log.state.leaders_of("t"), log.state.leaders_of("other"), log.state.epoch) == (2, 1, epoch + 1)
    log.drain("a")
    told = log.state.leaders["t"]
    assert not log.lead("a", "t", 3, told)
    assert log.lead("b", "t", 1, told)
    assert (log.state.leaders, log.state.leaders_of("t"), log.state.epoch) == ({}, 1, epoch + 3)


def test_a_number_of_leaders_that_was_decided_on_another_has_no_effect(log):
    log.register("a")
    assert log.lead("a", "t", 2)
    epoch = log.state.epoch
    assert not log.lead("a", "t", 4)
    assert not log.lead("a", "t", 4, TopicLeaders("t", "name", 2, since_ms=4))
    assert (log.state.leaders_of("t"), log.state.epoch) == (2, epoch)


def test_all_lead_the_topics_of_which_nothing_else_is_said(log):
    log.register("a")
    assert log.lead("a", "", ALL)
    assert log.lead("a", "t", 2)
    assert [log.state.leaders_of(topic) for topic in ("t", "other")] == [2, ALL]
    assert log.lead("a", "", 1, log.state.leaders[""])
    assert [log.state.leaders_of(topic) for topic in ("t", "other")] == [2, 1]


def test_rows_say_all_that_is_known(log):
    wanted = RegisteredBroker(
        4, "r", (Listener("A", "h", 1), Listener("B", "i", 2)), rack="eu", started_ms=1_795_000_000_000
    )
    log.take(rules.decide_register(log.state, wanted, any_id=False))
    assert KIND.folded(log.rows) == log.fold
    assert log.state == ClusterState({4: wanted}, 1)
    assert len(log.fold) == 2
    log.lead("r", "t", 3)
    log.lead("r", "", ALL)
    assert KIND.folded(log.rows) == log.fold
    leaders = {"t": TopicLeaders("t", "name", 3, 5), "": TopicLeaders("", "", ALL, 5)}
    assert log.state == ClusterState({4: wanted}, 3, leaders)
    assert len(log.fold) == 4


# --- every order of decisions ------------------------------------------------------------------------------

names = st.sampled_from("abcdef")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("register"), names, st.none() | st.integers(1, 4), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("drain"), names),
        st.tuples(st.just("gone"), names),
        st.tuples(st.just("unregister"), st.integers(1, 4)),
        st.tuples(st.just("lead"), names, st.sampled_from(["", "t", "u"]), st.integers(0, 3)),
    ),
    max_size=30,
)


def leads_by(state):
    """What leaders follow from: an epoch has one answer."""
    leaders = {topic: told.leaders for topic, told in state.leaders.items()}
    return [broker.registration for broker in state.serving], state.dealt, leaders


@given(steps)
def test_ids_are_unique_the_epoch_rises_and_what_is_gone_stays_gone(script):
    log, over = Log(), set()
    for kind, *given_ in script:
        before = log.state
        try:
            if kind == "register":
                name, broker_id, port, takes_place = given_
                log.register(name, broker_id, port, takes_place=takes_place)
            elif kind == "unregister":
                log.take(rules.decide_unregister(before, given_[0]))
            elif kind == "lead":
                name, topic, leaders = given_
                log.lead(name, topic, leaders, before.leaders.get(topic))
            else:
                getattr(log, kind)(given_[0])
        except (DuplicateBrokerError, StaleRegistrationError, UnknownBrokerError):
            assert log.state == before
        after = log.state
        assert after.epoch == before.epoch + (leads_by(before) != leads_by(after))
        live = {one.registration: one for one in after.live}
        assert len(live) == len(after.live)
        assert all(number == one.id for number, one in after.brokers.items())
        if kind != "register":
            assert not live.keys() & over
        over |= {one.registration for one in before.live} - live.keys()
        for name in over & {one.registration for one in after.brokers.values()} - live.keys():
            with pytest.raises(StaleRegistrationError):
                rules.decide_drain(after, name)
            assert not rules.decide_gone(after, name).rows
        # A decision of its own has effect only for a registration that the log has: ids that are forgotten are free.
        over -= live.keys()
    assert KIND.folded(log.rows) == log.fold
