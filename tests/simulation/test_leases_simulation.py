"""Leases under many seeds: none is lost while its process lives and its store answers, and each is taken in the end.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

import os
from collections import Counter

import pytest
from leases_sim_run import LeasesReport, run_leases
from sim_running import how_to_repeat

SEEDS = int(os.environ.get("TIDELOG_SIM_SEEDS", "30"))
# What thirty seeds can't do without, or they would prove little.
HAPPENS = ("taken", "refused", "lost", "held", "elected", "frozen", "killed", "hung", "said late", "said failed")

reports: dict[int, LeasesReport] = {}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_invariant_holds(seed: int) -> None:
    reports[seed] = report = run_leases(seed)
    found = "\n".join(report.problems)
    assert not found, f"{found}\n\nRepeat it: {how_to_repeat('leases_sim_run.py', seed)}"


def test_things_did_go_wrong() -> None:
    if len(reports) < 30:
        pytest.skip("fewer seeds than it takes")
    counts = sum((report.history.counts for report in reports.values()), Counter[str]())
    assert not [what for what in HAPPENS if not counts[what]]


def test_the_same_seed_gives_the_same_run() -> None:
    one, two = run_leases(3), run_leases(3)
    assert one.digest == two.digest
    assert one.digest != run_leases(4).digest
