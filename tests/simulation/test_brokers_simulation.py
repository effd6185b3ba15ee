"""Brokers under many seeds: whatever goes wrong, nothing that was acknowledged is lost, comes twice or out of order.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

import os
from collections import Counter

import pytest
from brokers_sim_run import BrokersReport, run_brokers
from sim_running import how_to_repeat

SEEDS = int(os.environ.get("TIDELOG_SIM_SEEDS", "40"))
# What forty seeds can't do without, or they would prove little; and what a hundred can't.
HAPPENS = (
    "aborted", "committed", "fenced",
    "broker draining", "broker gone", "evicted", "fetch error 6", "fetch error 74", "frozen", "group error 16",
    "handed over: committed", "handed over: refused", "handed over: unknown", "killed",
    "left by itself", "produce error 6", "produce unanswered",
)  # fmt: skip
RARE = ("group error 25",)

reports: dict[int, BrokersReport] = {}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_invariant_holds(seed: int) -> None:
    reports[seed] = report = run_brokers(seed)
    found = "\n".join(report.problems)
    assert not found, f"{found}\n\nRepeat it: {how_to_repeat('brokers_sim_run.py', seed)}"


def test_things_did_go_wrong() -> None:
    if len(reports) < 40:
        pytest.skip("fewer seeds than it takes")
    counts = sum((report.counts for report in reports.values()), Counter[str]())
    happens = (*HAPPENS, *(RARE if len(reports) >= 100 else ()))
    assert not [what for what in happens if not counts[what]]


def test_the_same_seed_gives_the_same_run() -> None:
    one, two = run_brokers(3), run_brokers(3)
    assert one.digest == two.digest
    assert one.digest != run_brokers(4).digest
