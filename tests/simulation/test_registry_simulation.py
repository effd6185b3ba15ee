"""Registries under many seeds: ids are unique and dense, nothing that was answered is lost, and all know the same.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

import os
from collections import Counter

import pytest
from registry_sim_run import RegistryReport, run_registries
from sim_running import how_to_repeat

SEEDS = int(os.environ.get("TIDELOG_SIM_SEEDS", "30"))
# What thirty seeds can't do without, or they would prove little.
HAPPENS = ("registered", "deleted", "looked", "maintained", "frozen", "killed", "refused")

reports: dict[int, RegistryReport] = {}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_invariant_holds(seed: int) -> None:
    reports[seed] = report = run_registries(seed)
    found = "\n".join(report.problems)
    assert not found, f"{found}\n\nRepeat it: {how_to_repeat('registry_sim_run.py', seed)}"


def test_things_did_go_wrong() -> None:
    if len(reports) < 30:
        pytest.skip("fewer seeds than it takes")
    counts = sum((report.history.counts for report in reports.values()), Counter[str]())
    assert not [what for what in HAPPENS if not counts[what]]


def test_the_same_seed_gives_the_same_run() -> None:
    one, two = run_registries(3), run_registries(3)
    assert one.digest == two.digest
    assert one.digest != run_registries(4).digest
