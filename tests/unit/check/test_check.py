"""Every kind of finding, each on a lake that was damaged by hand (`support.corruptions`)."""

import json

import pytest
from support import corruptions_of_contents, corruptions_of_rows
from support.corruptible_lakes import found, kinds
from support.corruptions import CORRUPTIONS, Corruption

from tidelog.check.lake import Kind, Severity

# their corruptions are noted in CORRUPTIONS when they are imported
assert corruptions_of_contents.deep
assert corruptions_of_rows.grouped


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=[f"{d.kind}-{i}" for i, d in enumerate(CORRUPTIONS)])
def test_a_corruption_is_found_and_named(corruption: Corruption) -> None:
    corruptible = corruption.do()
    report = corruptible.check(corruption.deep)
    named = [f for f in found(report, corruption.kind) if corruption.where in f.where]
    assert len(named) == 1, report.findings
    assert named[0].what.endswith(".")
    assert named[0].todo.endswith(".")
    expected = corruption.also if named[0].severity is Severity.INFO else corruption.also | {corruption.kind}
    assert kinds(report) == expected, report.findings
    assert json.loads(json.dumps(report.to_dict()))["green"] == (not expected)


def test_every_kind_of_finding_has_a_corruption() -> None:
    assert {d.kind for d in CORRUPTIONS} == set(Kind)
