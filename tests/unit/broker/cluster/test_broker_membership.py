"""One broker's place in a cluster, several of them over one lake with a made-up clock."""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import FakeClock, memory_lake, open_lake

from tidelog.broker.cluster.links import Link
from tidelog.broker.cluster.membership import ANY_ID, LISTED_S, LOOK_EVERY_S, NEIGHBOURS, BrokerMembership, neighbours
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leases import lease_of
from tidelog.cluster.model import BrokerState, DuplicateBrokerError, Listener, RegisteredBroker
from tidelog.log.base.errors import StorageUnavailableError


class Machine:
    """A broker's process in the test's hands: it steps as its clock says, unless it is frozen or dead."""

    def __init__(self, world: "World", port: int, broker_id: int = ANY_ID, rack: str | None = None) -> None:
        self.world = world
        self.port = port
        self.up = False
        lake = open_lake(world.storage, world.clock)
        listeners = (Listener("PLAINTEXT", "h", port),)
        self.member = BrokerMembership(lake, RegisteredBroker(broker_id, "", listeners, rack, world.clock.now_ms()))

    def start(self) -> "Machine":
        self.member.join(self.reached)
        self.up = True
        return self

    def reached(self, other: RegisteredBroker) -> Link:
        return self.world.link(self.port, other)

    def step(self) -> None:
        if self.up and self.world.clock.elapsed_s() >= self.member.due_s():
            self.member.step(self.reached)

    @property
    def nodes(self) -> list[int]:
        return [node.id for node in self.member.view.nodes]


class World:
    """A lake in memory, the machines over it, and which links between them are cut."""

    def __init__(self) -> None:
        self.away = False
        self.lake, self.storage, self.clock = memory_lake(self.trouble)
        self.machines: list[Machine] = []
        self.cut: set[frozenset[int]] = set()
        self.refusing: set[int] = set()
        self.on_sleep: Callable[[], None] = lambda: None

    def trouble(self, method: str, path: str, phase: str) -> None:
        if self.away and phase == "before":
            raise StorageUnavailableError(f"{method} {path}: the store is away")

    def machine(self, port: int, broker_id: int = ANY_ID, rack: str | None = None) -> Machine:
        made = Machine(self, port, broker_id, rack)
        self.machines.append(made)
        return made

    def three(self) -> list[Machine]:
        found = [self.machine(port).start() for port in (1, 2, 3)]
        self.run(1)
        return found

    def link(self, port: int, other: RegisteredBroker) -> Link:
        where = other.listeners[0].port
        if frozenset({port, where}) in self.cut:
            return Link.SILENT
        if any(m.up and m.port == where for m in self.machines):
            return Link.ANSWERS
        return Link.REFUSED if where in self.refusing else Link.SILENT

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
        """Let time pass until something is so; how long it took."""
        began_s = self.clock.elapsed_s()
        while self.clock.elapsed_s() < began_s + seconds and not until():
            self.clock.pass_s(LOOK_EVERY_S / 2)
            for one in self.machines:
                one.step()
        return self.clock.elapsed_s() - began_s

    def states(self) -> dict[int, BrokerState]:
        return {n: one.state for n, one in ClusterLog(self.lake).look().brokers.items()}


@pytest.fixture
def world() -> World:
    return World()


def test_brokers_find_each_other(world):
    brokers = world.three()
    assert [m.nodes for m in brokers] == [[1, 2, 3]] * 3
    assert [m.member.view.node_id for m in brokers] == [1, 2, 3]
    assert len({(m.member.view.cluster_id, m.member.view.epoch) for m in brokers}) == 1
    assert all(m.member.view.serves for m in brokers)


def test_a_broker_that_was_killed_is_gone_within_three_seconds_for_all(world):
    one, other, killed = world.three()
    epoch = one.member.view.epoch
    killed.up = False
    took_s = world.run(10, lambda: one.nodes == other.nodes == [1, 2])
    assert took_s < 3
    assert one.member.view.epoch == epoch + 1
    assert world.states()[3] is BrokerState.GONE


def test_a_broker_whose_address_refuses_connections_is_gone_sooner(world):
    one, other, killed = world.three()
    killed.up = False
    world.refusing = {killed.port}
    assert world.run(10, lambda: one.nodes == other.nodes == [1, 2]) < 1.75


def test_an_address_that_refuses_connections_is_no_death_while_the_lease_moves(world):
    brokers = world.three()
    world.refusing = {1, 2, 3}
    for one in brokers:
        one.reached = lambda _: Link.REFUSED
    world.run(60)
    assert [m.nodes for m in brokers] == [[1, 2, 3]] * 3


def test_metadata_lists_who_went_for_a_while_and_nobody_asks_them(world):
    one, _, killed = world.three()
    killed.up = False
    world.run(10, lambda: one.nodes == [1, 2])
    view = one.member.view
    assert [node.id for node in view.listed("PLAINTEXT")] == [1, 2, 3]
    assert [node.id for node in view.reachable("PLAINTEXT")] == [1, 2]
    assert {view.leader(UUID(int=n), 0).id for n in range(50)} == {1, 2}
    took_s = world.run(30, lambda: [node.id for node in one.member.view.listed("PLAINTEXT")] == [1, 2])
    assert LISTED_S - 1 <= took_s <= LISTED_S + 1


def test_who_comes_back_is_listed_once(world):
    one, _, killed = world.three()
    killed.up = False
    world.run(10, lambda: one.nodes == [1, 2])
    world.machine(4).start()
    world.run(10, lambda: one.nodes == [1, 2, 3])
    assert [(node.id, node.port) for node in one.member.view.listed("PLAINTEXT")] == [(1, 1), (2, 2), (3, 4)]


def test_two_of_three_may_die_at_once(world):
    left, *killed = world.three()
    for one in killed:
        one.up = False
    assert world.run(10, lambda: left.nodes == [1]) < 3


def test_a_broken_link_makes_nobody_go(world):
    brokers = world.three()
    world.cut = {frozenset({1, 2}), frozenset({1, 3}), frozenset({2, 3})}
    version = ClusterLog(world.lake)
    before = version.look()
    world.run(60)
    assert version.look() == before
    assert [m.nodes for m in brokers] == [[1, 2, 3]] * 3


def test_a_store_that_is_away_makes_nobody_go(world):
    brokers = world.three()
    before = ClusterLog(world.lake).look()
    world.cut = {frozenset({1, 2}), frozenset({1, 3}), frozenset({2, 3})}
    world.away = True
    for _ in range(100):
        world.clock.pass_s(LOOK_EVERY_S)
        for one in brokers:
            with suppress(StorageUnavailableError):
                one.step()
    world.away = False
    world.run(5)
    assert ClusterLog(world.lake).look() == before


def test_a_frozen_broker_goes_and_comes_back_by_itself_under_another_registration(world):
    one, _, frozen = world.three()
    old, epoch = frozen.member.me.registration, one.member.view.epoch
    frozen.up = False
    world.run(10, lambda: one.nodes == [1, 2])
    frozen.up = True
    world.run(10, lambda: one.nodes == [1, 2, 3])
    assert one.nodes == frozen.nodes == [1, 2, 3]
    assert frozen.member.me.registration != old
    assert one.member.view.epoch == epoch + 2
    assert frozen.member.view.serves


def test_a_broker_that_thaws_serves_nobody_before_it_is_registered_again(world):
    one, _, frozen = world.three()
    frozen.up = False
    world.run(10, lambda: one.nodes == [1, 2])
    seen: list[bool] = []
    register = frozen.member._log.register
    frozen.member._log.register = lambda *a, **k: (seen.append(frozen.member.view.serves), register(*a, **k))[1]
    frozen.up = True
    world.run(10, lambda: one.nodes == [1, 2, 3])
    assert seen == [False]


def test_an_id_of_a_broker_that_lives_is_refused_at_once(world):
    world.machine(1, 7).start()
    other = world.machine(2, 7)
    before_s = world.clock.elapsed_s()
    with pytest.raises(DuplicateBrokerError, match="Broker id 7 is taken"):
        other.start()
    assert world.clock.elapsed_s() == before_s


def test_an_id_of_a_broker_that_beats_is_refused_though_its_link_is_broken(world, monkeypatch):
    first = world.machine(1, 7).start()
    other = world.machine(2, 7)
    world.cut = {frozenset({1, 2})}
    during(world, monkeypatch, first.step)
    with pytest.raises(DuplicateBrokerError):
        other.start()
    assert world.states() == {7: BrokerState.RUNNING}


def test_the_id_of_a_predecessor_that_was_killed_is_had_after_the_silence(world):
    first = world.machine(1, 7).start()
    world.run(3)
    first.up = False
    began_s = world.clock.elapsed_s()
    again = world.machine(1, 7).start()
    assert 2 <= world.clock.elapsed_s() - began_s < 3
    assert again.member.view.node_id == 7
    assert again.nodes == [7]


def test_a_process_that_begins_again_at_its_address_needs_no_silence(world):
    one, other, killed = world.three()
    killed.up = False
    began_s = world.clock.elapsed_s()
    assert world.machine(3).start().member.view.node_id == 3
    assert world.clock.elapsed_s() == began_s
    world.run(5)
    assert one.nodes == other.nodes == [1, 2, 3]


def test_a_broker_whose_id_another_has_by_now_serves_no_more(world):
    frozen = world.machine(1, 7).start()
    world.run(3)
    frozen.up = False
    world.machine(2, 7).start()
    frozen.up = True
    world.run(10)
    assert not frozen.member.me.is_live
    assert frozen.member.me.registration not in {one.registration for one in ClusterLog(world.lake).look().live}


def test_a_broker_that_drains_serves_no_more_and_is_watched_on(world):
    one, other, leaves = world.three()
    leaves.member.drain()
    assert leaves.nodes == [1, 2]
    assert not leaves.member.view.serves
    world.run(10)
    assert one.nodes == other.nodes == [1, 2]
    assert world.states()[3] is BrokerState.DRAINING
    leaves.up = False
    world.run(10)
    assert world.states()[3] is BrokerState.GONE


def test_a_broker_that_left_is_gone_at_once_and_stays_away(world):
    one, _, leaves = world.three()
    leaves.member.drain()
    leaves.member.leave()
    world.run(10)
    assert world.states()[3] is BrokerState.GONE
    assert one.nodes == [1, 2]
    assert lease_of(world.storage, leaves.member.me).seen() is None


def test_the_last_broker_that_drains_goes_on_serving(world):
    alone = world.machine(1).start()
    alone.member.drain()
    assert alone.member.view.serves


def test_an_unregistered_broker_that_lives_registers_again(world):
    one, other, _ = world.three()
    ClusterLog(world.lake).unregister(2)
    world.run(5)
    assert one.nodes == other.nodes == [1, 2, 3]


def test_a_process_that_answers_nobody_beats_no_more(world):
    [alone] = [world.machine(1).start()]
    lease = lease_of(world.storage, alone.member.me)
    before = lease.seen()
    for _ in range(20):
        world.clock.pass_s(1)
        alone.member.step(alone.reached, beats=False)
    assert lease.seen() == before
    alone.member.step(alone.reached)
    assert alone.member.due_s() > world.clock.elapsed_s()


def test_leases_of_the_dead_are_cleared_away(world):
    one, _, killed = world.three()
    killed.up = False
    world.run(5, lambda: one.nodes == [1, 2])
    assert lease_of(world.storage, killed.member.me).seen() is None


def test_racks_are_in_the_view(world):
    world.machine(1, rack="eu").start()
    [node] = world.machines[0].member.view.nodes
    assert (node.rack, node.addresses) == ("eu", {"PLAINTEXT": ("h", 1)})


def during(world: World, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something at every pause."""
    sleep = FakeClock.sleep

    def slept(clock: FakeClock, seconds: float) -> None:
        sleep(clock, seconds)
        act()

    monkeypatch.setattr(FakeClock, "sleep", slept)


@given(st.sets(st.text("abcdef", min_size=4, max_size=4), min_size=2, max_size=12), st.data())
def test_whichever_brokers_are_silent_one_that_is_not_finds_each_of_them(names, data):
    """It asks all as soon as one does not answer."""
    silent = data.draw(st.sets(st.sampled_from(sorted(names)), min_size=1, max_size=len(names) - 1))
    found: set[str] = set()
    for one in names - silent:
        asked = neighbours(one, names - {one})
        assert len(asked) == min(NEIGHBOURS, len(names) - 1)
        found |= names if asked & silent else asked
    assert silent <= found


def test_brokers_ask_their_neighbours_and_all_while_one_does_not_answer(world):
    brokers = [world.machine(port).start() for port in range(1, 6)]
    world.run(1)
    assert {len(one.member.asks) for one in brokers} == {NEIGHBOURS}
    first, *others = sorted(brokers, key=lambda one: one.member.me.registration)
    silent = others[0]
    world.cut = {frozenset({first.port, silent.port})}
    world.run(1)
    assert len(first.member.asks) == 4
    assert {len(one.member.asks) for one in others} == {NEIGHBOURS, 4}
    world.cut = set()
    world.run(1)
    assert {len(one.member.asks) for one in brokers} == {NEIGHBOURS}


def test_all_but_one_may_die_at_once(world):
    one, *killed = [world.machine(port).start() for port in range(1, 9)]
    world.run(1)
    for other in killed:
        other.up = False
    took_s = world.run(10, lambda: one.nodes == [1])
    assert took_s < 3
