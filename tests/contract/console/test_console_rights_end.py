"""A right is asked for as long as an answer lasts: when its ACL or its user goes, so does the answer."""

import httpx
import pytest
from support.console import running_console
from support.page_tails import Tailing
from support.waiting import eventually

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.model import Acl, AclFilter, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.console.sql.queries import ConsoleSql
from tidelog.log.lake import Lake
from tidelog.server.logins import HttpAccess

ANN = ("ann", "ann-pw")
READ = Acl(
    AclResource.TOPIC, AclPattern.LITERAL, "orders", "User:ann", "*", AclOperation.READ, AclPermission.ALLOW
)  # fmt: skip
OTHER = Acl(
    AclResource.TOPIC, AclPattern.LITERAL, "other", "User:ann", "*", AclOperation.READ, AclPermission.ALLOW
)  # fmt: skip


def acl_goes(access):
    access.delete_acls([AclFilter(name="orders")])


def user_goes(access):
    access.delete_scram("ann", ScramMechanism.SHA_256)


@pytest.fixture
def running(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        access = AccessLog(lake)
        access.upsert_scram("ann", credential(ScramMechanism.SHA_256, "ann-pw", b"salt" * 4))
        access.add_acls([READ, OTHER])
        access.close()
        for name in ("orders", "other"):
            lake.create_topic(name, 1)
            lake.topic(name).append([{"value": b"v"}])
    settings = HttpAccess(authenticates=True, failed_delay_s=0.0)
    with running_console(tmp_path / "lake", access=settings) as console:
        yield console


@pytest.fixture
def end(running, tmp_path):
    def ends(how):
        with Lake(tmp_path / "lake") as lake:
            access = AccessLog(lake)
            how(access)
            access.close()

    return ends


@pytest.mark.parametrize("how", [acl_goes, user_goes])
def test_a_live_tail_ends(running, end, how):
    ours, other = (Tailing(f"{running.url}/api/topics/{name}/tail", ANN) for name in ("orders", "other"))
    try:
        for one in (ours, other):
            one.wait("heartbeat", 1)
        end(how)
        ours.wait_for_end()  # nothing comes to the topic: it ends by itself
        running.lake.topic("orders").append([{"value": b"secret"}])
        assert ours.named("record") == []
        if how is acl_goes:
            running.lake.topic("other").append([{"value": b"mine"}])
            assert other.wait("record", 1)
        else:
            other.wait_for_end()
        status = httpx.get(f"{running.url}/api/topics/orders/tail", auth=ANN).status_code
        assert status == (403 if how is acl_goes else 401)
    finally:
        running.server.drain()
        for one in (ours, other):
            one.close()


@pytest.mark.parametrize("how", [acl_goes, user_goes])
def test_a_download_breaks_off(running, end, how):
    topic, value = running.lake.topic("orders"), b"x" * 262_144
    for _ in range(8):
        topic.append([{"value": value}] * 32)
    with (
        httpx.Client(timeout=None, auth=ANN) as client,
        client.stream("GET", f"{running.url}/api/topics/orders/download") as answer,
    ):
        assert answer.status_code == 200
        pieces = answer.iter_bytes()
        next(pieces)
        end(how)
        status = lambda: httpx.get(f"{running.url}/api/topics/orders", auth=ANN).status_code  # noqa: E731
        eventually(lambda: status() != 200, "the right has ended")
        with pytest.raises(httpx.RemoteProtocolError):  # a file that looks whole would be taken for it
            list(pieces)


ENDLESS = "SELECT count(*) FROM orders, range(1000000000000)"


@pytest.mark.parametrize("how", [acl_goes, user_goes])
def test_a_query_that_runs_ends(running, end, how):
    pytest.importorskip("duckdb")
    with running.client(ANN) as page:
        run = page.ok("POST", "/api/sql", {"query": ENDLESS})["id"]
        runs = running.server.console.part(ConsoleSql)._runs
        eventually(lambda: "orders" in runs[run].topics, "the query reads")
        assert page.ok("GET", f"/api/sql/{run}")["state"] == "running"
        process = runs[run].process
        end(how)
        assert eventually(lambda: runs[run].state != "running" and runs[run].state, "its end") == "failed"
        eventually(lambda: process.poll() is not None, "its process is gone")
        if how is acl_goes:
            assert "may not read any more" in page.ok("GET", f"/api/sql/{run}")["error"]


def test_the_rows_of_a_query_go_with_the_right_to_them(running, end):
    pytest.importorskip("duckdb")
    with running.client(ANN) as page:
        topics = ("orders", "other")
        runs = {one: page.ok("POST", "/api/sql", {"query": f"SELECT value FROM {one}"})["id"] for one in topics}
        rows = lambda: [page.ok("GET", f"/api/sql/{one}")["rows"] for one in runs.values()]  # noqa: E731
        eventually(lambda: rows() == [[["v"]], [["v"]]], "rows")
        end(acl_goes)
        eventually(lambda: page.get("/api/topics/orders").status_code == 403, "the right has ended")
        found = page.ok("GET", f"/api/sql/{runs['orders']}")
        assert (found["state"], found["rows"], found["columns"]) == ("failed", [], [])
        assert page.ok("GET", f"/api/sql/{runs['other']}")["rows"] == [["v"]]
