"""What a failing seed prints repeats it: the same run, event by event, in another process."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brokers_sim_bugs
import groups_sim_bugs
import pytest
import sim_bugs
import transactions_sim_bugs
from brokers_sim_run import run_brokers
from groups_sim_run import run_group
from sim_run import run
from sim_running import how_to_repeat
from transactions_sim_run import run_transactions

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("program", "simulate", "bugs"),
    [
        ("sim_run.py", run, sim_bugs.BUGS),
        ("groups_sim_run.py", run_group, groups_sim_bugs.BUGS),
        ("transactions_sim_run.py", run_transactions, transactions_sim_bugs.BUGS),
        ("brokers_sim_run.py", run_brokers, brokers_sim_bugs.BUGS),
    ],
    ids=["log", "groups", "transactions", "brokers"],
)
def test_a_failing_seed_is_repeated_by_its_command(
    program: str, simulate: Callable[..., Any], bugs: dict[str, Any]
) -> None:
    name = next(iter(bugs))
    seed = next(seed for seed in range(1_000) if simulate(seed, bugs[name]).problems)
    trace: list[str] = []
    report = simulate(seed, bugs[name], trace)
    command = how_to_repeat(program, seed, name).replace(".venv/bin/python", sys.executable)
    # Texts are hashed otherwise in each process, and so sets of them have another order.
    environment = {**os.environ, "PYTHONHASHSEED": "17"}
    again = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stderr
    assert again.stdout.splitlines()[:-2] == "\n".join([*trace, *report.problems]).splitlines()
