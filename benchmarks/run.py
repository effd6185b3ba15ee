"""`make bench`: measures the tables of docs/speed.md on this machine. BENCH_ARGS:

--only CASE      one case (may be repeated)
--quick          small sizes, a few minutes; for a look, not for the docs
--docs           measure nothing: keep the newest whole results, with what --only measured again since, and write the
                 table of docs/speed.md from them
"""

import argparse
import sys
import tempfile
from pathlib import Path

import cases
import report
from plan import Plan

CASES = (
    "append", "four_syncs", "processes", "commits", "produce", "group_commit", "idempotence", "transactions", "consume",
    "clients_latency", "idle", "rebalance", "group_epochs", "sink", "source", "latency", "routing", "memory",
    "maintenance", "compaction", "object_store", "broker_ack", "broker_many", "broker_cost", "broker_processes",
    "broker_memory", "broker_idle", "broker_death", "broker_quotas", "typed_topics", "serializers", "registry_columns",
    "registry", "typed_sql", "mirror", "branches", "rewinds", "postgres_changes", "console", "scrape",
)  # fmt: skip


def main() -> int:
    """Run the cases; the exit code is 1 when one falls short, 2 when one fails."""
    parser = argparse.ArgumentParser(description="Measure tidelog's speed on this machine.")
    parser.add_argument("--only", action="append", choices=CASES, help="one case; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--docs", action="store_true", help="write docs/speed.md's table from the newest whole results")
    parser.add_argument("--work", help="the folder to work in, on the disk to measure (default: the system's own)")
    arguments = parser.parse_args()
    if arguments.docs:
        print(report.keep_and_write_docs())
        return 0
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-", dir=arguments.work) as work:
        whole = not arguments.quick and not arguments.only
        return cases.measure("bench", arguments.only or CASES, Plan(Path(work), arguments.quick), whole=whole)


if __name__ == "__main__":
    sys.exit(main())
