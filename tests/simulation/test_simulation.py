"""The true code under many seeds: whatever goes wrong, nothing acknowledged is lost, doubled or moved.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

from sim_run import run
from sim_suite import suite

HAPPENS = (
    *("append acked", "append refused", "append unknown", "outcome unknown", "interrupted", "topic gone"),
    *("repeat answered", "power lost", "stray"),
)

globals().update(suite(run, "sim_run.py", 25, HAPPENS, {80: ("repeat forgotten",)}))
