"""SQL at a console: by its HTTP interface, read-only or not."""

import pytest
from support.console import running_console
from support.waiting import eventually

pytest.importorskip("duckdb")


def ended(page, query, **body):
    run = page.ok("POST", "/api/sql", {"query": query, **body})["id"]
    return eventually(lambda: (r := page.ok("GET", f"/api/sql/{run}"))["state"] != "running" and r, query)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_query(tmp_path, read_only):
    with running_console(tmp_path / "lake", read_only=read_only) as running:
        running.lake.create_topic("orders", 1)
        running.lake.topic("orders").append([{"value": str(n)} for n in range(20)])
        with running.client() as page:
            found = ended(page, 'SELECT "offset", value FROM orders ORDER BY 1', limit=5)
            assert (found["total"], found["truncated"], found["rows"][4]) == (5, True, ["4", "4"])
            run = page.ok("POST", "/api/sql", {"query": "SELECT count(*) FROM range(1e12::bigint)"})["id"]
            page.ok("DELETE", f"/api/sql/{run}")
            assert page.ok("GET", f"/api/sql/{run}")["state"] in ("cancelled", "done")
            page.refused(404, "GET", "/api/sql/none")
            for body in ({}, {"query": 1}, {"query": ""}, {"query": "SELECT 1", "limit": "2"}):
                page.refused(400, "POST", "/api/sql", body)
