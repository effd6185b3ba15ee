"""`make bench`: measures the README's table on this machine.

Every case runs in a process of its own, one after another. BENCH_ARGS:
  --only CASE      one case (may be repeated)
  --quick          small sizes, a minute or two; for a look, not for the README
  --readme         measure nothing: write the README's table from the newest whole results
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import report
from figures import Row
from plan import Plan

CASES = ("append", "processes", "sink", "source", "latency", "memory")


def main() -> int:
    """Run the cases; the exit code is 1 when one falls short, 2 when one fails."""
    arguments = _parse()
    if arguments.readme:
        print(report.keep_and_write_readme())
        return 0
    if arguments.case:
        rows = importlib.import_module(arguments.case).run(Plan(Path(arguments.work), arguments.quick))
        Path(arguments.out).write_text(json.dumps([row.as_json() for row in rows]), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-", dir=arguments.work) as work:
        return _run_all(arguments.only or list(CASES), Path(work), arguments.quick)


def _run_all(cases: list[str], work: Path, quick: bool) -> int:
    facts = machine.describe(work)
    rows: list[Row] = []
    failed: list[str] = []
    took: dict[str, float] = {}
    for case in cases:
        print(f"{case} ...", flush=True)
        began = time.perf_counter()
        found = _run_case(case, work, quick)
        took[case] = round(time.perf_counter() - began, 1)
        if found is None:
            failed.append(case)
        rows.extend(found or [])
    whole = not quick and not failed and cases == list(CASES)
    report.show(rows, facts)
    path = report.save("bench", rows, facts, {"whole": whole, "quick": quick, "seconds": took})
    print(f"{sum(took.values()):.0f} s; all figures: {path.relative_to(report.ROOT)}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 2
    return 0 if all(row.ok for row in rows) else 1


def _run_case(case: str, work: Path, quick: bool) -> list[Row] | None:
    out, log = work / f"{case}.json", report.FRESH / f"{case}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--case", case, "--work", str(work), "--out", str(out)]
    # Spark's Python workers must be this Python; its scratch space goes away with ours.
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(work / "spark"),
    }
    with log.open("w", encoding="utf-8") as told:
        run = subprocess.run(
            [*command, *(["--quick"] if quick else [])],
            cwd=work,
            env=environment,
            stdout=told,
            stderr=told,
            check=False,
        )
    if run.returncode:
        print(log.read_text(encoding="utf-8")[-4000:], file=sys.stderr)
        return None
    return [Row(**row) for row in json.loads(out.read_text(encoding="utf-8"))]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure tidelog's speed on this machine.")
    parser.add_argument("--only", action="append", choices=CASES, help="one case; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--readme", action="store_true", help="write the README's table from the newest whole results")
    parser.add_argument("--work", help="the folder to work in, on the disk to measure (default: the system's own)")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
