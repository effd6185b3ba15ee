"""What a console answers while it reads a lake for the first time: names at once, the rest as it is known."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from support.console import running_console
from support.held_looks import Gate


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        for name in ("a", "b", "c"):
            console.lake.create_topic(name, 2)
        console.lake.topic("a").append([{"value": "1"}])
        yield console


def test_topics_are_listed_before_all_of_them_are_read(running, monkeypatch):
    gate = Gate(running.lake, monkeypatch, "b")
    with running.client() as page, ThreadPoolExecutor(1) as threads:
        whole = threads.submit(running.server.console.snapshot)
        gate.reached.wait()
        found = page.ok("GET", "/api/topics", sort="records", order="desc")
        now, history = page.ok("GET", "/api/overview"), page.ok("GET", "/api/overview/history")
        searched = page.ok("GET", "/api/topics", search="B")
        gate.open.set()
        assert whole.result().unread == ()
        read = page.ok("GET", "/api/topics")
        then = page.ok("GET", "/api/overview")
        newer = page.ok("GET", "/api/overview/history")
    rows = {row["name"]: row for row in found["topics"]}
    assert [row["name"] for row in found["topics"]] == ["a", "b", "c"]
    assert (found["total"], found["unread"], rows["a"]["records"], rows["a"]["cleanup"]) == (3, 2, 1, "delete")
    assert [rows["b"][key] for key in ("partitions", "records", "rate", "cleanup", "retention_ms")] == [None] * 5
    assert (now["topics"], now["unread"], now["records"], now["alarms"]) == (3, 2, 1, [])
    assert history["times"] == history["series"]["alarms"] == []
    assert [row["name"] for row in searched["topics"]] == ["b"]
    assert (read["unread"], read["topics"][1]["partitions"]) == (0, 2)
    assert (then["unread"], then["partitions"]) == (0, 6)
    assert "maintenance-due" in {alarm["name"] for alarm in then["alarms"]}
    assert newer["series"]["alarms"][-1] == len(then["alarms"])


def test_a_topic_has_its_page_while_others_are_read(running, monkeypatch):
    gate = Gate(running.lake, monkeypatch, "b")
    with running.client() as page, ThreadPoolExecutor(1) as threads:
        whole = threads.submit(running.server.console.snapshot)
        gate.reached.wait()
        found = page.ok("GET", "/api/topics/c")
        gate.open.set()
        whole.result()
        assert (len(found["partitions"]), found["groups"]) == (2, None)
        assert page.ok("GET", "/api/topics/c")["groups"] == 0
