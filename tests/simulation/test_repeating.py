"""What a failing seed prints repeats it: the same run, event by event, in another process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from planted_bugs import FOUND_BY, SIMULATIONS
from sim_running import how_to_repeat

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("program", "simulation", "name"),
    [
        ("sim_run.py", "log", "keeps_its_offsets_after_a_lost_race"),
        ("groups_sim_run.py", "groups", "reads_on_while_others_join"),
        ("transactions_sim_run.py", "transactions", "counts_the_offsets_of_aborted_transactions"),
        ("brokers_sim_run.py", "brokers", "skips_the_batch_that_holds_the_offset"),
    ],
    ids=["log", "groups", "transactions", "brokers"],
)
def test_a_failing_seed_is_repeated_by_its_command(program: str, simulation: str, name: str) -> None:
    simulate, bugs = SIMULATIONS[simulation]
    seed = FOUND_BY.get(name, 0)
    trace: list[str] = []
    report = simulate(seed, bugs[name], trace)
    assert report.problems
    command = how_to_repeat(program, seed, name).replace(".venv/bin/python", sys.executable)
    # Texts are hashed otherwise in each process, and so sets of them have another order.
    environment = {**os.environ, "PYTHONHASHSEED": "17"}
    again = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stderr
    assert again.stdout.splitlines()[:-2] == "\n".join([*trace, *report.problems]).splitlines()
