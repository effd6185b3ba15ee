"""Branches under many seeds: each is whole and green, with all that was acknowledged before, whichever process dies.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from branches_sim_run import run_branches
from sim_suite import suite

HAPPENS = (
    "branched",
    "committed",
    "frozen",
    "killed",
    "maintained",
    "refused in a branch",
    "went on",
)

globals().update(suite(run_branches, "branches_sim_run.py", 6, HAPPENS, {25: ("discarded", "wrote to a branch")}))
