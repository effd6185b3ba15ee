"""A chaos run over a replicated store: its nodes are killed, frozen, cut off and wiped, one at a time.

The store (four nodes of MinIO's, as `tidelog demo --replicas` starts them) promises to go on with one node gone. So the
next fault waits until the node that suffered the last one has again what others have; the run asks the store to
heal, as an operator does. Past the promise, when two of four are gone, nothing is written: clients get errors that say
to try again, and go on when one of the two is back.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

from chaos_processes import Processes, wait_s
from support.tcp_gate import TcpGate, tcp_gates

from tidelog.cli.demo.store_nodes import BUCKET, StoreNodes

KILLED, FROZEN, CUT_OFF, WIPED, MAJORITY = "node killed", "node frozen", "node cut off", "node wiped", "majority gone"
FAULTS = (KILLED, FROZEN, CUT_OFF, WIPED)
# How long a node may take to have again what others have, seconds: the store's own work, which a busy machine delays.
HEALS_WITHIN_S = 900.0
# The store is asked to heal after this number of looks, a second apart, and again.
HEAL_EVERY = 15
# Of these faults each tenth takes a majority away, for this time in seconds.
MAJORITY_EVERY, MAJORITY_S = 10, 20.0


class NodeFaults:
    """What goes wrong with a store's nodes, which clients reach through `gates`."""

    def __init__(self, nodes: StoreNodes, gates: list[TcpGate], every_s: float = 60.0) -> None:
        self._nodes = nodes
        self._gates = gates
        self._every_s = every_s
        # When a majority was gone, and a while after, in seconds of the wall clock: [from, until].
        self.majority_gone: list[tuple[float, float]] = []
        # The longest time until a node that was away had again what others had, in seconds.
        self.longest_heal_s = 0.0

    @property
    def lake(self) -> dict[str, Any]:
        """The lake's address and options."""
        options = self._nodes.options([gate.url for gate in self._gates])
        return {"uri": f"s3://{BUCKET}/chaos", "options": options}

    def go_through(
        self, seconds: float, rng: Random, processes: Processes, say: Callable[[str], None], problems: list[str]
    ) -> Iterator[str]:
        """One fault after another, each said by its name; at the end all nodes are whole."""
        until = time.monotonic() + seconds
        struck = 0
        order: list[str] = []
        while time.monotonic() < until:
            begun = time.monotonic()
            order = order or rng.sample(FAULTS, k=len(FAULTS))
            struck += 1
            fault = MAJORITY if struck % MAJORITY_EVERY == 0 else order.pop()
            victims = rng.sample(range(len(self._gates)), k=2 if fault == MAJORITY else 1)
            say(f"{fault}: {', '.join(str(victim + 1) for victim in victims)}")
            yield fault
            self._strike(fault, victims, min(self._every_s / 3, rng.uniform(5.0, 25.0)), processes)
            for victim in victims:
                self._await_whole(victim, processes, problems)
            wait_s(max(0.0, min(begun + self._every_s, until) - time.monotonic()), processes)

    def _strike(self, fault: str, victims: list[int], seconds: float, processes: Processes) -> None:
        nodes, victim = self._nodes, victims[0]
        if fault == KILLED:
            nodes.kill(victim)
            wait_s(seconds, processes)
            nodes.start(victim)
        elif fault == FROZEN:
            nodes.freeze(victim)
            wait_s(seconds, processes)
            nodes.thaw(victim)
        elif fault == CUT_OFF:
            self._gates[victim].shut()
            wait_s(seconds, processes)
            self._gates[victim].open()
        elif fault == WIPED:
            nodes.wipe(victim)
            wait_s(seconds / 3, processes)
            nodes.start(victim)
        else:
            began = time.time()
            for one in victims:
                nodes.kill(one)
            wait_s(MAJORITY_S, processes)
            for one in victims:
                nodes.start(one)
            self.majority_gone.append((began, time.time()))

    def _await_whole(self, victim: int, processes: Processes, problems: list[str]) -> None:
        """Wait until the node has what others had when it came back."""
        began = time.monotonic()
        until = began + HEALS_WITHIN_S
        while not self._nodes.is_up(victim):
            wait_s(0.5, processes)
            if time.monotonic() > until:
                problems.append(f"node {victim + 1} takes no writes {HEALS_WITHIN_S:.0f} s after it came back")
                return
        lacks = self._nodes.behind(victim)
        for passed in count():
            wait_s(1.0, processes)
            lacks &= self._nodes.behind(victim)
            if not lacks or time.monotonic() > until:
                break
            if passed % HEAL_EVERY == HEAL_EVERY // 2:
                with suppress(OSError):
                    self._nodes.heal(victim)
        self.longest_heal_s = max(self.longest_heal_s, time.monotonic() - began)
        if lacks:
            problems.append(f"node {victim + 1} lacks {len(lacks)} objects {HEALS_WITHIN_S:.0f} s after it came back")


@contextmanager
def faulty_nodes(folder: Path, every_s: float) -> Iterator[NodeFaults]:
    """Four nodes that run, over folders in `folder`, each behind a gate."""
    with StoreNodes(folder) as nodes, tcp_gates([(nodes.address, port) for port in nodes.ports]) as gates:
        yield NodeFaults(nodes, gates, every_s)


def pauses(acked_s: list[float], gone: list[tuple[float, float]]) -> tuple[float, float]:
    """The longest times without any acknowledgement, in seconds: one node gone at most; and a majority gone.

    A pause counts for the majority when it overlaps [from, until], or begins within 30 s after.
    """
    ordered = sorted(acked_s)
    one = most = 0.0
    for before, after in pairwise(ordered):
        if any(before < until + 30.0 and after > since for since, until in gone):
            most = max(most, after - before)
        else:
            one = max(one, after - before)
    return one, most
