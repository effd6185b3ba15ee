"""One case after another, each with what is left of the time; one that fails is reported and stops no other."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from measures import Measure

CASE_S = 600.0


class CaseError(Exception):
    """A case measured nothing, and why."""


@dataclass
class Outcome:
    """What the cases measured, which of them failed, and how long each took."""

    measures: list[Measure] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def exit_code(self, judged: Sequence[Mapping[str, Any]]) -> int:
        """2 when a case failed, else 1 when a demand is not met, else 0."""
        if self.failed:
            return 2
        return 0 if all(one["ok"] for one in judged) else 1


def run_all(
    cases: Sequence[str],
    run: Callable[[str, float], list[Measure]],
    limit_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run the cases; `run` takes a case and how many seconds it may take, and raises CaseError when it fails."""
    outcome, began = Outcome(), clock()
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case} ...", flush=True)
        started = clock()
        left_s = limit_s - (started - began)
        try:
            if left_s <= 0:
                raise CaseError(f"The run's time is over ({limit_s / 60:g} minutes; --minutes says otherwise).")
            outcome.measures.extend(run(case, min(CASE_S, left_s)))
        except CaseError as error:
            outcome.failed.append(case)
            print(f"{error}\n{case} failed", file=sys.stderr, flush=True)
        outcome.seconds[case] = round(clock() - started, 1)
        print(f"    {outcome.seconds[case]:.0f} s", flush=True)
    return outcome
