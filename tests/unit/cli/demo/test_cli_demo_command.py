"""tidelog demo: its options. The demo itself is the main job, and needs Spark."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tidelog.cli.main import app


@pytest.fixture
def calls(monkeypatch):
    """The folders that the demo is run in. It ends with code 1 in the folder wrong."""
    folders = []

    def run_demo(folder, console, *, kafka):
        folders.append((folder, "kafka") if kafka else folder)
        return int(folder == Path("wrong"))

    def run_replicas(folder, console, flights):
        folders.append((folder, "replicas"))
        return int(folder == Path("wrong"))

    monkeypatch.setitem(sys.modules, "tidelog.cli.demo.run", SimpleNamespace(run_demo=run_demo))
    monkeypatch.setitem(sys.modules, "tidelog.cli.demo.replica_steps", SimpleNamespace(run_replicas=run_replicas))

    def run_branch(folder, console, flights):
        folders.append((folder, "branch"))
        return int(folder == Path("wrong"))

    monkeypatch.setitem(sys.modules, "tidelog.cli.demo.branch_steps", SimpleNamespace(run_branch=run_branch))
    monkeypatch.setitem(sys.modules, "tidelog.cli.demo.flights", SimpleNamespace(load_flights=lambda: None))
    return folders


def run(*args, **env):
    return CliRunner().invoke(app, ["demo", *args], env=env)


@pytest.mark.parametrize(
    ("args", "folder"),
    [([], None), (["--lake", "here"], Path("here")), (["--lake", "file:///data/here"], Path("/data/here"))],
)
def test_where_it_runs(calls, args, folder):
    assert run(*args, TIDELOG_LAKE="/somebody/elses").exit_code == 0
    assert calls == [folder]


def test_a_kafka_client_produces_where_that_is_asked_for(calls):
    assert run("--kafka").exit_code == 0
    assert calls == [(None, "kafka")]


def test_it_runs_on_a_store_of_nodes_where_that_is_asked_for(calls):
    assert run("--replicas").exit_code == 0
    assert run("--replicas", "--lake", "wrong").exit_code == 1
    assert calls == [(None, "replicas"), (Path("wrong"), "replicas")]


def test_a_bad_producer_is_taken_out_where_that_is_asked_for(calls):
    assert run("--branch").exit_code == 0
    assert run("--branch", "--lake", "wrong").exit_code == 1
    assert calls == [(None, "branch"), (Path("wrong"), "branch")]


def test_wrong_results_set_the_exit_code(calls):
    assert run("--lake", "wrong").exit_code == 1


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--lake", "s3://bucket/x"], "is a local folder"),
        (["--format", "json"], "leave out --format"),
        (["--kafka", "--replicas"], "demos of their own"),
    ],
)
def test_refusals(calls, args, why):
    result = run(*args)
    assert (result.exit_code, result.stdout, calls) == (2, "", [])
    assert why in result.stderr


def test_debug_shows_where_an_error_happened(calls):
    assert "Traceback" in run("--lake", "s3://bucket/x", "--debug").stderr
