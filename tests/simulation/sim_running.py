"""Running a simulation: the product's threads on the scheduler, a bug planted, and seeds repeated from a terminal."""

import argparse
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import ModuleType
from typing import Protocol, TypeVar
from unittest.mock import patch

from sim_scheduler import Scheduler, SimThreading

Planted = Callable[[], AbstractContextManager[object]]


class Report(Protocol):
    """The result of a run. `problems` is empty when all invariants held; `digest` is of all that happened."""

    problems: list[str]
    digest: str


R = TypeVar("R", bound=Report)


def how_to_repeat(program: str, seed: int, bug: str | None = None) -> str:
    """The command that repeats a seed, from the repository's root: a seed is the same run in every process."""
    planted = "" if bug is None else f" --bug {bug}"
    return f"PYTHONPATH=tests:tests/reliability .venv/bin/python tests/simulation/{program} {seed} --trace{planted}"


@contextmanager
def staged(scheduler: Scheduler, modules: Iterable[ModuleType], planted: Planted) -> Iterator[None]:
    """Run with the locks of these modules on the scheduler, and a planted bug; ends what is left of the run."""
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        for module in modules:
            stack.enter_context(patch.object(module, "threading", SimThreading(scheduler)))
        stack.enter_context(planted())
        try:
            yield
        finally:
            scheduler.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Upkeep logs what it will try again; that is no news here."""
    logger = logging.getLogger("tidelog.log")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def repeat(
    usage: str | None,
    run: Callable[[int, Planted, list[str] | None], R],
    bugs: Mapping[str, Planted],
    counted: Callable[[R], Mapping[str, int]],
) -> int:
    """The program: run seeds from a first one on, and say how fast. The exit code is 1 when one has problems."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--bug", help="plant this bug (see sim_bugs.py, groups_sim_bugs.py)")
    parser.add_argument("--digests", action="store_true", help="print the digest of each run, and nothing else")
    given = parser.parse_args()
    planted: Planted = bugs[given.bug] if given.bug else nullcontext
    bad, counts = 0, Counter[str]()
    began_s = time.process_time()
    for seed in range(given.seed, given.seed + given.runs):
        trace: list[str] | None = [] if given.trace else None
        report = run(seed, planted, trace)
        counts.update(counted(report))
        if given.digests:
            print(report.digest)
            continue
        for line in [*(trace or []), *report.problems]:
            print(line if given.trace else f"seed {seed}: {line}")
        bad += bool(report.problems)
    if given.digests:
        return 0
    per_hour = 3600 * given.runs / (time.process_time() - began_s)
    print(f"{given.runs} runs, {bad} with problems; {dict(sorted(counts.items()))}")
    print(f"{per_hour:,.0f} seeds an hour on one core")
    return 1 if bad else 0
