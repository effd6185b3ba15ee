"""A task whose database is away: its status says so, why, and how often it was tried; and when it goes on."""

import pytest
from support.connect_plugins import COLLECTOR, COUNTER, CollectorTask, CounterTask
from support.waiting import eventually
from test_connect_api import CONVERTERS, Rest

from tidelog.connect.data.errors import RetriableConnectError
from tidelog.connect.runtime.task_figures import SAID_EVERY_S, RetryNotes
from tidelog.operations.connector_statuses import RunState, RunStatus, StatusState


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


def test_a_status_is_written_for_each_new_reason_and_else_now_and_then():
    shown, clock = [], Clock()
    notes = RetryNotes(lambda *said: shown.append(said), clock, "c-0")
    notes.succeeded()
    assert shown == []
    for _ in range(5):
        notes.failed(RetriableConnectError("away"))
    notes.failed(RetriableConnectError("refused"))
    clock.now_s += SAID_EVERY_S
    notes.failed(RetriableConnectError("refused"))
    notes.succeeded()
    notes.succeeded()
    assert shown == [
        (RunState.RESTARTING, "RetriableConnectError: away", 1),
        (RunState.RESTARTING, "RetriableConnectError: refused", 6),
        (RunState.RESTARTING, "RetriableConnectError: refused", 7),
        (RunState.RUNNING, None, 0),
    ]


def test_a_status_keeps_its_count_in_the_topic_and_leaves_none_out_of_others():
    state = StatusState()
    retried = RunStatus("c", 0, RunState.RESTARTING, "w:1", trace="away", retries=7)
    state.take(retried.key.encode(), retried.value(), 0)
    assert state.of("c", 0) == retried
    assert state.of("c", 0).as_json()["retries"] == 7
    assert "retries" not in RunStatus("c", 0, RunState.RUNNING, "w:1").as_json()


@pytest.fixture
def rest(tmp_path):
    made = Rest(tmp_path, started=True)
    yield made
    made.close()


def task_of(rest, name):
    tasks = rest.ok("GET", f"/connectors/{name}/status")["tasks"]
    return tasks[0] if tasks else {"state": "none yet"}


@pytest.mark.parametrize(("kind", "method"), [(CounterTask, "poll"), (CollectorTask, "put")])
def test_a_task_whose_database_is_away_says_so_until_it_is_back(rest, tmp_path, monkeypatch, kind, method):
    away, plain = [True], getattr(kind, method)

    def fails(self, *given):
        if away[0] and (method == "poll" or given[0]):
            raise RetriableConnectError("PostgreSQL does not take a connection to db:5432")
        return plain(self, *given)

    monkeypatch.setattr(kind, method, fails)
    rest.lake.create_topic("t", 1)
    if kind is CollectorTask:
        rest.lake.topic("t").append([{"key": b"k", "value": (1).to_bytes(8, "big")}])
        config = {"connector.class": COLLECTOR, "topics": "t", "file": str(tmp_path / "out"), **CONVERTERS}
    else:
        config = {"connector.class": COUNTER, "topic": "t", "most": "3", **CONVERTERS}
    rest.ok("PUT", "/connectors/c/config", config, 201)
    eventually(lambda: task_of(rest, "c")["state"] == "RESTARTING", "the status of the task")
    found = task_of(rest, "c")
    assert found["retries"] >= 1
    assert "PostgreSQL does not take a connection to db:5432" in found["trace"]
    away[0] = False
    eventually(lambda: task_of(rest, "c")["state"] == "RUNNING", "the task goes on")
    assert {"retries", "trace"}.isdisjoint(task_of(rest, "c"))
