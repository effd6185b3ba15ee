"""One broker in this process: started, served until it is asked to stop, drained."""

import asyncio
import ctypes
import gc
import logging
import os
import resource
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.broker import Broker
from tidelog.cli.broker.lake_keys import take_lake_keys, tell_of_file
from tidelog.cli.broker.parent import stop_when_asked
from tidelog.cli.broker.planning import planned_settings
from tidelog.cli.broker.processes import KeptProcess
from tidelog.cli.serving.configuration import given_by_environment, given_by_file
from tidelog.cli.serving.kafka_file import take
from tidelog.cli.serving.plan import BrokerPlan, ReadyLine
from tidelog.log.lake import Lake
from tidelog.server.base.listeners import shown
from tidelog.server.process.logs import LimitedLines, logging_lines
from tidelog.server.process.metrics_listener import Metrics, Problem
from tidelog.server.process.serving import metrics_served

logger = logging.getLogger(__name__)

# M_ARENA_MAX of glibc's malloc.h.
_ARENA_MAX = -8
# For how long a thread may keep the others from running Python: a checkpoint's, or one that reads batches, would else
# hold up each step of the loop by Python's usual 5 ms.
_SWITCH_S = 0.0005


def serve(plan: BrokerPlan, ready: Callable[[ReadyLine], None], *, tied: bool = False) -> None:
    """Run a broker until SIGTERM or SIGINT, and drain it; `ready` is called once clients can connect.

    `tied`: it stops, too, when standard input ends, so that it does not outlive the process that started it.
    Raises `UsageProblemError`, `ListenerError`, and what opening the lake raises.
    """
    settings, taken = planned_settings(plan, os.environ), take(plan.config, plan.config_path)
    _allow_many_sockets()
    _share_freed_memory()
    sys.setswitchinterval(_SWITCH_S)
    with (
        logging_lines(plan.log_format, plan.log_level, broker="-") as lines,
        Lake(plan.lake, options=plan.store) as lake,
        asyncio.Runner(loop_factory=_loop) as runner,
    ):
        if not tied:
            tell_of_file(taken, plan.config_path)
        take_lake_keys(lake, taken.lake)
        runner.run(_serve(lake, settings, plan, ready, lines, tied))


def _loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


def _share_freed_memory() -> None:
    """Have all threads share what each has freed: else glibc keeps it for each, and large batches add up."""
    with suppress(OSError, AttributeError):  # another C library has no such setting
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def _allow_many_sockets() -> None:
    """Raise this process's limit of open files to what the system lets it have: a socket is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(
    lake: Lake,
    settings: BrokerSettings,
    plan: BrokerPlan,
    ready: Callable[[ReadyLine], None],
    lines: LimitedLines,
    tied: bool,
) -> None:
    stop = stop_when_asked(tied=tied)
    stopping, upkeep, ends = asyncio.Event(), None, ExitStack()
    broker = Broker(lake, settings)
    try:
        await broker.start()
        read: list[Metrics] = [broker.metrics]
        registry = None
        if plan.registry is not None:
            registry = await _registry(lake, plan, ends, read)
        at = plan.metrics and shown(plan.metrics)
        metrics = ends.enter_context(metrics_served(at, lake, *read, why_not_ready=_problem(broker)))
        lines.fields["broker"] = str(broker.id)
        # What is there now stays: a collection of garbage need not look at it again and again.
        gc.collect()
        gc.freeze()
        addresses = {name: shown(address) for name, address in broker.addresses.items()}
        first, *others = addresses.values()
        told = addresses if others or "PLAINTEXT" not in addresses else {}
        line = ReadyLine(broker.id, first, lake.uri, metrics, told, registry, plan.maintain)
        where = ",".join(f"{name}://{address}" for name, address in told.items()) or first
        logger.info("Broker started: listener=%s lake=%s rack=%s", where, line.lake, settings.rack or "-")
        if (follows := lake.follows()) is not None:
            what = "it serves readers, and refuses records, members of groups and commits until a promotion"
            logger.info("The lake follows %s: %s ('tidelog mirror promote')", follows.source, what)
        ready(line)
        if plan.maintain and not tied:  # else the process that started this one sees to it
            upkeep = asyncio.create_task(KeptProcess(plan, stopping).keep())
        reason = await stop
        logger.info("Broker stops: %s; draining %d connections", reason, len(broker.connections))
    finally:
        stopping.set()
        await asyncio.to_thread(ends.close)
        await broker.close()
        if upkeep is not None:
            await upkeep
        logger.info("Broker stopped")


def _problem(broker: Broker) -> Problem:
    """Why clients should not be sent to the broker now; None while they may."""
    return lambda: "The broker stops." if broker.connections.is_draining else None


async def _registry(lake: Lake, plan: BrokerPlan, ends: ExitStack, metrics: list[Metrics]) -> str:
    """Serve schemas beside the broker, in a thread with a loop of its own, until `ends`; the registry's URL.

    Its metrics are added to `metrics`.
    """
    from tidelog.cli.serving.registry_serving import new_registry

    assert plan.registry is not None  # the caller looks
    given = given_by_file(plan.config, plan.config_path) | given_by_environment(os.environ)
    hosts = (host for host, _ in (*plan.listeners.values(), *plan.advertised.values()))
    names = (*plan.registry_names, *hosts)
    server = await asyncio.to_thread(partial(new_registry, lake, plan.registry, given, host_names=names))
    server.start()
    ends.callback(server.stop)
    metrics.append(server.metrics)
    return server.url
