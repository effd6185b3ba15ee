"""Users of a console that log in: each sees and does what the lake's ACLs allow, as at brokers."""

import httpx
import pytest
from support.console import running_console

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.log.lake import Lake
from tidelog.server.logins import HttpAccess

Op = AclOperation


def allowed(principal, operation, name, resource=AclResource.TOPIC, pattern=AclPattern.LITERAL):
    return Acl(resource, pattern, name, f"User:{principal}", "*", operation, AclPermission.ALLOW)


@pytest.fixture
def running(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        access = AccessLog(lake)
        for name in ("ann", "bob", "root"):
            access.upsert_scram(name, credential(ScramMechanism.SHA_256, f"{name}-pw", b"salt" * 4))
        access.add_acls(
            [
                allowed("ann", Op.READ, "orders"),
                allowed("bob", Op.ALL, "b-", pattern=AclPattern.PREFIXED),
            ]
        )
        access.close()
        for name in ("orders", "b-one"):
            lake.create_topic(name, 1)
            lake.topic(name).append([{"value": b"v"}])
    settings = HttpAccess(authenticates=True, super_users=frozenset({"User:root"}), failed_delay_s=0.0)
    with running_console(tmp_path / "lake", access=settings) as console:
        yield console


def test_who_is_not_logged_in_is_asked_to(running):
    for user in (None, ("ann", "wrong"), ("carl", "ann-pw")):
        answer = httpx.get(f"{running.url}/api/topics", auth=user)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
    assert httpx.get(f"{running.url}/").status_code == 200  # the page holds nothing of the lake


def test_each_user_sees_its_own_topics(running):
    for user, topics in (("ann", {"orders"}), ("bob", {"b-one"}), ("root", {"orders", "b-one"})):
        with running.client((user, f"{user}-pw")) as page:
            assert page.ok("GET", "/api/session")["user"] == f"User:{user}"
            assert {one["name"] for one in page.ok("GET", "/api/topics")["topics"]} == topics
            assert page.ok("GET", "/api/overview")["topics"] == len(topics)
            series = page.ok("GET", "/api/overview/history")
            assert bool(series["times"]) == (user == "root")


@pytest.mark.parametrize(
    ("method", "path", "body", "ann", "bob"),
    [
        ("GET", "/api/topics/orders", None, 200, 403),
        ("GET", "/api/topics/orders/records", None, 200, 403),
        ("GET", "/api/topics/orders/records/0/0", None, 200, 403),
        ("GET", "/api/topics/orders/records/0/0/raw", None, 200, 403),
        ("GET", "/api/topics/orders/download", None, 200, 403),
        ("GET", "/api/topics/orders/history", None, 200, 403),
        ("GET", "/api/topics/orders/consumers", None, 200, 403),
        ("GET", "/api/topics/orders/config", None, 403, 403),
        ("GET", "/api/topics/none", None, 403, 403),
        ("PATCH", "/api/topics/orders/config", {"set": {"retention.ms": "5"}}, 403, 403),
        ("PATCH", "/api/topics/orders", {"partitions": 9}, 403, 403),
        ("POST", "/api/topics/orders/records", {"value": {"text": "x"}}, 403, 403),
        ("DELETE", "/api/topics/orders", {"confirm": "orders"}, 403, 403),
        ("POST", "/api/topics", {"name": "more"}, 403, 403),
        ("POST", "/api/topics", {"name": "b-two", "partitions": 1}, 403, 200),
        ("GET", "/api/topics/b-one/config", None, 403, 200),
        ("POST", "/api/topics/b-one/records", {"value": {"text": "x"}}, 403, 200),
        ("DELETE", "/api/topics/b-one", {"confirm": "b-one"}, 403, 200),
    ],
)
def test_rights(running, method, path, body, ann, bob):
    for user, status in (("ann", ann), ("bob", bob)):
        with running.client((user, f"{user}-pw")) as page:
            answer = page.request(method, path, json=body)
            assert answer.status_code == status, (user, answer.text)
            if status == 403:
                assert f"User:{user} is denied operation" in answer.json()["message"]


def test_a_tail_needs_the_right_to_read(running):
    with running.client(("bob", "bob-pw")) as page:
        assert "READ" in page.refused(403, "GET", "/api/topics/orders/tail")


def test_a_token_is_of_one_user(running):
    with running.client(("bob", "bob-pw")) as bob, running.client(("root", "root-pw")) as root:
        root.headers["x-tidelog-csrf"] = bob.headers["x-tidelog-csrf"]
        assert "token" in root.refused(403, "POST", "/api/topics", {"name": "more"})
    assert "more" not in running.lake.topics()


def test_what_a_user_may_change_is_told_and_no_denial_of_it_is_in_the_audit(running, caplog):
    told = {}
    with caplog.at_level("INFO", "tidelog.audit"):
        for user, topic in (("ann", "orders"), ("bob", "b-one"), ("root", "orders")):
            with running.client((user, f"{user}-pw")) as page:
                session, about = page.ok("GET", "/api/session"), page.ok("GET", f"/api/topics/{topic}")
                deleted = [one["may_delete"] for one in page.ok("GET", "/api/topics")["topics"]]
            told[user] = (
                set(session["may"].values()),
                session["may"]["create_topics"],
                set(about["may"].values()),
                deleted,
            )
    assert told["ann"] == ({False}, False, {False}, [False])
    assert told["bob"] == ({True, False}, True, {True}, [True])
    assert told["root"] == ({True}, True, {True}, [True, True])
    assert "denied" not in caplog.text.lower()
