"""A group of ten members: how long until all is shared out again after one more joins, and after one is killed."""

import multiprocessing
import os
import queue
import signal
import time
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from figures import Row, summary
from plan import Plan

import tidelog
from tidelog.groups.member.events import Assigned, Failed, MemberConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.store.group_log import GroupLog

_MEMBERS = 10
_PARTITIONS = 100
_HEARTBEAT_MS = 500
_SESSION_MS = 6_000
_TOPIC = "shared"
_STRATEGIES = ("range", "cooperative-sticky")
_PATIENCE_S = 60.0


def run(plan: Plan) -> list[Row]:
    """Both kinds of rebalance: all is given up and shared out again, or only what moves."""
    rounds = 3 if plan.quick else 10
    found = {strategy: _measure(str(plan.work / f"rebalance-{strategy}"), strategy, rounds) for strategy in _STRATEGIES}
    joins = {strategy: joined for strategy, (joined, _) in found.items()}
    kills = {strategy: killed for strategy, (_, killed) in found.items()}
    limit_s = _SESSION_MS / 1000 + 2
    return [
        _row(
            f"rebalance after a member joins {_MEMBERS} others, {_PARTITIONS} partitions, 500 ms heartbeats, slowest",
            "≤ 2 s", 2.0, joins,
        ),
        _row(
            f"the same after a member is killed, session of {_SESSION_MS // 1000} s, slowest",
            f"≤ session + 2 s = {limit_s:.0f} s", limit_s, kills,
        ),
    ]  # fmt: skip


def _row(what: str, must: str, limit_s: float, times: Mapping[str, list[float]]) -> Row:
    told = ", ".join(f"{strategy} {max(samples):.2f} s" for strategy, samples in times.items())
    ok = all(max(samples) <= limit_s for samples in times.values())
    return Row(what, must, told, ok, {strategy: summary(samples) for strategy, samples in times.items()})


class _Members:
    """Processes that are members, or not yet; each tells what it owns."""

    def __init__(self, uri: str, strategy: str, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._told: Any = context.Queue()
        self._orders: list[Connection] = []
        self._processes = []
        self._owned: dict[int, tuple[float, int, int]] = {}  # when it was notified, generation, partitions
        for number in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_member, args=(uri, strategy, number, theirs, self._told), daemon=True)
            process.start()
            self._orders.append(ours)
            self._processes.append(process)
        for _ in range(count):
            self._told.get(timeout=_PATIENCE_S)

    def order(self, number: int, what: str) -> float:
        """Have a member subscribe, leave or end; returns when it got the command."""
        began = time.monotonic()
        self._orders[number].send(what)
        return began

    def kill(self, number: int) -> float:
        """Kill a member's process; returns when."""
        began = time.monotonic()
        os.kill(self._processes[number].pid or 0, signal.SIGKILL)
        return began

    def settled_s(self, members: set[int]) -> float:
        """Wait until these members own all partitions in one generation; returns when the last one was notified."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            known = [self._owned[number] for number in members if number in self._owned]
            whole = len(known) == len(members) and sum(count for _, _, count in known) == _PARTITIONS
            if whole and len({generation for _, generation, _ in known}) == 1:
                return max(at for at, _, _ in known)
            try:
                number, at, generation, count = self._told.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise RuntimeError(f"members {members} did not settle in {_PATIENCE_S:g} s: {self._owned}") from None
            self._owned[number] = (at, generation, count)

    def end(self) -> None:
        """End every process."""
        for process in self._processes:
            process.kill()
            process.join()


def _measure(uri: str, strategy: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each join, and of each kill: of a member that follows, and of the leader."""
    with tidelog.Lake(uri) as lake:
        lake.create_topic(_TOPIC, partitions=_PARTITIONS)
        members = _Members(uri, strategy, _MEMBERS + 1)
        try:
            everybody = set(range(_MEMBERS))
            for number in everybody:
                members.order(number, "subscribe")
            members.settled_s(everybody)
            joins = []
            for _ in range(rounds):
                began = members.order(_MEMBERS, "subscribe")
                joins.append(members.settled_s(everybody | {_MEMBERS}) - began)
                members.order(_MEMBERS, "leave")
                members.settled_s(everybody)
            kills = []
            for leads in (False, True):
                victim = _who(lake, everybody, leads)
                everybody.remove(victim)
                began = members.kill(victim)
                kills.append(members.settled_s(everybody) - began)
            return joins, kills
        finally:
            members.end()


def _who(lake: tidelog.Lake, members: set[int], leads: bool) -> int:
    """The number of the leader, or of a member that does not lead."""
    group = GroupLog(lake).group("g")
    leader = next(number for number in members if group is not None and (group.leader or "").startswith(f"m{number}-"))
    return leader if leads else next(number for number in members if number != leader)


def _member(uri: str, strategy: str, number: int, orders: Connection, told: Any) -> None:
    """The life of a member's process."""
    with tidelog.Lake(uri) as lake:

        def counts(topics: Iterable[str]) -> Mapping[str, int]:
            return {topic: lake.topic(topic).target().partitions for topic in topics}

        config = MemberConfig(
            group_id="g", client_id=f"m{number}", strategies=(strategy,),
            session_timeout_ms=_SESSION_MS, heartbeat_interval_ms=_HEARTBEAT_MS,
        )  # fmt: skip
        membership = Membership(GroupLog(lake), Leases(lake.storage), counts, config, clock=lake.clock, ids=lake.ids)
        told.put((number, time.monotonic(), -1, 0))
        while True:
            if orders.poll(min(0.5, membership.due_s())):
                if orders.recv() == "subscribe":
                    membership.subscribe([_TOPIC])
                else:
                    membership.leave()
            membership.polled()
            for event in membership.step():
                if isinstance(event, Revoke):
                    membership.revoked()
                elif isinstance(event, Assigned):
                    told.put((number, time.monotonic(), membership.generation, len(event.owned)))
                elif isinstance(event, Failed):
                    raise event.error
