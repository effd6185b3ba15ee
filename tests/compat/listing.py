"""The list of what each test of the suites does at tidelog's brokers: `results.tsv`, and how a run compares with it.

A line holds the suite, the test, its state and, where it did not pass, why. The states are `passed`, `failed` and
`not applicable`: what it tries is not what brokers offer, or not what this suite can try here.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from compat.suite import ABSENT, FAILED, PASSED, Outcome

LIST = Path(__file__).with_name("results.tsv")
NOT_APPLICABLE = "not applicable"


class Listed(NamedTuple):
    """What the list says of a test."""

    state: str
    reason: str


def read(path: Path = LIST) -> dict[tuple[str, str], Listed]:
    """{(suite, test): what the list says}."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    return {(suite, test): Listed(state, reason) for suite, test, state, reason in rows}


def write(listed: dict[tuple[str, str], Listed], path: Path = LIST) -> None:
    """Write the list, in order."""
    lines = ["suite\ttest\tstate\treason"]
    lines += ["\t".join((*place, *listed[place])) for place in sorted(listed)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def worse(listed: dict[tuple[str, str], Listed], outcomes: Iterable[Outcome]) -> list[str]:
    """What a run found that the list does not allow: a sentence each."""
    found = []
    for one in outcomes:
        if one.state == ABSENT:
            continue
        known = listed.get((one.suite, one.test))
        if known is None and one.state != PASSED:
            found.append(f"{one.suite} {one.test} is not in the list and ended as {one.state}: {one.words}")
        elif known is not None and known.state == PASSED and one.state != PASSED:
            found.append(f"{one.suite} {one.test} passes by the list and ended as {one.state}: {one.words}")
    return found


def merged(listed: dict[tuple[str, str], Listed], outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Listed]:
    """The list after a run. What the list calls not applicable stays so unless it passes; reasons are kept."""
    after = dict(listed)
    for one in outcomes:
        if one.state == ABSENT:
            continue
        place = (one.suite, one.test)
        before = after.get(place)
        if one.state == PASSED:
            after[place] = Listed(PASSED, "")
        elif before is None or before.state == PASSED:
            state = FAILED if one.state == FAILED else NOT_APPLICABLE
            after[place] = Listed(state, " ".join(one.words.split()))
    return after
