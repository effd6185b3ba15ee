"""What is asked of each simulated world, under many seeds. TIDELOG_SIM_SEEDS=5000 runs more of them."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from sim_running import how_to_repeat


def suite(
    run: Callable[[int], Any],
    program: str,
    seeds: int,
    happens: Sequence[str],
    rare: Mapping[int, Sequence[str]] | None = None,
) -> dict[str, Callable[..., None]]:
    """The tests of a world, to be a test file's own: `globals().update(suite(...))`.

    `program` repeats a seed. `happens`: what that number of `seeds` can't do without, or they would prove little;
    `rare`: what more of them can't.
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

    def test_the_same_seed_gives_the_same_run() -> None:
        one, two = run(3), run(3)
        assert one.digest == two.digest
        assert one.digest != run(4).digest

    return {
        test.__name__: test
        for test in (test_every_invariant_holds, test_things_did_go_wrong, test_the_same_seed_gives_the_same_run)
    }
