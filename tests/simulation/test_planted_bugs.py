"""Each planted bug is found, so the simulations can be believed when they find nothing.

`make test` searches for those of each world that are found within a second; `make mutants`, which sets TIDELOG_MUTANTS,
for all.
"""

import os
import warnings

import pytest
from planted_bugs import FOUND_BY, LONG_SEARCHES, SIMULATIONS

# How many seeds may be run to find a bug.
ENOUGH = 300
EVERY = [(simulation, name) for simulation, (_, bugs) in SIMULATIONS.items() for name in bugs]
SEARCHED = [(world, name) for world, name in EVERY if name not in LONG_SEARCHES or "TIDELOG_MUTANTS" in os.environ]


@pytest.mark.parametrize(("simulation", "name"), SEARCHED)
def test_a_planted_bug_is_found(simulation: str, name: str) -> None:
    simulate, bugs = SIMULATIONS[simulation]
    first = FOUND_BY.get(name, 0)
    for seed in (first, *range(ENOUGH)):
        if simulate(seed, bugs[name]).problems:
            if seed not in (first, *range(6)):
                warnings.warn(f"seed {seed} finds {name} now: note it in FOUND_BY, the search is long", stacklevel=1)
            return
    pytest.fail(f"{ENOUGH} seeds did not find that the code {name.replace('_', ' ')}")


def test_bugs_of_each_world_are_searched_for() -> None:
    assert {simulation for simulation, _ in SEARCHED} == set(SIMULATIONS)
    assert {name for _, name in EVERY} >= LONG_SEARCHES | FOUND_BY.keys()
