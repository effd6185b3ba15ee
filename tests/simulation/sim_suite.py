"""What is asked of each simulated world, under many seeds. TIDELOG_SIM_SEEDS=5000 runs more of them."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from sim_running import how_to_repeat

# Of this number of seeds one is run in another process, too.
_COMPARED: Final = 20


def suite(
    run: Callable[[int], Any],
    program: str,
    seeds: int,
    happens: Sequence[str],
    rare: Mapping[int, Sequence[str]] | None = None,
) -> dict[str, Callable[..., None]]:
    """The tests of a world, to be a test file's own: `globals().update(suite(...))`.

    `program` repeats a seed. `seeds`: how many `make test` runs. `happens`: what they can't do without, or they would
    prove little; `rare`: what a larger number can't.
    """
    count = int(os.environ.get("TIDELOG_SIM_SEEDS", str(seeds)))
    reports: dict[int, Any] = {}

    @pytest.mark.parametrize("seed", range(count))
    def test_every_invariant_holds(seed: int) -> None:
        reports[seed] = report = run(seed)
        found = "\n".join(report.problems)
        assert not found, f"{found}\n\nRepeat it: {how_to_repeat(program, seed)}"

    def test_things_did_go_wrong() -> None:
        if len(reports) < seeds:
            pytest.skip("fewer seeds than it takes")
        counts = sum((report.history.counts for report in reports.values()), Counter[str]())
        expected = [*happens, *(what for least, some in (rare or {}).items() if len(reports) >= least for what in some)]
        missing = [what for what in expected if not counts[what]]
        assert not missing, f"in {len(reports)} seeds there was no {missing}"

    def test_a_seed_is_the_same_run_in_every_process() -> None:
        compared = range(3, 3 + max(2, count // _COMPARED))
        here = [(reports.get(seed) or run(seed)).digest for seed in compared]
        assert len(set(here)) == len(here)
        command = [sys.executable, str(Path(__file__).with_name(program)), "3", "--runs", str(len(here)), "--digests"]
        # Texts are hashed otherwise in each process, and so sets of them have another order.
        environment = {**os.environ, "PYTHONHASHSEED": "17", "PYTHONPATH": os.pathsep.join(sys.path)}
        there = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert there.stdout.split() == here, there.stderr

    return {
        test.__name__: test
        for test in (test_every_invariant_holds, test_things_did_go_wrong, test_a_seed_is_the_same_run_in_every_process)
    }
