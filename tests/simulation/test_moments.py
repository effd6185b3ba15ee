"""Cuts and branches amid which something happens at one moment: whichever it is, every rule holds.

`make test` tries each eleventh moment, and those at which a planted bug shows; with TIDELOG_SIM_SEEDS it tries all.
"""

import os
from collections.abc import Callable
from itertools import count

import pytest
from moments_sim_run import OF_BRANCHES, OF_CUTS, MomentReport, run_branch_moment, run_cut_moment
from planted_bugs import FOUND_BY, SIMULATIONS

STEP = 1 if "TIDELOG_SIM_SEEDS" in os.environ else 11


@pytest.mark.parametrize(
    ("run", "events"),
    [pytest.param(run_cut_moment, OF_CUTS, id="cuts"), pytest.param(run_branch_moment, OF_BRANCHES, id="branches")],
)
def test_a_rule_holds_whenever_something_happens(
    run: Callable[[int], MomentReport], events: tuple[object, ...]
) -> None:
    happened, late = 0, 0
    for seed in count(0, STEP):
        report = run(seed)
        assert not report.problems, f"seed {seed}, {report.digest}: {report.problems}"
        happened, late = happened + report.happened, 0 if report.happened else late + 1
        if late == len(events):  # in a row, as each has another number of calls
            break
    assert happened > 20


@pytest.mark.parametrize("world", ["moments of cuts", "moments of branches"])
def test_the_moments_of_planted_bugs_are_there(world: str) -> None:
    run, bugs = SIMULATIONS[world]
    for name in bugs:
        report = run(FOUND_BY[name])
        assert (report.problems, report.happened) == ([], True), f"{name}: {report.digest}"
