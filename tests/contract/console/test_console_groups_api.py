"""Groups at a console: how far they are behind, resets with a preview, and deletion."""

import pytest
from support.console import running_console

from tidelog import Consumer
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        lake = console.lake
        lake.create_topic("orders", 2)
        for part in range(2):
            lake.topic("orders").append([{"value": str(n), "partition": part} for n in range(10)])
        offsets = {("orders", 0): CommittedOffset(4, "so far"), ("orders", 1): CommittedOffset(10)}
        GroupLog(lake).commit_offsets("billing", offsets)
        yield console


def test_groups_and_their_lag(running):
    with running.client() as page:
        (row,) = page.ok("GET", "/api/groups")["groups"]
        assert {key: row[key] for key in ("group", "state", "members", "topics", "lag")} == {
            "group": "billing", "state": "Empty", "members": 0, "topics": ["orders"], "lag": 6,
        }  # fmt: skip
        assert row["lag_s"] >= 0
        found = page.ok("GET", "/api/groups/billing")
        first, second = found["partitions"]
        assert (first["committed"], first["end"], first["lag"], first["metadata"]) == (4, 10, 6, "so far")
        assert (second["lag"], second["lag_s"]) == (0, 0.0)
        assert page.ok("GET", "/api/groups/billing/history")["series"]["orders"][-1] == 6
        assert "no group" in page.refused(404, "GET", "/api/groups/other")


def test_a_member_is_shown_and_keeps_offsets_from_being_reset(running):
    settings = {"lake": running.lake.uri, "group.id": "live", "client.id": "till", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe(["orders"])
        while consumer.poll(1.0) is None:
            pass
        with running.client() as page:
            found = page.ok("GET", "/api/groups/live")
            assert (found["state"], len(found["members"])) == ("Stable", 1)
            assert found["members"][0]["client_id"] == "till"
            assert found["members"][0]["assignments"] == [{"topic": "orders", "partitions": [0, 1]}]
            assert {row["member"] for row in found["partitions"]} == {found["members"][0]["id"]}
            body = {"topic": "orders", "to": "earliest", "dry_run": False}
            assert "has members" in page.refused(409, "POST", "/api/groups/live/reset", body)
            page.refused(409, "DELETE", "/api/groups/live", {"confirm": "live"})
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("body", "offsets"),
    [
        ({"to": "earliest"}, [(0, 4, 0), (1, 10, 0)]),
        ({"to": "latest", "topic": "orders"}, [(0, 4, 10), (1, 10, 10)]),
        ({"to": "shift", "value": -3, "topic": "orders", "partitions": [1]}, [(1, 10, 7)]),
        ({"to": "offset", "value": 99, "topic": "orders", "partitions": [0]}, [(0, 4, 10)]),
        ({"to": "time", "value": 0}, [(0, 4, 0), (1, 10, 0)]),
    ],
)
def test_a_reset_is_shown_before_it_is_done(running, body, offsets):
    with running.client() as page:
        preview = page.ok("POST", "/api/groups/billing/reset", {**body, "dry_run": True})
        assert [(row["partition"], row["from"], row["to"]) for row in preview["offsets"]] == offsets
        assert page.ok("GET", "/api/groups/billing")["partitions"][0]["committed"] == 4
        page.ok("POST", "/api/groups/billing/reset", {**body, "dry_run": False})
        now = {row["partition"]: row["committed"] for row in page.ok("GET", "/api/groups/billing")["partitions"]}
        assert all(now[partition] == to for partition, _, to in offsets)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"to": "nowhere"},
        {"to": "file"},
        {"to": "cut"},
        {"to": "cut", "dry_run": False},
        {"to": "offset"},
        {"to": "offset", "value": -1},
        {"to": "offset", "value": True},
        {"to": "earliest", "partitions": [0]},
        {"to": "earliest", "topic": "orders", "partitions": ["0"]},
        {"to": "earliest", "dry_run": "yes"},
        {"to": "earliest", "more": 1},
    ],
)
def test_what_is_no_reset(running, body):
    with running.client() as page:
        page.refused(400, "POST", "/api/groups/billing/reset", body)


def test_a_group_is_deleted_by_its_name(running):
    with running.client() as page:
        assert "must be the group's name" in page.refused(400, "DELETE", "/api/groups/billing", {"confirm": "bill"})
        page.ok("DELETE", "/api/groups/billing", {"confirm": "billing"})
        assert page.ok("GET", "/api/groups")["groups"] == []


def test_a_console_that_is_read_only_shows_previews(tmp_path):
    with running_console(tmp_path / "lake", read_only=True) as running:
        running.lake.create_topic("orders", 1)
        GroupLog(running.lake).commit_offsets("billing", {("orders", 0): CommittedOffset(0)})
        with running.client() as page:
            page.ok("POST", "/api/groups/billing/reset", {"to": "latest"})
            body = {"to": "latest", "dry_run": False}
            assert "read-only" in page.refused(403, "POST", "/api/groups/billing/reset", body)
            assert "read-only" in page.refused(403, "DELETE", "/api/groups/billing", {"confirm": "billing"})
