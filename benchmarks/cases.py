"""Runs cases, each in a process of its own, one after another, and reports what they measured."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import machine
import report
from figures import Row
from leash import run_apart
from plan import Plan

_RUNNER = """
import importlib, json, pathlib, sys
here, case, work, quick, minutes, out = sys.argv[1:]
sys.path.insert(0, here)
from plan import Plan
rows = importlib.import_module(case).run(Plan(pathlib.Path(work), quick == "True", float(minutes)))
pathlib.Path(out).write_text(json.dumps([row.as_json() for row in rows]), encoding="utf-8")
"""


@dataclass
class _Done:
    rows: list[Row] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def measure(kind: str, cases: Sequence[str], plan: Plan, *, whole: bool) -> int:
    """Run the cases, print their table and save the results; the exit code is 1 when a row falls short, 2 on failure.

    `whole`: the results are fit for the docs.
    """
    facts = machine.describe(plan.work)
    done = _Done()
    for case in cases:
        print(f"{case} ...", flush=True)
        began = time.perf_counter()
        found = _run(case, plan)
        done.seconds[case] = round(time.perf_counter() - began, 1)
        done.rows.extend(replace(row, case=case) for row in found or [])
        if found is None:
            done.failed.append(case)
    report.show(done.rows, facts)
    settings = {
        "whole": whole,
        "failed": done.failed,
        "quick": plan.quick,
        "minutes": plan.minutes if kind == "soak" else None,
        "seconds": done.seconds,
    }
    path = report.save(kind, done.rows, facts, settings)
    print(f"{sum(done.seconds.values()):.0f} s; all figures: {path.relative_to(report.ROOT)}")
    if done.failed:
        print(f"failed: {', '.join(done.failed)}", file=sys.stderr)
        return 2
    return 0 if all(row.ok for row in done.rows) else 1


def _run(case: str, plan: Plan) -> list[Row] | None:
    """The case's rows; None when it failed, and then the end of its output is on stderr."""
    out = plan.work / f"{case}.json"
    here = str(Path(__file__).parent)
    arguments = ["-c", _RUNNER, here, case, str(plan.work), str(plan.quick), str(plan.minutes), str(out)]
    failure = run_apart(arguments, plan.work, report.FRESH / f"{case}.log", plan.work / "spark")
    if failure:
        print(failure, file=sys.stderr)
        return None
    return [Row(**row) for row in json.loads(out.read_text(encoding="utf-8"))]
