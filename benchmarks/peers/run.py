"""`make bench-peers`: tidelog, Kafka and plain Delta side by side on this machine. BENCH_ARGS:

--only CASE      one case (may be repeated)
--quick          small sizes, a few minutes; for a look, not for the README
--work FOLDER    where to work, on the disk to measure (default: the system's own place for temporary files)
--readme         measure nothing: keep the newest whole results, their page and plots, and write the README's block
--compare OLD NEW
                 measure nothing: compare two results files; the exit code is 1 when tidelog became worse
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import broker  # noqa: E402 - found by the path above, as all that follow
import compare  # noqa: E402
import jars  # noqa: E402
import machine  # noqa: E402
import publish  # noqa: E402
import report  # noqa: E402
import workspace  # noqa: E402
from demands import DEMANDS  # noqa: E402
from measures import Measure, judge  # noqa: E402
from results import Results  # noqa: E402

CASES = tuple(sorted(path.stem.removeprefix("case_") for path in HERE.glob("case_*.py")))
FREE_GB = 15
WHOLE_S, CASE_S = 1500.0, 420.0


def main() -> int:
    """Run the cases; the exit code is 1 when a demand is not met, 2 when a case fails."""
    parser = argparse.ArgumentParser(description="Measure tidelog beside Kafka and plain Delta on this machine.")
    parser.add_argument("--only", action="append", choices=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--work", help="the folder to work in, on the disk to measure (default: the system's own)")
    parser.add_argument("--readme", action="store_true", help="write the README's block from the newest whole results")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="compare two results files")
    arguments = parser.parse_args()
    if arguments.readme:
        print(publish.keep_and_write_readme())
        return 0
    if arguments.compare:
        return compare.main(*arguments.compare)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        jars.fetched(jars.BROKER)
        jars.fetched(jars.CONNECTOR)
        with workspace.own(arguments.work) as work:
            workspace.require_free(work, FREE_GB)
            return _measure(arguments.only or CASES, work, quick=arguments.quick, whole=not arguments.only)
    except (jars.FetchError, workspace.SpaceError) as error:
        print(error, file=sys.stderr)
        return 2


def _measure(cases: Sequence[str], work: Path, *, quick: bool, whole: bool) -> int:
    facts = machine.describe(work)
    facts["versions"] |= {
        "kafka": jars.KAFKA,
        "kafka-clients of the connector": jars.CONNECTOR_CLIENTS,
        "confluent-kafka": version("confluent-kafka"),
    }
    began = time.monotonic()
    measures: list[Measure] = []
    failed: list[str] = []
    seconds: dict[str, float] = {}
    for case in cases:
        print(f"{case} ...", flush=True)
        started = time.monotonic()
        found = _run(case, work, quick=quick, limit_s=min(CASE_S, WHOLE_S - (started - began)))
        seconds[case] = round(time.monotonic() - started, 1)
        print(f"{case}: {seconds[case]:.0f} s", flush=True)
        measures.extend(found or [])
        if found is None:
            failed.append(case)
    judged = judge(DEMANDS, measures)
    settings = {"whole": whole and not quick and not failed, "quick": quick, "seconds": seconds, "failed": failed}
    path = report.FRESH / ("peers.json" if settings["whole"] else "peers-partial.json")
    publish.after_run(Results.of(measures, judged, facts, settings), path)
    print(f"{sum(seconds.values()):.0f} s; all figures: {path.relative_to(report.ROOT)}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 2
    return 0 if all(one["ok"] for one in judged) else 1


def _run(case: str, work: Path, *, quick: bool, limit_s: float) -> list[Measure] | None:
    """The case's measures; None when it failed, and then the end of its output is on stderr."""
    folder, out, log = work / case, work / f"{case}.json", report.FRESH / f"peers-{case}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    (folder / "work").mkdir(parents=True)
    try:
        if limit_s <= 0:
            raise broker.BrokerError(f"The whole run's time ({WHOLE_S:.0f} s) is over.")
        with broker.running(folder / "broker") as kafka:
            arguments = [str(out), str(folder / "work"), kafka.address, str(kafka.logs), "quick" if quick else "whole"]
            told = _apart([str(HERE / "case.py"), f"case_{case}", *arguments], folder, log, limit_s)
    except broker.BrokerError as error:
        told = str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if told:
        print(told, file=sys.stderr)
        return None
    return [Measure.from_json(one) for one in json.loads(out.read_text(encoding="utf-8"))]


def _apart(arguments: Sequence[str], folder: Path, log: Path, limit_s: float) -> str:
    """Run Python on its own; what went wrong, or "" when nothing did."""
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
    }
    with log.open("wb") as output:
        leash = subprocess.Popen(
            [sys.executable, str(HERE / "leash.py"), sys.executable, *arguments],
            stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True,
            cwd=folder / "work", env=environment,
        )  # fmt: skip
        try:
            # Waiting must not close the pipe: its end is what stops the case.
            code = leash.wait(limit_s)
            why = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            why = f"stopped after {limit_s:.0f} s, its limit"
        finally:
            leash.communicate()
    return log.read_text(encoding="utf-8", errors="replace")[-4000:] + why if why else ""


if __name__ == "__main__":
    sys.exit(main())
