"""Cuts and rewinds under many seeds: a transaction is whole in a cut or not at all, whatever goes wrong meanwhile.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from cuts_sim_run import run_cuts
from sim_suite import suite

HAPPENS = ("committed", "cut", "killed", "rewound")
RARE = ("appended amid a rewind", "cut deleted", "cut kept", "cut refused", "frozen", "maintained")

globals().update(suite(run_cuts, "cuts_sim_run.py", 4, HAPPENS, {25: RARE}))
