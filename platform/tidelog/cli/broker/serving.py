"""One broker in this process: started, served until it is asked to stop, drained."""

import asyncio
import ctypes
import gc
import logging
import os
import resource
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.broker import Broker
from tidelog.broker.records.reader import READER
from tidelog.cli.broker.lake_keys import take_lake_keys, tell_of_file
from tidelog.cli.broker.planning import planned_settings
from tidelog.cli.broker.upkeep import maintenance_of
from tidelog.cli.serving.configuration import given_by_environment, given_by_file
from tidelog.cli.serving.kafka_file import take
from tidelog.cli.serving.plan import BrokerPlan, ReadyLine
from tidelog.log.lake import Lake
from tidelog.operations.metric_families import MetricFamily
from tidelog.server.base.listeners import shown
from tidelog.server.process.children import KeptProcess, end, keep, spawning
from tidelog.server.process.logs import LimitedLines
from tidelog.server.process.serving import Ready, Service, serve
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    from tidelog.server.serving import HttpServer
    from tidelog.server.telemetry.tracing import Tracing

logger = logging.getLogger(__name__)

R = TypeVar("R")

# Of glibc's malloc.h.
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
# Blocks up to this size come from what was freed, and so much of that is kept. The first is the most that glibc takes.
_KEPT_BLOCK_BYTES, _KEPT_BYTES = 32 << 20, 64 << 20
# For how long a thread may keep the others from running Python: a checkpoint's, or one that reads batches, would else
# hold up each step of the loop by Python's usual 5 ms.
_SWITCH_S = 0.0005


def serve_broker(
    plan: BrokerPlan, say: Callable[[Ready], None] | None = None, stop: Stop | None = None, *, alone: bool = False
) -> None:
    """Run a broker until SIGTERM or SIGINT, or until `stop`, and drain it. `say`, `stop`: as `serve` has them.

    `alone`: no other process sees to the lake's maintenance. Raises `UsageProblemError`, `ListenerError`, and what
    opening the lake raises.
    """
    settings = planned_settings(plan, os.environ)
    _allow_many_sockets()
    _share_freed_memory()
    sys.setswitchinterval(_SWITCH_S)
    serve(
        plan,
        lambda: Lake(plan.lake, options=plan.store),
        lambda lake, lines: BrokerService(plan, settings, lake, lines, alone=alone),
        metrics=plan.metrics and shown(plan.metrics),
        otlp=plan.otlp,
        say=say,
        stop=stop,
        broker="-",
    )


def _share_freed_memory() -> None:
    """Have all threads share what each has freed: else glibc keeps it for each, and large batches add up.

    Some of it is kept for the next requests, which else pay a page fault for every 4 KiB.
    """
    with suppress(OSError, AttributeError):  # another C library has no such setting
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, _KEPT_BLOCK_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def _allow_many_sockets() -> None:
    """Raise this process's limit of open files to what the system lets it have: a socket is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class LoopThread:
    """An event loop that runs in a thread of its own until `close`: the main thread has the signals."""

    def __init__(self, name: str) -> None:
        self._loop = _new_loop()
        self._closed = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """What a coroutine gives, in the loop. Raises what it raises."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """End the loop and the thread."""
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        await self._closed.wait()


def _new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


class BrokerService(Service):
    """A broker over a lake, and the registry of its plan; and maintenance, where it is `alone`.

    Raises `TlsError`, and what giving the lake the keys of the plan's file raises.
    """

    named = "broker"

    def __init__(
        self, plan: BrokerPlan, settings: BrokerSettings, lake: Lake, lines: LimitedLines, *, alone: bool
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._lake = lake
        self._lines = lines
        self._registry: HttpServer | None = None
        self._tracing: Tracing | None = None
        self._kept: list[KeptProcess] = [maintenance_of(plan, spawning())] if alone and plan.maintain else []
        taken = take(plan.config, plan.config_path)
        if alone:
            tell_of_file(taken, plan.config_path)
        take_lake_keys(lake, taken.lake)
        self._loop = LoopThread("tidelog-broker")
        try:
            self._broker = self._loop.run(self._new_broker())
        except BaseException:
            self._loop.close()
            raise

    async def _new_broker(self) -> Broker:
        return Broker(self._lake, self._settings)

    def trace(self, tracing: "Tracing") -> None:
        """Requests to the broker become traces, and those to its registry."""
        self._tracing = tracing
        self._broker.trace(tracing)

    def start(self) -> None:
        """Have clients connect."""
        self._loop.run(self._broker.start())
        if self._plan.registry is not None:
            self._registry = self._new_registry(self._plan.registry)
            if self._tracing is not None:
                self._registry.trace(self._tracing)
            self._registry.start()
        self._lines.fields["broker"] = str(self._broker.id)
        # What is there now stays: a collection of garbage need not look at it again and again.
        gc.collect()
        gc.freeze()

    def _new_registry(self, address: tuple[str, int]) -> "HttpServer":
        """A registry beside the broker, with a thread and a loop of its own."""
        from tidelog.cli.serving.registry_serving import new_registry

        plan = self._plan
        given = given_by_file(plan.config, plan.config_path) | given_by_environment(os.environ)
        hosts = (host for host, _ in (*plan.listeners.values(), *plan.advertised.values()))
        return new_registry(self._lake, address, given, host_names=(*plan.registry_names, *hosts))

    def ready(self, metrics: str | None) -> Ready:
        """Where clients connect, which the log says, too."""
        broker, lake = self._broker, self._lake
        addresses = {name: shown(address) for name, address in broker.addresses.items()}
        first, *others = addresses.values()
        told = addresses if others or "PLAINTEXT" not in addresses else {}
        registry = None if self._registry is None else self._registry.url
        line = ReadyLine(broker.id, first, lake.uri, metrics, told, registry, self._plan.maintain)
        where = ",".join(f"{name}://{address}" for name, address in told.items()) or first
        logger.info("Broker started: listener=%s lake=%s rack=%s", where, line.lake, self._settings.rack or "-")
        logger.info("Record batches are read in %s", READER)
        if (follows := lake.follows()) is not None:
            what = "it serves readers, and refuses records, members of groups and commits until a promotion"
            logger.info("The lake follows %s: %s ('tidelog mirror promote')", follows.source, what)
        return line.ready()

    def run(self, stop: Stop) -> None:
        """Serve, and have the lake maintained beside, until `stop`."""
        keep(self._kept, stop)
        logger.info("Broker stops: %s; draining %d connections", stop.reason, len(self._broker.connections))

    def stop(self) -> None:
        """Send clients to other brokers, answer what was asked, and be gone."""
        with ExitStack() as ends:
            ends.callback(end, self._kept)
            ends.callback(self._loop.close)
            ends.callback(lambda: self._loop.run(self._broker.close()))
            if self._registry is not None:
                self._registry.stop()
        logger.info("Broker stopped")

    def metrics(self) -> Iterable[MetricFamily]:
        """The broker's, its lake's and its registry's."""
        return chain(self._broker.metrics(), () if self._registry is None else self._registry.metrics())

    def sent_metrics(self) -> Iterable[MetricFamily]:
        """The same, of which the lake's are the controller's to send: all brokers have them."""
        own = self._broker.metrics() if self._broker.is_controller else self._broker.own_metrics()
        return chain(own, () if self._registry is None else self._registry.metrics())

    def why_not_ready(self) -> str | None:
        """Why clients should not be sent to the broker now."""
        return "The broker stops." if self._broker.connections.is_draining else None
