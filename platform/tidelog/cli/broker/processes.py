"""Brokers as processes of one machine, and maintenance beside them: started again when they die, stopped together."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from tidelog.cli.broker.lake_keys import tell_of_file
from tidelog.cli.broker.parent import stop_when_asked
from tidelog.cli.serving.kafka_file import take
from tidelog.cli.serving.plan import BrokerPlan, ReadyLine
from tidelog.log.base.backoff import Backoff
from tidelog.log.base.errors import TidelogError
from tidelog.server.base.listeners import parse_address
from tidelog.server.process.logs import logging_lines

logger = logging.getLogger(__name__)

# Between a broker's death and its restart: doubled with each death, until it has lived for a while.
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
_LIVED_S = 60.0
# A process that has not ended so long after SIGTERM is killed.
_KILLED_AFTER_S = 30.0


class StartFailedError(TidelogError):
    """A broker's process did not start; it has said why."""

    def __init__(self, code: int) -> None:
        super().__init__("A broker's process did not start, so none runs. Its message above says why.")
        self.code = code


def supervise(plans: list[BrokerPlan], ready: Callable[[ReadyLine], None]) -> None:
    """Run the brokers, one process each, until SIGTERM or SIGINT. Raises `StartFailedError`."""
    with logging_lines(plans[0].log_format, plans[0].log_level, broker="-"):
        tell_of_file(take(plans[0].config, plans[0].config_path), plans[0].config_path)
        asyncio.run(_supervise(plans, ready))


async def _supervise(plans: list[BrokerPlan], ready: Callable[[ReadyLine], None]) -> None:
    stop = asyncio.Event()
    stop_when_asked().add_done_callback(lambda _: stop.set())
    in_order = InOrder(len(plans), ready)
    children = [KeptProcess(plan, stop, in_order.of(number)) for number, plan in enumerate(plans)]
    if plans[0].id is None:
        # Each takes the lowest id that is free: one after the other, so that ids count up as ports do.
        for before, child in pairwise(children):
            child.begins_after(before)
    children += [KeptProcess(plan, stop) for plan in plans[:1] if plan.maintain]
    tasks = [asyncio.create_task(child.keep()) for child in children]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    stop.set()
    await asyncio.wait(tasks)
    for task in done:
        task.result()


class InOrder:
    """Passes ready lines on in the order of their processes; those of one that was started again at once."""

    def __init__(self, count: int, ready: Callable[[ReadyLine], None]) -> None:
        self._ready = ready
        self._lines: list[ReadyLine | None] = [None] * count
        self._told = 0

    def of(self, number: int) -> Callable[[ReadyLine], None]:
        """Takes the lines of one process."""

        def take(line: ReadyLine) -> None:
            if number < self._told:
                self._ready(line)
                return
            self._lines[number] = line
            while self._told < len(self._lines) and (first := self._lines[self._told]) is not None:
                self._told += 1
                self._ready(first)

        return take


class KeptProcess:
    """A process, and those that follow it when it dies: a broker, or without `ready` what maintains its lake."""

    def __init__(self, plan: BrokerPlan, stop: asyncio.Event, ready: Callable[[ReadyLine], None] | None = None) -> None:
        self._plan = plan
        self._ready = ready
        self._stop = stop
        self._started = ready is None
        self._what = "Maintenance" if ready is None else "Broker"
        self._is_up = asyncio.Event()
        self._after: KeptProcess | None = None

    def begins_after(self, other: "KeptProcess") -> None:
        """Begin once another one is up for the first time."""
        self._after = other

    async def keep(self) -> None:
        """Keep it running until `stop`. Raises `StartFailedError` when the first one does not start."""
        backoff, loop = Backoff(FIRST_WAIT_S, LONGEST_WAIT_S), asyncio.get_running_loop()
        if self._after is not None:
            await _first(self._after._is_up, self._stop)
        while not self._stop.is_set():
            began_s = loop.time()
            code = await self._run()
            if self._stop.is_set():
                return
            if not self._started:
                raise StartFailedError(code)
            if loop.time() - began_s > _LIVED_S:
                backoff.reset()
            wait_s = backoff.next_s()
            name = "-" if self._ready is None else self._plan.id
            logger.warning("%s died: id=%s exit=%d; it is started again in %g s", self._what, name, code, wait_s)
            await _passed(self._stop, wait_s)

    async def _run(self) -> int:
        """Run it once, until it ends or `stop`; its exit code."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"tidelog.cli.broker.{'upkeep' if self._ready is None else 'worker'}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches this process alone, which stops the others
        )
        if process.stdin is None or process.stdout is None:
            raise ValueError("pipes were asked for")
        process.stdin.write(self._plan.to_json())
        ended = asyncio.create_task(process.wait())
        stopped = asyncio.create_task(self._stop.wait())
        try:
            line = asyncio.create_task(process.stdout.readline())
            await asyncio.wait([line, stopped], return_when=asyncio.FIRST_COMPLETED)
            if line.done() and line.result():
                self._is_ready(ReadyLine.from_json(line.result()))
            await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
            line.cancel()
            if not ended.done():
                process.send_signal(signal.SIGTERM)
                await asyncio.wait([ended], timeout=_KILLED_AFTER_S)
                if not ended.done():
                    process.kill()
            return await ended
        finally:
            stopped.cancel()

    def _is_ready(self, line: ReadyLine) -> None:
        """Keep its id and its ports, which clients know now."""
        plan = self._plan
        known = line.listeners or dict.fromkeys(plan.listeners, line.listener)
        listeners = {
            name: (host, port if name in plan.advertised else parse_address(known[name])[1])
            for name, (host, port) in plan.listeners.items()
        }
        self._plan = replace(plan, id=line.id, listeners=listeners)
        self._started = True
        self._is_up.set()
        if self._ready is not None:
            self._ready(line)


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


async def _passed(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but no longer than until `stop`."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
