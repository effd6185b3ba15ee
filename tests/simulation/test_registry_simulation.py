"""Registries under many seeds: ids are unique and dense, nothing that was answered is lost, and all know the same.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from registry_sim_run import run_registries
from sim_suite import suite

HAPPENS = ("registered", "deleted", "looked", "maintained", "frozen", "killed", "refused")

globals().update(suite(run_registries, "registry_sim_run.py", 20, HAPPENS))
