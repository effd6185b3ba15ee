"""Comparisons in Spark processes of their own.

What else a JVM has run changes how it compiles the code that two arms share, by several percent and for as long as it
lives. So no other arm runs beside the two, and ratios near what they must be come from several processes.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from figures import Row, interleaved, percentile, speed_ratio, summary
from plan import Plan

# {arm: a function that runs it once and returns its seconds}
Arms = Mapping[str, Callable[[], float]]


def compared(
    file: str, plan: Plan, what: str, must: float, *, arm: str, against: str, processes: int, records: int | None = None
) -> Row:
    """The row of an arm that moves records, against another, timed in several processes, one after another.

    `file` is a case whose `main` is `answer`, which makes the two. `records`: how many they are, the plan's unless
    given.
    """
    times: dict[str, list[float]] = {arm: [], against: []}
    for _ in range(processes):
        command = [sys.executable, file, arm, against, str(plan.work), str(plan.quick)]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for name, taken in json.loads(out.splitlines()[-1]).items():
            times[name].extend(taken)
    ratio = speed_ratio(times, arm, against)
    records = records or plan.records
    rate = records / percentile(times[arm], 50) / 1e6
    figures = {"records": records, "seconds": {name: summary(taken) for name, taken in times.items()}}
    return Row(what, f"≥ {must}x", f"{ratio:.2f}x ({rate:.1f} M records/s)", ratio >= must, figures)


def answer(arms: Callable[[Plan, str, str], Arms]) -> None:
    """Time the two arms that this process was started for, and tell `compared`."""
    arm, against, work, quick = sys.argv[1:]
    plan = Plan(Path(work), quick == "True")
    print(json.dumps(interleaved(arms(plan, arm, against), plan.rounds, warmups=2)))
