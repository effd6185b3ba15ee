"""`make bench-peers`: tidelog, Kafka and plain Delta side by side on this machine. BENCH_ARGS:

--only CASE          one case (may be repeated)
--quick              small sizes, a few minutes; for a look, not for the docs
--minutes M          when to give up (default: 90)
--work FOLDER        where to work, on the disk to measure (default: the system's own place for temporary files)
--docs               measure nothing: keep the newest whole results, and write the tables of docs/speed.md and README.md
--compare OLD [NEW]  measure nothing: what regressed from one results file to another (default: the newest whole ones)
"""

import argparse
import json
import os
import shutil
import signal
import sys
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import broker  # noqa: E402 - found by the path above, as all that follow
import compare  # noqa: E402
import jars  # noqa: E402
import machine  # noqa: E402
import publish  # noqa: E402
import report  # noqa: E402
import workspace  # noqa: E402
from bench import notes_of  # noqa: E402
from demands import ALONE, CASES, DEMANDS  # noqa: E402
from leash import run_apart  # noqa: E402
from measures import Measure, judge  # noqa: E402
from results import KIND, Results  # noqa: E402
from runner import CaseError, run_all  # noqa: E402

FREE_GB, FREE_GB_QUICK = 15, 5


def main() -> int:
    """Run the cases; the exit code is 1 when a demand is not met or a figure regressed, 2 when a case fails."""
    arguments = _arguments()
    # As at the end of the block, what was started is stopped and the folder goes.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        if arguments.docs:
            print(publish.keep_and_write_docs())
            return 0
        if arguments.compare:
            old, new = (*arguments.compare, report.FRESH / f"{KIND}.json")[:2]
            return compare.main(old, new)
        return _measure(arguments)
    except (jars.FetchError, workspace.SpaceError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure tidelog beside Kafka and plain Delta on this machine.")
    parser.add_argument("--only", action="append", choices=CASES, help="one case; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--minutes", type=float, default=90.0, help="when to give up (default: 90)")
    parser.add_argument("--work", help="the folder to work in, on the disk to measure (default: the system's own)")
    parser.add_argument("--docs", action="store_true", help="write the docs from the newest whole results")
    parser.add_argument("--compare", nargs="+", type=Path, metavar="FILE", help="what regressed: OLD [NEW]")
    arguments = parser.parse_args()
    if arguments.compare and len(arguments.compare) > 2:
        parser.error("--compare takes an old results file and a new one")
    return arguments


def _measure(arguments: argparse.Namespace) -> int:
    for path in (jars.BROKER, jars.CONNECTOR):
        jars.fetched(path)
    with workspace.own(arguments.work) as work:
        workspace.require_free(work, FREE_GB_QUICK if arguments.quick else FREE_GB)
        facts = _facts(work)
        notes: dict[str, str] = {}
        run = partial(_apart, work, "quick" if arguments.quick else "whole", notes)
        outcome = run_all(arguments.only or CASES, run, arguments.minutes * 60)
    whole = not (arguments.only or arguments.quick)
    settings = {
        "whole": whole,
        "quick": arguments.quick,
        "seconds": outcome.seconds,
        "failed": outcome.failed,
        "notes": notes,
    }
    judged = judge(DEMANDS, outcome.measures, whole=not arguments.only)
    path = report.FRESH / (f"{KIND}.json" if whole else f"{KIND}-partial.json")
    if outcome.measures:
        publish.after_run(Results.of(outcome.measures, judged, facts, settings), path)
        print(f"{sum(outcome.seconds.values()):.0f} s; all figures: {path.relative_to(report.ROOT)}")
    if outcome.failed:
        print(f"failed: {', '.join(outcome.failed)}", file=sys.stderr)
    return outcome.exit_code(judged)


def _facts(work: Path) -> dict[str, Any]:
    facts = machine.describe(work)
    facts["versions"] |= {
        "kafka": jars.KAFKA,
        "kafka-clients of the connector": jars.CONNECTOR_CLIENTS,
        "confluent-kafka": version("confluent-kafka"),
    }
    return facts


def _apart(work: Path, size: str, notes: dict[str, str], case: str, limit_s: float) -> list[Measure]:
    """What a case measures, in a process, with a broker and in a folder of its own: none meets another's.

    What it notes beside goes into `notes`.
    """
    folder = work / case
    inside, out = folder / "work", folder / "measures.json"
    inside.mkdir(parents=True)
    os.sync()  # what the case before wrote is not written in this one's time
    try:
        started = nullcontext(broker.NONE) if case in ALONE else broker.running(folder / "broker")
        with started as kafka:
            handed = [f"case_{case}", str(out), str(inside), kafka.address, str(kafka.logs), size]
            log = report.FRESH / f"{KIND}-{case}.log"
            failure = run_apart([str(HERE / "case.py"), *handed], inside, log, folder / "spark", limit_s)
        if failure:
            raise CaseError(f"{failure}\n{broker.told(folder / 'broker')}")
        if notes_of(inside).exists():
            notes[case] = notes_of(inside).read_text(encoding="utf-8")
        return [Measure.from_json(one) for one in json.loads(out.read_text(encoding="utf-8"))]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
