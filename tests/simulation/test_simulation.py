"""The true code under many seeds: whatever goes wrong, nothing acknowledged is lost, doubled or moved.

TIDELOG_SIM_SEEDS=5000 runs more of them; what a failing one prints repeats it.
"""

import os
from collections import Counter

import pytest
from sim_run import Report, run
from sim_running import how_to_repeat

SEEDS = int(os.environ.get("TIDELOG_SIM_SEEDS", "80"))
# What a hundred seeds can't do without, or they would prove little.
HAPPENS = (
    *("append acked", "append refused", "append unknown", "outcome unknown", "interrupted", "topic gone"),
    *("repeat answered", "repeat forgotten"),
)

reports: dict[int, Report] = {}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_invariant_holds(seed: int) -> None:
    reports[seed] = report = run(seed)
    found = "\n".join(report.problems)
    assert not found, f"{found}\n\nRepeat it: {how_to_repeat('sim_run.py', seed)}"


def test_things_did_go_wrong() -> None:
    counts = Counter[str]()
    for report in reports.values():
        counts.update(report.history.counts)
        counts.update(strays=len(report.history.strays), power=len(report.history.power_losses))
    if len(reports) < 80:
        pytest.skip("fewer seeds than it takes")
    assert not [what for what in (*HAPPENS, "strays", "power") if not counts[what]]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    one, two = run(seed), run(seed)
    assert one.digest == two.digest
    assert one.history.entries == two.history.entries


def test_another_seed_gives_another_run() -> None:
    assert run(1).digest != run(2).digest
