"""Streams groups under many seeds: no two members run one task, and all is run in the end.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from sim_suite import suite
from streams_sim_run import run_streams

HAPPENS = ("told", "lost", "left", "evicted", "refused", "frozen", "woke", "moved", "topics", "late", "delayed")

globals().update(suite(run_streams, "streams_sim_run.py", 40, HAPPENS))
