"""Every kind of finding, each on a lake that was damaged by hand (`support.damages`)."""

import json

import pytest
from support import damages_inside, damages_rows
from support.damages import DAMAGES, Damage
from support.patients import found, kinds

from tidelog.check.lake import Kind, Severity

# their damages are noted in DAMAGES when they are imported
assert damages_inside.deep
assert damages_rows.grouped


@pytest.mark.parametrize("damage", DAMAGES, ids=[f"{d.kind}-{i}" for i, d in enumerate(DAMAGES)])
def test_damage_is_found_and_named(damage: Damage) -> None:
    patient = damage.do()
    report = patient.check(damage.deep)
    named = [f for f in found(report, damage.kind) if damage.where in f.where]
    assert len(named) == 1, report.findings
    assert named[0].what.endswith(".")
    assert named[0].todo.endswith(".")
    expected = damage.also if named[0].severity is Severity.INFO else damage.also | {damage.kind}
    assert kinds(report) == expected, report.findings
    assert json.loads(json.dumps(report.to_dict()))["green"] == (not expected)


def test_every_kind_of_finding_has_a_damage() -> None:
    assert {d.kind for d in DAMAGES} == set(Kind)
