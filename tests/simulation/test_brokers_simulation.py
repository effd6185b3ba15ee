"""Brokers under many seeds: whatever goes wrong, nothing that was acknowledged is lost, comes twice or out of order.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from brokers_sim_run import run_brokers
from sim_suite import suite

HAPPENS = (
    "aborted", "committed", "fenced",
    "broker draining", "broker gone", "fetch error 74", "frozen", "handed over: committed",
    "killed", "left by itself", "more leaders", "produce unanswered", "staged ahead",
)  # fmt: skip
RARELY = (
    "evicted", "fetch error 6", "fewer leaders", "group error 16", "handed over: refused", "handed over: unknown",
    "produce error 6",
)  # fmt: skip
RARE = {40: RARELY, 100: ("group error 25",)}

globals().update(suite(run_brokers, "brokers_sim_run.py", 10, HAPPENS, RARE))
