"""Leases under many seeds: none is lost while its process lives and its store answers, and each is taken in the end.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from leases_sim_run import run_leases
from sim_suite import suite

HAPPENS = ("taken", "refused", "lost", "held", "elected", "frozen", "killed", "hung", "said late", "said failed")

globals().update(suite(run_leases, "leases_sim_run.py", 30, HAPPENS))
