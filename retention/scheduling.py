"""Running a job again and again: how an interval is written, and the loop, which is APScheduler's."""

import logging
import re
import threading
from collections.abc import Callable
from datetime import UTC

from apscheduler.executors.debug import DebugExecutor
from apscheduler.schedulers.blocking import BlockingScheduler

_INTERVAL = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|min|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_LONGEST_S = 366 * 86_400.0


def parse_interval(text: str) -> float:
    """An interval in seconds: "30s", "5m", "1.5h", "1d". Raises ValueError, which says what it may be.

    >>> parse_interval("5m")
    300.0
    """
    found = _INTERVAL.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError(
            f"{text!r} is no interval: write a number above 0 and a unit (s, m, h, d), up to 366 days, as in 30s or 5m."
        )
    return seconds


def run_every(interval_s: float, job: Callable[[], None]) -> None:
    """Run `job` at once, and then every `interval_s` seconds, in this thread, until it raises; that is raised on.

    A run that takes longer than the interval is never joined by a second one: the next begins when its turn comes.
    """
    job()
    # The scheduler tells each run as it begins and ends; what a run did, the job itself says.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = BlockingScheduler(timezone=UTC, executors={"default": DebugExecutor()})
    raised: list[BaseException] = []

    def once() -> None:
        try:
            job()
        except BaseException as e:  # the scheduler would note it and go on
            raised.append(e)
            # From another thread, for it waits until the scheduler has done with this run.
            threading.Thread(target=scheduler.shutdown, kwargs={"wait": False}, name="tidelog-every").start()

    scheduler.add_job(once, "interval", seconds=interval_s, max_instances=1, coalesce=True, misfire_grace_time=None)
    scheduler.start()
    for error in raised:
        raise error
