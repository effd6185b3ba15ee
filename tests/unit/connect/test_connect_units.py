"""What workers share out, and which runs follow: rules as tables."""

import pytest

from tidelog.connect.units import (
    KEEPER,
    RunSpec,
    new_restarts,
    restarted,
    specs_of,
    topic_of,
    unit_of,
    units_of,
)
from tidelog.operations.connector_configs import ConfigState, RestartRequest, TargetState

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED


def state(target=STARTED, *, tasks=2, written_at=5):
    return ConfigState(
        {"c": {"name": "c"}}, {"c": 3}, {"c": target}, {"c": [{"t": str(n)} for n in range(tasks)]}, {"c": written_at}
    )


@pytest.mark.parametrize("unit", [KEEPER, ("c", None), ("c", 3), ("a:b-1", None), ("task:1:x", 0), ("", 0)])
def test_a_unit_has_a_topic_and_the_topic_its_unit(unit):
    assert unit_of(topic_of(unit)) == unit


@pytest.mark.parametrize(
    ("found", "units"),
    [
        (state(), {KEEPER, ("c", None), ("c", 0), ("c", 1)}),
        (state(PAUSED), {KEEPER, ("c", None), ("c", 0), ("c", 1)}),
        (state(STOPPED), {KEEPER, ("c", None)}),
        (state(written_at=2), {KEEPER, ("c", None)}),
        (ConfigState(), {KEEPER}),
    ],
)
def test_stopped_connectors_and_those_with_older_tasks_have_none_to_share_out(found, units):
    assert units_of(found) == units


def test_a_worker_runs_what_it_has_of_what_there_is():
    owned = {KEEPER, ("c", None), ("c", 1), ("c", 2), ("gone", None), ("gone", 0)}
    assert specs_of(state(), owned) == {
        ("c", None): RunSpec(("c", None), (3,), STARTED),
        ("c", 1): RunSpec(("c", 1), (3, 5), STARTED),
    }


@pytest.mark.parametrize(
    ("unit", "before", "after", "replaces"),
    [
        (("c", None), ((3,), STARTED), ((3,), STARTED), False),
        (("c", None), ((3,), STARTED), ((4,), STARTED), True),
        (("c", None), ((3,), STARTED), ((3,), PAUSED), True),
        (("c", 0), ((3, 5), STARTED), ((3, 5), PAUSED), False),
        (("c", 0), ((3, 5), STARTED), ((3, 6), STARTED), True),
    ],
)
def test_another_configuration_is_another_run_and_a_pause_is_one_of_connectors_alone(unit, before, after, replaces):
    assert RunSpec(unit, *after).replaces(RunSpec(unit, *before)) is replaces


RUNS = {("c", None): False, ("c", 0): True, ("c", 1): False, ("other", 0): True}


@pytest.mark.parametrize(
    ("include", "failed", "task", "units"),
    [
        (False, False, None, {("c", None)}),
        (False, True, None, set()),
        (True, False, None, {("c", None), ("c", 0), ("c", 1)}),
        (True, True, None, {("c", 0)}),
        (False, False, 1, {("c", 1)}),
        (False, True, 1, set()),
    ],
)
def test_a_restart_is_about_the_units_that_it_says(include, failed, task, units):
    assert restarted(RestartRequest("c", 9, include, failed, task), RUNS) == units


def test_a_restart_is_acted_on_once():
    found = ConfigState(restarts={"c": RestartRequest("c", 9, True, False)})
    assert new_restarts(found, {}) == new_restarts(found, {"c": 8}) == [found.restarts["c"]]
    assert new_restarts(found, {"c": 9}) == []
