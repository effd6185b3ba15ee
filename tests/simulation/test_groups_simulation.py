"""Groups under many seeds: whatever goes wrong, a partition has one owner, nothing is skipped, and the group heals.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from groups_sim_run import run_group
from sim_suite import suite

HAPPENS = ("evicted", "frozen", "killed", "left", "lost")
RARE = {30: ("failed", "commit refused: UnknownMemberError")}

globals().update(suite(run_group, "groups_sim_run.py", 15, HAPPENS, RARE))
