"""Chaos on real processes: `make reliability`, or

python tests/reliability/chaos.py --seed 7               # ten minutes; a seed gives the order of faults and victims
python tests/reliability/chaos.py --seconds 30 --rounds 1 --few
python tests/reliability/chaos.py --record               # and put the run's figures into RELIABILITY.md
python tests/reliability/chaos.py --seconds 600 --kill-brokers 10    # one broker is killed every 10 s
python tests/reliability/chaos.py --seconds 120 --drain-brokers 10   # a rolling restart
python tests/reliability/chaos.py --branch-every 10 --pauses 8 --batches 0.2   # a branch every 10 s, each is judged
python tests/reliability/chaos.py --store replicas --brokers --minutes 30   # the nodes of a replicated store suffer
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

# It runs as a script: what tests share is beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chaos_nodes import faulty_nodes
from chaos_page import RECORDED, write_page
from chaos_plan import BESIDE_BROKERS, FEW_WORKERS, KAFKA_WORKERS, QUERY, WORKERS, Pace, Place
from chaos_run import Chaos, Wanted

RESULT = Path("artifacts/reliability.json")


def main() -> int:
    """Run once; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="what goes wrong when; by default another each time")
    parser.add_argument("--seconds", type=float, default=480.0, help="of faults; then all must come to rest")
    parser.add_argument("--minutes", type=float, default=None, help="instead of --seconds")
    parser.add_argument("--store", choices=["disk", "replicas"], default="disk", help="where the lake is")
    parser.add_argument("--every", type=float, default=60.0, metavar="S", help="with replicas: seconds between faults")
    parser.add_argument("--rounds", type=int, default=5, help="of each fault")
    parser.add_argument("--records", type=int, default=100_000, help="at least, in all topics")
    parser.add_argument("--few", action="store_true", help="one worker of each role")
    parser.add_argument("--no-spark", action="store_true", help="without the Spark query")
    parser.add_argument("--brokers", action="store_true", help="with brokers and Kafka's clients")
    parser.add_argument("--kill-brokers", type=float, default=0.0, metavar="S", help="only that: one every S seconds")
    parser.add_argument("--drain-brokers", type=float, default=0.0, metavar="S", help="likewise, a rolling restart")
    parser.add_argument(
        "--branch-every", type=float, default=0.0, metavar="S", help="make a branch every S seconds, and judge it"
    )
    parser.add_argument("--pauses", type=float, default=1.0, metavar="N", help="producers pause N times as long")
    parser.add_argument("--batches", type=float, default=1.0, metavar="N", help="their batches are N times as large")
    parser.add_argument("--keep", type=Path, help="a new folder to keep the lake and the journals in")
    parser.add_argument("--record", action="store_true", help="put the run's figures into RELIABILITY.md")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(3), "big")
    folder = given.keep or Path(tempfile.mkdtemp(prefix="tidelog-chaos-"))
    print(f"seed {seed}, in {folder}; again: python tests/reliability/chaos.py --seed {seed}", flush=True)
    seconds = given.seconds if given.minutes is None else given.minutes * 60
    ends = (given.kill_brokers, given.drain_brokers)
    wanted = Wanted(
        seed, seconds, given.rounds, given.records, *ends, given.branch_every, Pace(given.pauses, given.batches)
    )
    workers = (
        *(BESIDE_BROKERS if wanted.only_brokers_end else FEW_WORKERS if given.few else WORKERS),
        *(KAFKA_WORKERS if given.brokers or wanted.only_brokers_end else ()),
        *(() if given.no_spark or wanted.only_brokers_end else (QUERY,)),
    )
    with ExitStack() as stack:
        nodes = None
        if given.store == "replicas":
            nodes = stack.enter_context(faulty_nodes(folder.with_name(f"{folder.name}-store"), given.every))
        verdict = Chaos(Place(folder), workers, wanted, lambda text: print(text, flush=True), nodes).run()
    if verdict.counts["acknowledged"] < given.records:
        verdict.problems.append(f"{verdict.counts['acknowledged']} acknowledged records are fewer than wanted")
    text = json.dumps(verdict.to_json(), indent=2) + "\n"
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text)
    print(text)
    if given.record and not verdict.problems:
        RECORDED.write_text(text)
        write_page()
    if verdict.problems:
        print(f"{len(verdict.problems)} problems; the lake and the journals are in {folder}")
    elif given.keep is None:
        shutil.rmtree(folder)
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
