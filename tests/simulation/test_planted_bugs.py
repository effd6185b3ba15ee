"""Each planted bug is found, so the simulation can be believed when it finds nothing."""

import pytest
from sim_bugs import BUGS
from sim_run import run

ENOUGH = 1_000


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    for seed in range(ENOUGH):
        if run(seed, BUGS[name]).problems:
            return
    pytest.fail(f"{ENOUGH} seeds did not find that the code {name.replace('_', ' ')}")
