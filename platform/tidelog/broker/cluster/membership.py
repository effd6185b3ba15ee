"""One broker's place in its cluster: it registers, beats, watches the others, and leaves. No thread, no socket.

Its caller calls `step` when `due_s` says so, and whenever the log of the cluster has grown.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final
from uuid import UUID

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.cluster.links import Link
from tidelog.broker.cluster.topic_leaders import TopicLeadersByLoad
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leases import LeaseTimes, lease_of, times_of
from tidelog.cluster.model import (
    BrokerState,
    ClusterState,
    DuplicateBrokerError,
    RegisteredBroker,
    StaleRegistrationError,
)
from tidelog.log.lake import Lake
from tidelog.log.storage.leases import SilenceTimers

logger = logging.getLogger(__name__)

# Between looks at the lease of a broker that does not answer.
LOOK_EVERY_S: Final = 0.25
# How many other brokers each asks all the time: the next ones by registration, while all of them answer.
NEIGHBOURS: Final = 2
# How long Metadata lists a broker that has gone: longer than clients take to ask for the leaders of its partitions.
LISTED_S: Final = 5.0
# Between two tries to register again.
RETRY_S: Final = 2.0
# The id of a broker that takes the lowest one that is free.
ANY_ID: Final = -1

# How a broker is reached at its address.
Reached = Callable[[RegisteredBroker], Link]


class BrokerMembership:
    """One broker's place. `wanted`: what to register, of no registration yet; its id may be `ANY_ID`.

    `view` is as of the last look and is replaced, never changed: any thread may read it. The methods may be called
    from several threads. `leading`: what has topics led by as many brokers as their load needs; None: nothing has.
    """

    def __init__(
        self,
        lake: Lake,
        wanted: RegisteredBroker,
        leading: Callable[[ClusterLog], TopicLeadersByLoad] | None = None,
        times: LeaseTimes | None = None,
    ) -> None:
        self._lake = lake
        self._log = ClusterLog(lake)
        self._leading = None if leading is None else leading(self._log)
        self._wanted = wanted
        self._times = times or times_of(lake.storage)
        self._timers: SilenceTimers[int | None] = SilenceTimers()
        self._lock = threading.Lock()
        self._beat_due_s = self._watch_due_s = self._rejoin_due_s = 0.0
        # When the log was looked at last.
        self._seen_s = float("-inf")
        # Of a registration that may be in the log: asked for again until the log says so or not.
        self._asked = ""
        self._leaving = False
        self._cluster_id = ""
        # Registrations of the brokers to ask all the time: some others, and all while one of them does not answer.
        self.asks: frozenset[str] = frozenset()
        self._left: dict[int, tuple[BrokerNode, float]] = {}  # by id, until when they are listed
        self._state = ClusterState()
        self.me = replace(wanted, state=BrokerState.GONE)
        self._lease = lease_of(lake.storage, self.me)
        self.view = ClusterView("", 0, (), wanted.id)

    # --- coming --------------------------------------------------------------------------------------------

    def join(self, reached: Reached) -> None:
        """Register. Raises `DuplicateBrokerError` when a broker that lives has the id, and StorageError.

        A predecessor of this id that ended without a word is waited for, until its lease was silent for long enough.
        """
        while True:
            try:
                with self._lock:
                    self._register(takes_place=True)
                return
            except DuplicateBrokerError:
                if not self._outlive(reached):
                    raise

    def _register(self, *, takes_place: bool) -> None:
        wanted = self._wanted
        self._asked = self._asked or self._lake.ids.new()
        asked = replace(wanted, registration=self._asked, state=BrokerState.RUNNING)
        lease = lease_of(self._lake.storage, asked)
        lease.renew()  # before the others look for it
        try:
            self.me = self._log.register(asked, any_id=wanted.id == ANY_ID, takes_place=takes_place)
        except (DuplicateBrokerError, StaleRegistrationError):
            lease.release()
            self._asked = ""
            raise
        self._asked = ""
        self._lease = lease_of(self._lake.storage, self.me, lease.count)
        self._cluster_id = self._log.cluster_id() or ""
        self._see()
        logger.info("Broker %d is registered as %s, epoch %d.", self.me.id, self.me.registration, self._state.epoch)

    def _outlive(self, reached: Reached) -> bool:
        """Watch the broker that has the id until that broker is dead, and say that it is gone; False when it lives."""
        timers: SilenceTimers[int | None] = SilenceTimers()
        clock = self._lake.clock
        seen = None
        while True:
            other = self._log.look().brokers.get(self._wanted.id)
            if other is None or not other.is_live:
                return True
            counter = lease_of(self._lake.storage, other).seen()
            seen = seen or (other.registration, counter)
            link = reached(other)
            if link is Link.ANSWERS or seen != (other.registration, counter):
                return False
            if self._is_dead(timers, other, counter, link):
                self._bury(other)
                return True
            clock.sleep(LOOK_EVERY_S)

    # --- living --------------------------------------------------------------------------------------------

    def look_now(self) -> None:
        """A connection to another broker is lost: its lease is looked at with the next step."""
        self._watch_due_s = 0.0

    def due_s(self) -> float:
        """When the next step is due, on the elapsed clock."""
        return min([self._beat_due_s, self._watch_due_s, *(until_s for _, until_s in self._left.values())])

    def step(self, reached: Reached, *, grew: bool = True, beats: bool = True) -> bool:
        """Do what is due; whether the view has changed. Raises StorageError: call again when `due_s` says so.

        `grew`: the log may have entries that were not seen. `beats` False: this process does not answer its clients,
        whatever holds it up.
        """
        with self._lock:
            before, now_s = self.view, self._lake.clock.elapsed_s()
            beat_is_due, watch_is_due = now_s >= self._beat_due_s, now_s >= self._watch_due_s
            if beat_is_due:
                self._beat_due_s = now_s + self._times.beat_s
            if watch_is_due:
                self._watch_due_s = now_s + self._times.beat_s
            leads = False
            if beat_is_due and beats and self.me.is_live:
                leads = self._leading is not None and self._leading.look(self._state, self.me, self._lease, now_s)
                self._lease.renew()
            listed, self._left = self._left, {n: one for n, one in self._left.items() if one[1] > now_s}
            if grew or beat_is_due or len(self._left) < len(listed):
                self._see()
            if beats and not self.me.is_live and not self._leaving and now_s >= self._rejoin_due_s:
                self._rejoin_due_s = now_s + RETRY_S
                self._rejoin()
            if watch_is_due:
                self._watch(reached)
            if leads and self._leading is not None and self._leading.decide(self._state, self.me, now_s):
                self._see()
            return self.view is not before

    def _rejoin(self) -> None:
        """It was taken for dead, or unregistered: register again."""
        logger.warning("Broker %d (registration %s) is gone by the log, and lives.", self.me.id, self.me.registration)
        try:
            self._register(takes_place=False)
        except DuplicateBrokerError as e:
            logger.error("Broker %d serves no more. %s", self.me.id, e)

    def _watch(self, reached: Reached) -> None:
        """Look at the leases of the brokers that don't answer, and say of those that are dead that they are gone."""
        others = [other for other in self._state.live if other.registration != self.me.registration]
        self._timers.keep(other.registration for other in others)
        links = {other.registration: reached(other) for other in others}
        for other in others:
            link = links[other.registration]
            if link is Link.ANSWERS:
                self._timers.forget(other.registration)
            elif self._is_dead(self._timers, other, lease_of(self._lake.storage, other).seen(), link):
                self._bury(other)
                self._see()
        all_answer = all(link is Link.ANSWERS for link in links.values())
        asks = neighbours(self.me.registration, links) if all_answer else frozenset(links)
        now_s = self._lake.clock.elapsed_s()
        if asks != self.asks:
            self.asks, self._watch_due_s = asks, now_s
        elif not all_answer:
            self._watch_due_s = min(self._watch_due_s, now_s + LOOK_EVERY_S)
        due_s = self._timers.due_s()
        if due_s is not None:
            self._watch_due_s = min(self._watch_due_s, due_s)

    def _is_dead(
        self, timers: SilenceTimers[int | None], other: RegisteredBroker, counter: int | None, link: Link
    ) -> bool:
        """Note the lease of a broker that does not answer; whether both signs say that it is dead."""
        times = self._times
        enough_s = times.refused_s if link is Link.REFUSED else times.silence_s
        return timers.look(other.registration, counter, enough_s, self._lake.clock.elapsed_s(), times.silence_s / 2)

    def _bury(self, other: RegisteredBroker) -> None:
        if self._log.gone(other.registration):
            logger.warning(
                "Broker %d is gone (registration %s): its lease stood still, and it does not answer.",
                other.id,
                other.registration,
            )
        lease_of(self._lake.storage, other).release()

    # --- going ---------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Send clients to the others from now on. Raises StorageError."""
        with self._lock:
            self._leaving = True
            if self.me.state is BrokerState.RUNNING:
                self._end(self._log.drain)

    def leave(self) -> None:
        """Be gone. Raises StorageError."""
        with self._lock:
            self._leaving = True
            if self.me.is_live:
                self._end(self._log.gone)
                self._lease.release()

    def _end(self, decide: Callable[[str], object]) -> None:
        with suppress(StaleRegistrationError):  # others took it for dead before
            decide(self.me.registration)
        self._see()

    # --- the view ------------------------------------------------------------------------------------------

    def confirmed(self) -> ClusterView:
        """The view, of a look that is no older than twice a beat: a process that was frozen looks again.

        No other broker takes it for dead so soon after its last beat, so that none has its place by this view.
        Raises StorageError.
        """
        if self._lake.clock.elapsed_s() - self._seen_s > 2 * self._times.beat_s:
            with self._lock:
                self._see()
        return self.view

    def others(self) -> list[str]:
        """The registrations of the other brokers that run or drain, as of the last look."""
        return [one.registration for one in self._state.live if one.registration != self.me.registration]

    def _see(self) -> None:
        """Take what the log says."""
        looked_s = self._lake.clock.elapsed_s()
        self._state = self._log.look()
        self._seen_s = looked_s
        self.me = self._state.of(self.me.registration) or replace(self.me, state=BrokerState.GONE)
        view = view_of(self._state, self._cluster_id, self.me)
        now_s, brokers = self._lake.clock.elapsed_s(), self._state.brokers
        here = {node.id for node in view.nodes}
        left = {node.id: (node, now_s + LISTED_S) for node in self.view.nodes} | self._left
        self._left = {n: one for n, one in left.items() if n in brokers and n not in here}
        view = replace(view, left=tuple(node for _, (node, _) in sorted(self._left.items())))
        if view != self.view:
            self.view = view


def neighbours(me: str, others: Iterable[str]) -> frozenset[str]:
    """The brokers that one asks all the time, by registration: the next ones in a ring, so that each is asked by some.

    Where one of them does not answer, it asks all. So one that is silent is found, whichever others are: the next one
    before it that is not finds a silent neighbour.
    """
    ring = sorted(others)
    return frozenset([*(one for one in ring if one > me), *(one for one in ring if one < me)][:NEIGHBOURS])


def view_of(state: ClusterState, cluster_id: str, me: RegisteredBroker) -> ClusterView:
    """The cluster as the broker `me` sees it. Where no broker serves, it names itself."""
    nodes = tuple(map(_node, state.serving or (me,)))
    leaders = {UUID(topic): told.leaders for topic, told in state.leaders.items() if topic}
    known = state.dealt or (me.id,)
    return ClusterView(
        cluster_id, state.epoch, nodes, me.id, known=known, leaders=leaders, usual_leaders=state.leaders_of("")
    )


def _node(broker: RegisteredBroker) -> BrokerNode:
    addresses = {one.name: (one.host, one.port) for one in broker.listeners}
    return BrokerNode(broker.id, addresses, broker.rack, broker.registration)
