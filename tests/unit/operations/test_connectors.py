"""Connectors as they are described by the topics that their workers share, and which are not well."""

import pytest
from support.logs import memory_lake

from tidelog.operations.connector_configs import ConnectorNotFoundError, TargetState, decide_create, decide_tasks
from tidelog.operations.connector_health import unwell
from tidelog.operations.connector_statuses import RunState, RunStatus, topic_record
from tidelog.operations.connectors import CONFIGS, ConnectorDescription, connectors_of

CONFIG = {"connector.class": "Counter", "topic": "t"}


def run(task, state, trace=None, worker="w:1", retries=0):
    return RunStatus("c", task, state, worker, trace=trace, retries=retries)


WELL = run(None, RunState.RUNNING)


@pytest.fixture
def lake():
    made, _, _ = memory_lake()
    made.ensure_lake()
    return made


def decide(connectors, rule):
    connectors.configs.decide(lambda state: (None, [record.bytes() for record in rule(state)]))


def report(connectors, *statuses):
    connectors.statuses.append([(status.key.encode(), status.value()) for status in statuses])


def test_a_lake_without_workers_has_no_connectors(lake):
    assert connectors_of(lake).describe() == []
    assert lake.peek(CONFIGS) is None, "to look makes no topic"
    with pytest.raises(ConnectorNotFoundError, match="Connector c not found"):
        connectors_of(lake).describe_one("c")


def test_what_a_connector_is_to_do_and_does(lake):
    written = connectors_of(lake)
    decide(written, lambda state: decide_create(state, "c", CONFIG, TargetState.PAUSED))
    decide(written, lambda state: decide_create(state, "a", CONFIG))
    decide(written, lambda state: decide_tasks(state, "c", state.versions["c"], [{"task": "0"}, {"task": "1"}]))
    failed = run(0, RunState.FAILED, "why")
    report(written, WELL, failed)
    key, value = topic_record("c", 0, "orders", 5)
    written.statuses.append([(key.encode(), value)])
    first, second = connectors_of(lake).describe()
    assert (first.name, first.target, first.tasks) == ("a", TargetState.STARTED, ())
    assert first.status.state is RunState.UNASSIGNED
    unassigned = RunStatus("c", 1, RunState.UNASSIGNED, "")
    assert second == ConnectorDescription("c", CONFIG, TargetState.PAUSED, WELL, (failed, unassigned), ("orders",))
    assert connectors_of(lake).describe_one("c") == second


def test_what_is_new_is_seen(lake):
    connectors = connectors_of(lake)
    assert connectors.describe() == []
    decide(connectors_of(lake), lambda state: decide_create(state, "c", CONFIG))
    assert [connector.name for connector in connectors.describe()] == ["c"]


def described(*statuses, target=TargetState.STARTED):
    """A connector of one task, by its own status and the task's."""
    known = {status.task: status for status in statuses}
    both = [known.get(task) or RunStatus("c", task, RunState.UNASSIGNED, "") for task in (None, 0)]
    return [ConnectorDescription("c", CONFIG, target, both[0], (both[1],), ())]


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([WELL, run(0, RunState.RUNNING)], []),
        ([WELL], ["No worker has connector 'c' (task 0)."]),
        ([], ["No worker has connector 'c' (connector, task 0)."]),
        ([WELL, run(0, RunState.FAILED, "Traceback:\n  a\nConnectError: why\n")],
         ["Connector 'c', task 0, has failed: ConnectError: why"]),
        ([WELL, run(0, RunState.RESTARTING, "E: away", retries=7)],
         ["Connector 'c', task 0, is tried again: E: away (7 tries)"]),
        ([WELL, run(0, RunState.RUNNING, worker="gone:1")], ["Connector 'c', task 0, was with worker gone:1."]),
        ([WELL, run(0, RunState.RESTARTING)], []),
    ],
)  # fmt: skip
def test_what_is_not_well_with_a_connector(runs, said):
    found = unwell(described(*runs), {"w:1"})
    assert [text for name, health in found.items() for text in health.troubles(name)] == said


def test_a_stopped_connector_is_no_trouble_and_a_paused_one_is_watched():
    assert unwell(described(target=TargetState.STOPPED), set()) == {}
    assert unwell(described(target=TargetState.PAUSED), set())["c"].unassigned == ("connector", "task 0")


def test_where_the_workers_are_not_known_none_is_silent():
    runs = [run(None, RunState.RUNNING, worker="x"), run(0, RunState.RUNNING, worker="x")]
    assert unwell(described(*runs), None) == {}
