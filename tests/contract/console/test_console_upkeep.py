"""Transactions, producers, maintenance, checks and the doctor at a console."""

import pytest
from support.console import running_console
from support.waiting import eventually

from tidelog import Producer
from tidelog.transactions.part_rules import ProducerIdentity
from tidelog.transactions.transaction_log import TransactionLog


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        console.lake.create_topic("orders", 1)
        yield console


def open_transaction(lake, name="copier", timeout_ms=60_000):
    log = TransactionLog(lake)
    begun = log.begin(name, timeout_ms)
    producer = ProducerIdentity(name, begun.one.producer_id, begun.one.kafka_epoch)
    log.add(producer, [("orders", (lake.topic("orders").id, 0))])


def test_an_open_transaction_is_seen_and_aborted(running):
    open_transaction(running.lake)
    with running.client() as page:
        found = page.ok("GET", "/api/transactions")
        (row,) = found["open"]
        assert (row["transactional_id"], row["state"], row["stuck"]) == ("copier", "Ongoing", False)
        assert row["partitions"] == [{"topic": "orders", "partition": 0}]
        assert row["age_s"] >= 0
        page.ok("POST", "/api/transactions/abort", {"transactional_id": "copier"})
        found = page.ok("GET", "/api/transactions")
        assert (found["open"], found["total"], found["ids"][0]["state"]) == ([], 1, "Empty")
        assert "no transactional id" in page.refused(404, "POST", "/api/transactions/abort", {"transactional_id": "x"})
        page.refused(400, "POST", "/api/transactions/abort", {})


def test_one_that_is_open_for_longer_than_its_timeout_is_stuck(running):
    open_transaction(running.lake, timeout_ms=1)
    with running.client() as page:
        assert eventually(lambda: page.ok("GET", "/api/transactions")["open"][0]["stuck"], "the timeout is over")


def test_producers(running):
    producer = Producer({"lake": running.lake.uri, "enable.idempotence": True})
    producer.produce("orders", b"one")
    producer.produce("orders", b"two")
    producer.flush()
    with running.client() as page:
        for query in ({}, {"topic": "orders"}):
            found = page.ok("GET", "/api/producers", **query)
            (row,) = found["producers"]
            assert (row["topic"], row["partition"], row["last_sequence"], found["total"]) == ("orders", 0, 1, 1)
        page.refused(404, "GET", "/api/producers", topic="other")


def test_maintenance_that_is_due_is_run(running):
    running.lake.alter_topic("orders", config={"retention.ms": "1", "segment.ms": "1"})
    for _ in range(3):
        running.lake.topic("orders").append([{"value": "x", "timestamp": 1}])
    with running.client() as page:
        before = page.ok("GET", "/api/maintenance")
        assert before["runs"] == []
        assert [row["topic"] for row in before["due"] if row["part"] == "retention"] == ["orders"]
        assert page.ok("GET", "/api/maintenance/run") is None
        page.refused(404, "POST", "/api/maintenance/run", {"topic": "other"})
        run = page.ok("POST", "/api/maintenance/run", {"topic": "orders"})
        assert run["state"] == "running"
        done = eventually(lambda: (r := page.ok("GET", "/api/maintenance/run"))["state"] != "running" and r, "the run")
        assert (done["id"], done["state"], done["error"], done["result"]["failed"]) == (run["id"], "done", None, False)
        after = page.ok("GET", "/api/maintenance")
        assert len(after["runs"]) == 1
        assert [row for row in after["due"] if row["part"] == "retention"] == []
    assert running.lake.peek("orders").start(0) == 3


def test_a_run_that_has_ended_has_the_lake_looked_at_once(running, monkeypatch):
    """A page asks again and again: on an object store each look is paid for."""
    invalidated = []
    monkeypatch.setattr(running.server.console, "invalidate", lambda: invalidated.append(1))
    with running.client() as page:
        page.ok("POST", "/api/maintenance/run", {"topic": None})
        for _ in range(3):
            eventually(lambda: page.ok("GET", "/api/maintenance/run")["state"] == "done", "the run")
    assert invalidated == [1]


def test_a_check_and_what_it_finds(running):
    running.lake.topic("orders").append([{"value": "x"}])
    (segment,) = running.lake.peek("orders").all_segments()
    running.lake.storage.delete(f"orders/{segment.path}")
    with running.client() as page:
        assert page.ok("GET", "/api/check") is None
        page.ok("POST", "/api/check/run", {"topic": None})
        done = eventually(lambda: (r := page.ok("GET", "/api/check"))["state"] != "running" and r, "the check")
        assert not done["result"]["green"]
        assert "segment-missing" in {one["kind"] for one in done["result"]["findings"]}
        assert page.ok("GET", "/api/check", topic="other")["result"]["findings"] == []
        page.ok("POST", "/api/check/run", {"topic": "nothing"})
        done = eventually(lambda: (r := page.ok("GET", "/api/check"))["state"] != "running" and r, "the check")
        assert (done["state"], "does not exist" in done["error"]) == ("failed", True)
        page.refused(400, "POST", "/api/check/run", {"deep": 1})


def test_the_doctor_names_what_is_wrong(running):
    running.lake.storage.put("orders/_delta_log/00000000000000000001.json", b"no entry")
    with running.client() as page:
        found = page.ok("GET", "/api/doctor")["findings"]
        (broken,) = [one for one in found if one["rule"] == "topic-broken"]
        assert broken["level"] == "error"
        assert broken["do"]


def test_a_console_that_is_read_only_runs_nothing(tmp_path):
    with running_console(tmp_path / "lake", read_only=True) as running, running.client() as page:
        running.lake.create_topic("orders", 1)
        before = set(running.lake.storage.list_folders(""))
        for path, body in (
            ("/api/transactions/abort", {"transactional_id": "copier"}),
            ("/api/maintenance/run", {"topic": None}),
        ):
            assert "read-only" in page.refused(403, "POST", path, body)
        page.ok("GET", "/api/doctor")
        page.ok("POST", "/api/check/run", {})
        eventually(lambda: page.ok("GET", "/api/check")["state"] == "done", "the check")
        assert set(running.lake.storage.list_folders("")) == before
