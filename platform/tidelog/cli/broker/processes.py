"""Brokers as processes of one machine, and maintenance beside them: started again when they die, stopped together."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

from tidelog.cli.broker.lake_keys import tell_of_file
from tidelog.cli.broker.pinning import pin
from tidelog.cli.broker.upkeep import maintenance_of
from tidelog.cli.serving.kafka_file import take
from tidelog.cli.serving.plan import BrokerPlan, ReadyLine
from tidelog.commands.failures import FAILED, WRONG_USAGE, UsageProblemError, complain
from tidelog.log.base.errors import TidelogError
from tidelog.server.base.listeners import parse_address
from tidelog.server.process.children import Context, KeptProcess, end, end_with_parent, forking, keep
from tidelog.server.process.logs import logging_lines
from tidelog.server.process.serving import Ready, say_ready
from tidelog.server.process.stopping import Stop

# What the process imports once from which all others are forked.
_IMPORTED = (
    "tidelog.cli.broker.election",
    "tidelog.cli.broker.serving",
    "tidelog.cli.main",
    "tidelog.operations.maintenance",
    "tidelog.retention.scheduling",
)
# How long a broker may take to stop once the process that started it is gone.
_ORPHAN_S = 30.0


def supervise(plans: list[BrokerPlan]) -> None:
    """Run the brokers, one process each, until SIGTERM or SIGINT. Raises `StartFailedError`."""
    first, forks = plans[0], forking(*_IMPORTED)
    with logging_lines(first.log_format, first.log_level, broker="-"), Stop() as stop:
        tell_of_file(take(first.config, first.config_path), first.config_path)
        in_order = InOrder(len(plans), lambda ready: say_ready(first, ready))
        brokers = [BrokerProcess(plan, forks, in_order.of(number)) for number, plan in enumerate(plans)]
        if first.id is None:
            # Each takes the lowest id that is free: one after the other, so that ids count up as ports do.
            for before, broker in pairwise(brokers):
                broker.after = before
        kept: list[KeptProcess] = [*brokers, *([maintenance_of(first, forks)] if first.maintain else [])]
        try:
            keep(kept, stop)
        finally:
            end(kept)


class InOrder:
    """Passes what processes say on in their order; what one says that was started again at once."""

    def __init__(self, count: int, say: Callable[[Ready], None]) -> None:
        self._say = say
        self._waiting: list[Ready | None] = [None] * count
        self._said = 0

    def of(self, number: int) -> Callable[[Ready], None]:
        """Takes what one process says."""

        def take(ready: Ready) -> None:
            if number < self._said:
                self._say(ready)
                return
            self._waiting[number] = ready
            while self._said < len(self._waiting) and (first := self._waiting[self._said]) is not None:
                self._said += 1
                self._say(first)

        return take


class BrokerProcess(KeptProcess):
    """A broker of several. `say`: takes its ready line, whenever it is up."""

    plan: BrokerPlan

    def __init__(self, plan: BrokerPlan, context: Context, say: Callable[[Ready], None]) -> None:
        super().__init__("Broker", context, run_broker, plan)
        self._say = say

    @property
    def id(self) -> object:
        """The broker's, once it has one."""
        return self.plan.id

    def hear(self, said: Mapping[str, Any]) -> None:
        """Keep its id and its ports, which clients know now."""
        line, plan = ReadyLine(**said), self.plan
        known = line.listeners or dict.fromkeys(plan.listeners, line.listener)
        listeners = {
            name: (host, port if name in plan.advertised else parse_address(known[name])[1])
            for name, (host, port) in plan.listeners.items()
        }
        self.plan = replace(plan, id=line.id, listeners=listeners)
        self._say(line.ready())


def run_broker(says: Connection, plan: BrokerPlan) -> None:
    """Run a broker in a process that was started for it; it says its ready line as a document.

    Raises `SystemExit` with the code of a failure, which it has said.
    """
    # What the process that forks has imported.
    from tidelog.cli.broker.serving import serve_broker

    if plan.core is not None:
        pin(plan.core)
    with Stop() as stop:
        end_with_parent(lambda: stop.ask("the process that started it is gone"), _ORPHAN_S)
        try:
            serve_broker(plan, lambda ready: says.send(ready.document), stop)
        except (TidelogError, UsageProblemError, OSError) as e:
            complain(e, debug=plan.debug, as_json=plan.as_json)
            sys.exit(WRONG_USAGE if isinstance(e, UsageProblemError) else FAILED)
