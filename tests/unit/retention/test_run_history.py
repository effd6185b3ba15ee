"""The note of maintenance runs: when a lake was last looked after."""

import pytest
from support.logs import FakeClock

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.retention.maintenance import MERGE, maintain
from tidelog.retention.run_history import KEPT, PATH, maintenance_runs


@pytest.fixture
def lake():
    clock = FakeClock()
    with Lake("memory://runs", storage=MemoryStorage("memory://runs", clock), clock=clock) as opened:
        opened.create_topic("orders", 1)
        yield opened


def test_a_run_is_noted(lake):
    assert maintenance_runs(lake.storage) == []
    report = maintain(lake)
    (run,) = maintenance_runs(lake.storage)
    assert (run.run_id, run.at_ms, run.topics, run.failures, run.whole) == (report.run_id, report.now_ms, 1, (), True)
    assert set(run.parts) == {"retention", "compact", "merge", "purge", "offsets"}


def test_a_run_over_some_topics_is_not_one_over_all(lake):
    maintain(lake, only=[MERGE], topics=["orders"])
    (run,) = maintenance_runs(lake.storage)
    assert not run.whole
    assert run.parts == ("merge",)


def test_what_failed_is_named(lake):
    lake.storage.put("orders/_delta_log/00000000000000000001.json", b"no entry")
    maintain(lake)
    assert "orders: " in maintenance_runs(lake.storage)[0].failures[0]


def test_a_plan_is_no_run(lake):
    maintain(lake, dry_run=True)
    assert maintenance_runs(lake.storage) == []


def test_the_newest_runs_are_kept(lake):
    ids = [maintain(lake).run_id for _ in range(KEPT + 3)]
    assert [run.run_id for run in maintenance_runs(lake.storage)] == ids[: -KEPT - 1 : -1]


@pytest.mark.parametrize("body", [b"", b"{}", b"[1, {}]", b'[{"run_id": 1}]', b"\xff"])
def test_a_note_that_is_none_is_written_anew(lake, body):
    lake.storage.put(PATH, body)
    assert maintenance_runs(lake.storage) == []
    maintain(lake)
    assert len(maintenance_runs(lake.storage)) == 1


def test_a_store_that_refuses_the_note_fails_no_run(lake, monkeypatch):
    def put(path, data):
        if path == PATH:
            raise StorageUnavailableError("away")
        return real(path, data)

    real = lake.storage.put
    monkeypatch.setattr(lake.storage, "put", put)
    assert not maintain(lake).failed
