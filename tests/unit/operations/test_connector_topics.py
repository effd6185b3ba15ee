"""The topics that workers share: forms of records, folds, decisions, and several workers over one lake."""

import json

import pytest
from support.logs import memory_lake, open_lake

from tidelog.operations.connector_configs import (
    ConfigRecord,
    ConfigState,
    ConnectorExistsError,
    ConnectorNotFoundError,
    ConnectorTaskNotFoundError,
    RestartRequest,
    TargetState,
    decide_create,
    decide_delete,
    decide_logger,
    decide_put,
    decide_restart,
    decide_target,
    decide_tasks,
    patched,
)
from tidelog.operations.connector_statuses import RunState, RunStatus, StatusState, topic_key, topic_record
from tidelog.operations.connectors import workers_topic

A, B = {"name": "a", "file": "x"}, {"name": "a", "file": "y"}


def folded(*records, state=None):
    """The fold of (key, value) records, or of decisions' records."""
    state = state or ConfigState()
    start = max([-1, *state.versions.values(), *state.task_versions.values()]) + 1
    for offset, record in enumerate(records, start):
        key, value = record.bytes() if isinstance(record, ConfigRecord) else (record[0].encode(), record[1])
        state.take(key, value if value is None or isinstance(value, bytes) else json.dumps(value).encode(), offset)
    return state


def with_tasks(count=2):
    state = folded(*decide_create(ConfigState(), "a", A))
    return folded(*decide_tasks(state, "a", state.versions["a"], [{"task": str(i)} for i in range(count)]), state=state)


# --- connect-configs --------------------------------------------------------------------------------------------

# (records as Kafka Connect writes them, what is then known: (connectors, target, tasks))
KAFKAS = [
    ([("connector-a", {"properties": A})], (A, "STARTED", None)),
    ([("connector-a", {"properties": A}), ("connector-a", {"properties": B})], (B, "STARTED", None)),
    ([("connector-a", {"properties": A}), ("connector-a", None)], (None, "STARTED", None)),
    ([("connector-a", {"properties": A}), ("target-state-a", {"state": "PAUSED"})], (A, "PAUSED", None)),
    (
        [("target-state-a", {"state": "PAUSED", "state.v2": "STOPPED"}), ("connector-a", {"properties": A})],
        (A, "STOPPED", None),
    ),
    ([("connector-a", {"properties": A}), ("target-state-a", {"state": "SLEEPING"})], (A, "STARTED", None)),
    (
        [("connector-a", {"properties": A}), ("task-a-0", {"properties": {"t": "0"}}), ("commit-a", {"tasks": 1})],
        (A, "STARTED", [{"t": "0"}]),
    ),
    # Tasks that no commit names, or too few for the commit, do not count.
    ([("connector-a", {"properties": A}), ("task-a-0", {"properties": {"t": "0"}})], (A, "STARTED", None)),
    (
        [("connector-a", {"properties": A}), ("task-a-1", {"properties": {"t": "0"}}), ("commit-a", {"tasks": 2})],
        (A, "STARTED", None),
    ),
    (
        [("connector-a", {"properties": A}), ("task-a-0", {"properties": {"t": "0"}}), ("commit-a", {"tasks": 1}),
         ("commit-a", {"tasks": 0})],
        (A, "STARTED", []),
    ),
    ([("connector-a", {"properties": A}), ("connector-a", b"{"), ("connector-a", b"[1]")], (A, "STARTED", None)),
    ([("connector-a", {"properties": {"n": 1, "gone": None}})], ({"n": "1"}, "STARTED", None)),
    ([("connector-a", {"properties": [1]}), ("session-key", {"key": "x"}), ("", {})], (None, "STARTED", None)),
    ([("connector-a", {"properties": A}), ("commit-a", {"tasks": True})], (A, "STARTED", None)),
    ([("connector-a", b"[" * 100_000)], (None, "STARTED", None)),
]  # fmt: skip


@pytest.mark.parametrize(("records", "known"), KAFKAS)
def test_records_of_kafka_connect_are_understood(records, known):
    state = folded(*records)
    assert (state.connectors.get("a"), state.target("a").value, state.tasks.get("a")) == known


def test_records_have_connects_keys_and_forms():
    assert [record.bytes() for record in decide_create(ConfigState(), "a", A, TargetState.STOPPED)] == [
        (b"target-state-a", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (b"connector-a", b'{"properties":{"name":"a","file":"x"}}'),
    ]
    state = folded(*decide_create(ConfigState(), "a", A))
    assert [record.bytes() for record in decide_tasks(state, "a", state.versions["a"], [{"t": "0"}])] == [
        (b"task-a-0", b'{"properties":{"t":"0"}}'),
        (b"commit-a", b'{"tasks":1}'),
    ]
    assert decide_restart(state, "a", include_tasks=True, only_failed=False)[0].bytes() == (
        b"restart-connector-a",
        b'{"include-tasks":true,"only-failed":false}',
    )
    assert decide_logger("tidelog", "DEBUG")[0].bytes() == (b"logger-cluster-tidelog", b'{"level":"DEBUG"}')


def test_a_name_is_taken_once_and_put_replaces():
    state = folded(*decide_create(ConfigState(), "a", A))
    with pytest.raises(ConnectorExistsError, match="Connector a already exists"):
        decide_create(state, "a", B)
    new, records = decide_put(state, "a", B)
    assert (new, folded(*records, state=state).connectors["a"]) == (False, B)
    assert decide_put(ConfigState(), "b", B)[0]


def test_a_patch_changes_adds_and_takes_out():
    assert patched({"a": "1", "b": "2"}, {"b": None, "a": "3", "c": "4"}) == {"a": "3", "c": "4"}


def test_a_connector_that_comes_again_has_nothing_of_the_earlier_one():
    state = with_tasks()
    state = folded(*decide_target(state, "a", TargetState.PAUSED), state=state)
    state = folded(*decide_delete(state, "a"), state=state)
    assert state.connectors == state.tasks == state.targets == {}
    # Compaction may keep only the newest of each key: then the earlier one's tasks are gone, too.
    assert [record.key for record in decide_delete(with_tasks(), "a")] == [
        "connector-a", "target-state-a", "task-a-0", "task-a-1", "commit-a",
    ]  # fmt: skip
    state = folded(*decide_create(state, "a", B), state=state)
    assert (state.task_configs("a"), state.target("a")) == ([], TargetState.STARTED)


def test_a_stopped_connector_has_no_tasks():
    state = with_tasks()
    state = folded(*decide_target(state, "a", TargetState.STOPPED), state=state)
    assert (state.target("a"), state.task_configs("a")) == (TargetState.STOPPED, [])
    assert decide_tasks(state, "a", state.versions["a"], [{"t": "0"}]) == []
    assert decide_target(state, "a", TargetState.STOPPED) == []


def test_tasks_are_written_when_they_change_and_only_for_the_configuration_they_were_made_of():
    state = with_tasks()
    same = [{"task": "0"}, {"task": "1"}]
    assert decide_tasks(state, "a", state.versions["a"], same) == []
    assert decide_tasks(state, "a", state.versions["a"] - 1, same[:1]) == []
    assert len(decide_tasks(state, "a", state.versions["a"], same[:1])) == 2
    assert decide_tasks(ConfigState(), "a", 0, same) == []
    assert state.current_tasks("a") == same
    state = folded(*decide_put(state, "a", B)[1], state=state)
    assert (state.task_configs("a"), state.current_tasks("a")) == (same, [])
    state = folded(*decide_tasks(state, "a", state.versions["a"], same), state=state)
    assert state.current_tasks("a") == same


def test_restarts_are_named_by_their_offsets():
    state = with_tasks()
    state = folded(*decide_restart(state, "a", include_tasks=False, only_failed=True, task=1), state=state)
    found = state.restarts["a"]
    assert found == RestartRequest("a", found.offset, include_tasks=False, only_failed=True, task=1)
    with pytest.raises(ConnectorTaskNotFoundError, match="Task a-2 not found"):
        decide_restart(state, "a", include_tasks=True, only_failed=False, task=2)


@pytest.mark.parametrize(
    "decide",
    [
        lambda state: decide_delete(state, "b"),
        lambda state: decide_target(state, "b", TargetState.PAUSED),
        lambda state: decide_restart(state, "b", include_tasks=True, only_failed=False),
        lambda state: state.require("b"),
    ],
)
def test_an_unknown_connector_is_refused(decide):
    with pytest.raises(ConnectorNotFoundError, match="Connector b not found"):
        decide(with_tasks())


# --- connect-status ---------------------------------------------------------------------------------------------


def test_statuses_have_connects_form():
    status = RunStatus("a-1", 2, RunState.FAILED, "127.0.0.1:8083", 7, "trace", "1.0")
    assert (status.key, json.loads(status.value())) == (
        "status-task-a-1-2",
        {"state": "FAILED", "trace": "trace", "worker_id": "127.0.0.1:8083", "generation": 7, "version": "1.0"},
    )
    state = StatusState()
    state.take(status.key.encode(), status.value(), 0)
    state.take(b"status-connector-a-1", b'{"state":"RUNNING","worker_id":"w","generation":1,"trace":null}', 0)
    state.take(b"status-connector-a-1", b'{"state":"LAZY"}', 1)
    state.take(b"status-connector-a-1", b"{", 2)
    assert state.of("a-1", 2) == status
    assert state.of("a-1", 2).as_json() == {
        "id": 2, "state": "FAILED", "worker_id": "127.0.0.1:8083", "version": "1.0", "trace": "trace",
    }  # fmt: skip
    assert state.of("a-1", None).as_json() == {"state": "RUNNING", "worker_id": "w"}
    assert state.of("other", None).state is RunState.UNASSIGNED
    state.take(status.key.encode(), None, 3)
    assert ("a-1", 2) not in state.runs


def test_topics_of_a_connector():
    state = StatusState()
    key, value = topic_record("a", 0, "orders", 5)
    assert (key, json.loads(value)) == (
        "status-topic-orders:connector-a",
        {"topic": {"name": "orders", "connector": "a", "task": 0, "discoverTimestamp": 5}},
    )
    state.take(key.encode(), value, 0)
    assert state.topics == {"a": {"orders"}}
    state.take(topic_key("a", "orders").encode(), None, 1)
    assert state.topics == {"a": set()}


# --- over a lake ------------------------------------------------------------------------------------------------


def rows(*records):
    return [record.bytes() for record in records]


def configs(lake):
    return workers_topic(lake, "connect-configs", 1, ConfigState, ordered=True)


def create(topic, name):
    return topic.decide(lambda state: (name, rows(*decide_create(state, name, A))))


def test_workers_over_one_lake_see_each_others_records():
    lake, storage, clock = memory_lake()
    topics = [configs(lake), configs(open_lake(storage, clock))]
    for i in range(6):
        create(topics[i % 2], f"c{i}")
    assert [topic.look(lambda state: sorted(state.connectors)) for topic in topics] == [[f"c{i}" for i in range(6)]] * 2
    with pytest.raises(ConnectorExistsError):
        create(topics[0], "c5")


def test_statuses_in_several_partitions_are_folded_together():
    lake, storage, clock = memory_lake()
    topic = workers_topic(lake, "connect-status", 5, StatusState)
    for i in range(20):
        status = RunStatus("a", i, RunState.RUNNING, "w")
        topic.append([(status.key.encode(), status.value())])
    other = workers_topic(open_lake(storage, clock), "connect-status", 5, StatusState)
    assert len(other.look(lambda state: state.runs)) == 20
    assert lake.peek("connect-status").partitions == 5
    assert lake.topic_config("connect-status").cleanup_policy == ("compact",)
    lake.delete_topic("connect-status")
    assert other.look(lambda state: state.runs) == {}
