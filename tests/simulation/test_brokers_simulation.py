"""Brokers under many seeds: whatever goes wrong, nothing that was acknowledged is lost, comes twice or out of order.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from brokers_sim_run import run_brokers
from sim_suite import suite

HAPPENS = (
    "aborted", "committed", "fenced",
    "broker draining", "broker gone", "evicted", "fetch error 6", "fetch error 74", "frozen", "group error 16",
    "handed over: committed", "handed over: refused", "handed over: unknown", "killed",
    "left by itself", "produce error 6", "produce unanswered",
)  # fmt: skip

globals().update(suite(run_brokers, "brokers_sim_run.py", 40, HAPPENS, {100: ("group error 25",)}))
