"""Transactions and maintenance under many seeds: whatever goes wrong, each is there whole and once, or not at all.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

import os
from collections import Counter

import pytest
from sim_running import how_to_repeat
from transactions_sim_run import TransactionsReport, run_transactions

SEEDS = int(os.environ.get("TIDELOG_SIM_SEEDS", "25"))
# What twenty-five seeds can't do without, or they would prove little.
HAPPENS = (
    "aborted",
    "aborted by the operator",
    "commit again",
    "committed",
    "fenced",
    "frozen",
    "killed",
    "maintained",
)

reports: dict[int, TransactionsReport] = {}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_invariant_holds(seed: int) -> None:
    reports[seed] = report = run_transactions(seed)
    found = "\n".join(report.problems)
    assert not found, f"{found}\n\nRepeat it: {how_to_repeat('transactions_sim_run.py', seed)}"


def test_things_did_go_wrong() -> None:
    if len(reports) < 25:
        pytest.skip("fewer seeds than it takes")
    counts = sum((report.history.counts for report in reports.values()), Counter[str]())
    assert not [what for what in HAPPENS if not counts[what]]


def test_the_same_seed_gives_the_same_run() -> None:
    one, two = run_transactions(3), run_transactions(3)
    assert one.digest == two.digest
    assert one.digest != run_transactions(4).digest
