"""A console as browsers have it: the session, and what of the requests of other sites and other users is refused."""

import httpx
import pytest
from support.console import running_console


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        yield console


def test_a_topic_is_created_listed_and_deleted(running):
    with running.client() as page:
        assert page.ok("GET", "/api/topics")["total"] == 0
        page.ok("POST", "/api/topics", {"name": "orders", "partitions": 3, "config": {"retention.ms": "60000"}})
        found = page.ok("GET", "/api/topics", search="ORD")
        assert [(t["name"], t["partitions"], t["retention_ms"]) for t in found["topics"]] == [("orders", 3, 60000)]
        assert "the topic's name" in page.refused(400, "DELETE", "/api/topics/orders", {"confirm": "order"})
        page.ok("DELETE", "/api/topics/orders", {"confirm": "orders"})
        assert page.ok("GET", "/api/topics")["topics"] == []


def test_the_overview_counts_what_is_there(running):
    running.lake.create_topic("orders", 2)
    running.lake.topic("orders").append([{"key": b"k", "value": b"v" * 100}] * 5)
    with running.client() as page:
        session, found = page.ok("GET", "/api/session"), page.ok("GET", "/api/overview")
        assert session["read_only"] is False
        assert (found["topics"], found["partitions"], found["records"]) == (1, 2, 5)
        assert found["bytes"] > 0
        history = page.ok("GET", "/api/overview/history")
        assert len(history["times"]) == len(history["series"]["lag"])


def test_a_change_needs_the_token_of_the_session(running):
    with httpx.Client(base_url=running.url) as other:
        answer = other.post("/api/topics", json={"name": "orders"})
        assert (answer.status_code, answer.json()["error_code"]) == (403, 403)
        answer = other.post("/api/topics", json={"name": "orders"}, headers={"x-tidelog-csrf": "0" * 64})
        assert answer.status_code == 403
    assert running.lake.topics() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "localhost@evil.example"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_what_another_site_sends_is_refused(running, headers):
    with running.client() as page:
        answer = page.post("/api/topics", json={"name": "orders"}, headers=headers)
        assert answer.status_code == 403, answer.text
    assert running.lake.topics() == []


def test_a_console_that_is_read_only_changes_nothing(tmp_path):
    with running_console(tmp_path / "lake", read_only=True) as console, console.client() as page:
        assert page.ok("GET", "/api/session")["read_only"] is True
        assert "read-only" in page.refused(403, "POST", "/api/topics", {"name": "orders"})
        assert console.lake.topics() == []


def test_every_answer_forbids_what_pages_of_others_would_need(running):
    with running.client() as page:
        for path in ("/", "/api/session", "/nothing", "/api/nothing"):
            headers = page.get(path).headers
            assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
        assert page.get("/api/session").headers["cache-control"] == "no-store"
        tag = page.get("/").headers["etag"]
        assert page.get("/", headers={"if-none-match": tag}).status_code == 304
