"""Transactions and maintenance under many seeds: whatever goes wrong, each is there whole and once, or not at all.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from sim_suite import suite
from transactions_sim_run import run_transactions

HAPPENS = (
    "aborted",
    "aborted by the operator",
    "committed",
    "fenced",
    "frozen",
    "killed",
    "maintained",
)

globals().update(suite(run_transactions, "transactions_sim_run.py", 12, HAPPENS, {25: ("commit again",)}))
