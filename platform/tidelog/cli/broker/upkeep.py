"""Maintenance beside brokers, as a process of its own.

Of all that maintain a lake in this way one works at a time, the one that began first; the others wait for its end.
"""

import logging
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from tidelog.cli.serving.plan import BrokerPlan
from tidelog.commands.failures import complain
from tidelog.log.base.errors import TidelogError
from tidelog.server.process.children import Context, KeptProcess, end_with_parent
from tidelog.server.process.logs import logging_lines

if TYPE_CHECKING:
    from tidelog.cli.broker.election import MaintainerElection
    from tidelog.log.lake import Lake
    from tidelog.retention.report import MaintenanceReport

logger = logging.getLogger(__name__)

# A topic that brokers write to gets up to 200 files a second: they are merged once in this time, at least.
MOST_S = 60.0
# Unix's scale from 0 to 19: the brokers come first.
NICENESS = 10


def maintenance_of(plan: BrokerPlan, context: Context) -> KeptProcess:
    """What maintains the lake of brokers. `context`: how its process is started."""
    return KeptProcess("Maintenance", context, run_maintenance, plan, is_up=True)


def run_maintenance(_: Connection, plan: BrokerPlan) -> None:
    """Maintain the plan's lake until the process is asked to end, or the one that started it is gone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # and so let another one be elected
    end_with_parent(lambda: os._exit(0), 0.0)  # a run may be killed anywhere
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # Heavy, and not needed where the process is only kept.
    from tidelog.cli.broker.election import MaintainerElection
    from tidelog.cli.broker.planning import planned_settings
    from tidelog.log.lake import Lake
    from tidelog.operations.maintenance import LakeMaintenance
    from tidelog.retention.scheduling import run_every

    lines = logging_lines(plan.log_format, plan.log_level, broker="maintenance")
    with (
        lines,
        Lake(plan.lake, options=plan.store) as lake,
        MaintainerElection(lake.storage, lake.clock, lake.ids) as election,
    ):
        maintenance = LakeMaintenance(lake)

        def maintained() -> None:
            try:
                if is_due(lake, election):
                    log_report(maintenance.run())
            except TidelogError as error:  # the store is away, say: the next round comes
                complain(error, debug=plan.debug)

        run_every(min(planned_settings(plan, os.environ).maintain_every_s, MOST_S), maintained)


def is_due(lake: "Lake", election: "MaintainerElection") -> bool:
    """Whether this one is elected, of a lake that is its own: a follower gets what its source's maintenance did."""
    return election.is_elected() and lake.follows() is None


def log_report(report: "MaintenanceReport") -> None:
    """Write into the log what a run did, a line for each part of each topic; what was not due only at level debug."""
    for row in report.rows():
        level = logging.DEBUG if row.is_idle else logging.INFO
        logger.log(level, "Maintained: topic=%s part=%s: %s", row.topic, row.part, row.what)
    ended = logging.WARNING if report.failed else logging.DEBUG
    logger.log(ended, "Maintenance run ended: run=%s failed=%s", report.run_id, str(report.failed).lower())
