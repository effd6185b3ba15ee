"""Queries in processes of their own: what they give, and that none of them harms the console."""

import io
import os
import signal
import subprocess
import sys

import orjson
import pytest
from support.waiting import eventually

from tidelog.console.sql.pipe import FrameTooLargeError, receive
from tidelog.console.sql.sandbox import (
    InvalidQueryError,
    NoSuchQueryError,
    Readable,
    SqlLimits,
    SqlRun,
    SqlSandbox,
    TooManyQueriesError,
)
from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.lake import Lake

pytest.importorskip("duckdb")
ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with Lake(tmp_path_factory.mktemp("lake")) as lake:
        lake.create_topic("orders", 2)
        for _ in range(3):
            lake.topic("orders").append([{"value": {"n": n}, "key": str(n)} for n in range(100)])
        lake.create_topic("secret", 1)
        yield lake


@pytest.fixture(scope="module")
def sandbox(lake):
    with SqlSandbox(lake.storage, SystemClock(), SystemIds()) as sandbox:
        yield sandbox


def begun(sandbox, lake, query, owner="User:ann", rows=None):
    readable = Readable(lambda: ["orders"], lambda name: lake.peek(name) if name == "orders" else None)
    return sandbox.start(query, owner, readable, rows)


def ended(sandbox, lake, query, **given):
    run = begun(sandbox, lake, query, **given)
    eventually(lambda: sandbox.look(run, "User:ann")["state"] != "running", query)
    return looked(sandbox, run)


def looked(sandbox, run, offset=0):
    found = sandbox.look(run, "User:ann", offset)
    return {**found, "rows": [orjson.loads(row) for row in found["rows"]]}


def test_rows_of_a_topic(sandbox, lake):
    found = ended(sandbox, lake, "SELECT count(*) AS n, min(partition), max(partition) FROM orders")
    assert (found["state"], found["rows"], found["error"]) == ("done", [["300", "0", "1"]], None)
    assert found["columns"][0] == {"name": "n", "type": "BIGINT"}


def test_rows_by_pages(sandbox, lake):
    run = begun(sandbox, lake, "SELECT range FROM range(100)", rows=10)
    eventually(lambda: sandbox.look(run, "User:ann")["state"] != "running", "its end")
    found = looked(sandbox, run, 8)
    assert (found["rows"], found["total"], found["truncated"]) == ([["8"], ["9"]], 10, True)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT * FROM secret", 'no topic "secret"'),
        ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
        ("COPY (SELECT 1) TO '/tmp/x'", "COPY is not allowed"),
        ("SELECT list(range) FROM range(1000000000)", "more memory than a query may take"),
        ("SELECT CAST('x' AS int)", "Could not convert"),
    ],
)
def test_what_fails_says_why_and_the_next_one_goes_on(sandbox, lake, query, error):
    found = ended(sandbox, lake, query)
    assert found["state"] == "failed"
    assert error in found["error"]
    assert ended(sandbox, lake, "SELECT 1")["rows"] == [["1"]]


def test_a_query_that_takes_too_long_is_ended(lake):
    with SqlSandbox(lake.storage, SystemClock(), SystemIds(), SqlLimits(seconds=0.5)) as sandbox:
        found = ended(sandbox, lake, ENDLESS)
        assert (found["state"], found["error"]) == ("failed", "The query took more than 0.5 s. Select less.")


def test_cancelled_or_closed_its_process_is_gone(lake):
    sandbox = SqlSandbox(lake.storage, SystemClock(), SystemIds())
    first, second = begun(sandbox, lake, ENDLESS), begun(sandbox, lake, ENDLESS)
    processes = eventually(
        lambda: (found := [sandbox._runs[one].process for one in (first, second)]) and all(found) and found, "processes"
    )
    sandbox.cancel(first, "User:ann")
    assert sandbox.look(first, "User:ann")["state"] == "cancelled"
    processes[0].wait()
    sandbox.close()
    assert all(process.returncode is not None for process in processes)
    assert sandbox.look(second, "User:ann")["state"] == "cancelled"
    with pytest.raises(TooManyQueriesError):
        begun(sandbox, lake, "SELECT 1")


def test_a_process_that_dies_is_a_failed_query(sandbox, lake):
    run = begun(sandbox, lake, ENDLESS)
    process = eventually(lambda: sandbox._runs[run].process, "its process")
    os.kill(process.pid, signal.SIGSEGV)
    eventually(lambda: sandbox.look(run, "User:ann")["state"] != "running", "its end")
    assert "broke DuckDB" in sandbox.look(run, "User:ann")["error"]


def test_too_many_rows_are_cut_by_their_bytes(lake):
    with SqlSandbox(lake.storage, SystemClock(), SystemIds(), SqlLimits(result=100_000)) as sandbox:
        found = ended(sandbox, lake, "SELECT repeat('x', 1000) FROM range(10000)")
        assert (found["state"], found["truncated"]) == ("done", True)
        assert 0 < sum(len(row[0]) for row in found["rows"]) <= 100_000


@pytest.mark.parametrize(
    "columns",
    [
        ",".join(["NULL"] * 1_200),
        ",".join(["''"] * 1_200),
        ",".join(["range"] * 300),
        "repeat(chr(1), 4000), range",
        "repeat('\"', 4000), range",
        "repeat('ü', 2000), NULL",
    ],
    ids=["nulls", "empty", "numbers", "control characters", "quotes", "umlauts"],
)
def test_results_are_bounded_by_what_is_sent_and_held_of_them(lake, columns):
    with SqlSandbox(lake.storage, SystemClock(), SystemIds(), SqlLimits(result=100_000)) as sandbox:
        found = ended(sandbox, lake, f"SELECT {columns} FROM range(10000)")
        assert (found["state"], found["truncated"]) == ("done", True)
        assert 50_000 < len(orjson.dumps(found["rows"])) <= 100_000
        (run,) = sandbox._runs.values()
        assert all(isinstance(row, bytes) for row in run.rows)
        assert run.bytes <= 100_000


def test_columns_that_are_too_many_are_refused(lake):
    with SqlSandbox(lake.storage, SystemClock(), SystemIds(), SqlLimits(result=100_000)) as sandbox:
        found = ended(sandbox, lake, "SELECT " + ",".join(["NULL"] * 10_000))
        assert (found["state"], found["rows"]) == ("failed", [])
        assert "10000 columns" in found["error"]


def test_results_that_are_kept_are_bounded_together(lake):
    limits = SqlLimits(result=100_000, kept=250_000)
    with SqlSandbox(lake.storage, SystemClock(), SystemIds(), limits) as sandbox:
        runs = []
        for _ in range(5):
            runs.append(begun(sandbox, lake, "SELECT repeat('x', 1000) FROM range(10000)"))
            eventually(lambda: sandbox.look(runs[-1], "User:ann")["state"] == "done", "its end")
            assert sum(run.bytes for run in sandbox._runs.values()) <= 350_000
        assert len(looked(sandbox, runs[-1])["rows"]) > 50
        with pytest.raises(NoSuchQueryError):
            sandbox.look(runs[0], "User:ann")


def test_a_process_that_has_gone_wild_is_not_listened_to(lake):
    """What it claims to send is not held, and neither is what it sends."""
    with SqlSandbox(lake.storage, SystemClock(), SystemIds(), SqlLimits(result=1_000)) as sandbox:
        run = SqlRun("1", "User:ann", 0.0, Readable(list, lambda _: None))
        sandbox._take(run, {"rows": [["x" * 100]] * 100}, 10_000)
        assert (run.state, run.truncated, len(run.rows)) == ("done", True, 9)
    with pytest.raises(FrameTooLargeError):
        receive(io.BytesIO(b"\x7f\xff\xff\xff"), 1_000)


def test_only_so_many_run_at_once(lake):
    with SqlSandbox(lake.storage, SystemClock(), SystemIds(), SqlLimits(at_once=1)) as sandbox:
        begun(sandbox, lake, ENDLESS)
        with pytest.raises(TooManyQueriesError, match="1 queries run already"):
            begun(sandbox, lake, "SELECT 1")


def test_others_do_not_see_a_query(sandbox, lake):
    run = begun(sandbox, lake, "SELECT 1")
    for call in (sandbox.look, sandbox.cancel):
        with pytest.raises(NoSuchQueryError):
            call(run, "User:bob")


NO_QUERIES = [("", None), ("  ", None), ("SELECT 1" + " " * 100_000, None), ("SELECT 1", 0)]


@pytest.mark.parametrize(("query", "rows"), NO_QUERIES)
def test_what_is_no_query(sandbox, lake, query, rows):
    with pytest.raises(InvalidQueryError):
        begun(sandbox, lake, query, rows=rows)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
@pytest.mark.parametrize(
    "deed",
    [
        "open('/etc/passwd')",
        "import socket; socket.socket()",
        "import os; os.pipe()",
        "import subprocess; subprocess.run(['true'])",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)) if os.getuid() else open('/etc/passwd')",
        "bytearray(1 << 30)",
    ],
)
def test_a_confined_process_opens_nothing_more(deed):
    """Whatever a query had DuckDB do, and be it code of its own."""
    program = (
        "import os, sys, socket, resource, subprocess\nfrom tidelog.console.sql.confinement import confine\n"
        f"confine(64 << 20, 60, 1)\ntry:\n    exec({deed!r})\nexcept (OSError, MemoryError, ValueError) as e:\n"
        "    print(type(e).__name__)\nelse:\n    print('did it')"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() in ("OSError", "MemoryError", "ValueError"), found.stderr
