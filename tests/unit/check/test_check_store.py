"""Trying a store: what holds, what fails, and that nothing is left behind."""

import json
import re
import threading
from pathlib import Path

import pytest
from support.cli_calls import cli, refused
from support.faults import FaultyStorage
from support.small_s3 import options_of, small_nodes, small_s3

from tidelog.check.store import RACERS, StoreReport, TrialResult, check_store
from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.base.errors import StoragePermissionError, StorageUnavailableError
from tidelog.log.storage import MemoryStorage, Storage, open_storage

URI = "s3://bucket/lake"
DEMANDS = [
    "what was written is read",
    "what is there is not created again",
    "of many writers that create at once one wins",
    "listings are complete and in order",
    "large objects appear whole",
    "what was deleted is gone",
    "the store tells the time",
]
KINDS = ["put", "get", "put-if-absent", "list", "upload of 11 MB", "read of a part", "delete"]


def tried(storage: Storage) -> StoreReport:
    return check_store(storage, SystemClock(), SystemIds())


def failed(report: StoreReport) -> dict[str, str]:
    return {trial.demand: trial.seen for trial in report.trials if trial.verdict is TrialResult.FAILS}


def every_object(storage: Storage, folder: str = "") -> list[str]:
    inside = [every_object(storage, f"{folder}/{name}".strip("/")) for name in storage.list_folders(folder)]
    return [found.path for found in storage.list_after(folder)] + [path for found in inside for path in found]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_store_that_is_fit(kind: str, tmp_path: Path):
    storage = MemoryStorage("m") if kind == "memory" else open_storage(tmp_path)
    storage.put("mine", b"1")
    report = tried(storage)
    assert (report.fit, report.left, report.place, report.uri) == (True, (), "", storage.uri)
    assert [(trial.demand, trial.verdict) for trial in report.trials] == [(demand, "holds") for demand in DEMANDS]
    assert sorted(report.latencies) == sorted(KINDS)
    assert all(0 <= one.median_ms <= one.most_ms and one.calls for one in report.latencies.values())
    assert every_object(storage) == ["mine"]
    assert json.loads(json.dumps(report.to_dict()))["fit"] is True


def test_a_server_that_is_fit_but_for_its_clock():
    with small_s3() as s3:
        report = tried(open_storage(URI, s3.options))
        assert (report.fit, report.place, s3.objects) == (True, s3.url, {})
        (warned,) = [trial for trial in report.trials if trial.verdict is TrialResult.WARNING]
        assert (warned.demand, "s apart" in warned.seen) == ("the store tells the time", True)


def test_a_server_that_ignores_conditions():
    with small_s3(ignores_conditions=True) as s3:
        found = failed(tried(open_storage(URI, s3.options)))
        assert list(found) == DEMANDS[1:3]
        assert "created again although it was there" in found[DEMANDS[1]]
        assert f"{RACERS} of {RACERS} writers at once believed" in found[DEMANDS[2]]
        assert s3.objects == {}


def test_a_server_that_looks_before_the_object_comes():
    """It refuses what is there, and yet lets two create one object at once."""
    with small_s3(looks_early=re.compile("/race/"), at_once=threading.Barrier(RACERS)) as s3:
        found = failed(tried(open_storage(URI, s3.options)))
        assert list(found) == [DEMANDS[2]]


def test_a_server_that_forgets():
    with small_s3(forgets=re.compile("/plain/003$")) as s3:
        found = failed(tried(open_storage(URI, s3.options)))
        assert "was not there" in found[DEMANDS[0]]
        assert DEMANDS[3] in found


def test_an_error_fails_its_demand_and_the_others_are_tried():
    def no_listing(method: str, path: str, phase: str) -> None:
        if method == "list_after":
            raise StoragePermissionError("listing is denied")

    inner = MemoryStorage("m")
    found = failed(tried(FaultyStorage(inner, no_listing)))
    assert found == dict.fromkeys((DEMANDS[3], DEMANDS[5], DEMANDS[6]), "listing is denied")
    assert every_object(inner) == []


def test_races_without_clear_answers_are_no_failure():
    def lost_answers(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "after") and "/race/" in path:
            raise StorageUnavailableError("no answer")

    report = tried(FaultyStorage(MemoryStorage("m"), lost_answers))
    assert report.fit
    (race,) = [trial.seen for trial in report.trials if trial.demand == DEMANDS[2]]
    assert "left 160 of 160 calls without a clear answer" in race


def test_what_can_not_be_removed_is_told():
    def no_deleting(method: str, path: str, phase: str) -> None:
        if method == "delete" and path.endswith("/first"):
            raise StoragePermissionError("deleting is denied")

    report = tried(FaultyStorage(MemoryStorage("m"), no_deleting))
    assert [path.rpartition("/")[2] for path in report.left] == ["first"]


def test_a_store_that_can_not_be_written_is_an_error():
    def denied(method: str, path: str, phase: str) -> None:
        raise StoragePermissionError("denied")

    with pytest.raises(StoragePermissionError, match="denied"):
        tried(FaultyStorage(MemoryStorage("m"), denied))


# --- the command ---------------------------------------------------------------------------------------------


def told(options: dict[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in ("--store-option", f"{name}={value}")]


def test_the_command_says_what_it_tried():
    result = cli("check", "--store", "memory://store-check")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].strip() == "memory://store-check"
    assert [line[9:].split("  ")[0] for line in lines if line.startswith("holds")] == DEMANDS
    assert {line.split("  ")[0].strip() for line in lines} >= set(KINDS)
    assert lines[-1] == "fit: nothing speaks against a lake there"
    shown = json.loads(cli("check", "--store", "memory://store-check", "--format", "json").stdout)
    assert (shown["fit"], [trial["demand"] for trial in shown["trials"]]) == (True, DEMANDS)


def test_the_command_refuses_a_store_and_shows_no_secret():
    with small_s3(ignores_conditions=True) as s3:
        result = cli("check", "--store", URI, *told(s3.options))
        assert result.exit_code == 3
        assert s3.url in result.stdout
        assert result.stdout.splitlines()[-1].startswith("unfit: no lake can be kept there")
        assert not any(secret in result.output for secret in ("AKIASMALL", "smallsecret"))


def test_the_command_tries_no_lake_besides():
    assert "--store tries an address" in refused(2, "check", "orders", "--store", "memory://store-check")
    assert "no option 'lake.s3.endpiont'" in refused(
        1, "check", "--store", URI, "--store-option", "lake.s3.endpiont=http://h"
    )


def test_a_store_is_raced_for_through_each_of_its_nodes():
    with small_nodes() as nodes:
        storage = open_storage(URI, options_of(nodes))
        trial = check_store(storage, SystemClock(), SystemIds(), races=30).trials[2]
        assert (trial.verdict, "30 objects" in trial.seen, "through 3 nodes" in trial.seen) == ("holds", True, True)
        assert all(sum("PUT" in line and "race" in line for line in node.seen) >= 30 for node in nodes)
        nodes[1].lock, nodes[1].objects = threading.Lock(), {}  # it goes its own way
        assert "at once believed" in failed(tried(storage))["of many writers that create at once one wins"]


def test_a_node_that_misses_what_others_have_is_a_warning():
    with small_nodes() as nodes:
        nodes[2].misses = re.compile("/race/")
        trial = tried(open_storage(URI, options_of(nodes))).trials[2]
        assert trial.verdict == "warning"
        assert "20 times a node said that an object was not there" in trial.seen


def test_a_node_that_is_away_leaves_calls_open():
    with small_nodes() as nodes:
        nodes[2].away = True
        report = tried(open_storage(URI, options_of(nodes)))
        assert report.fit
        assert re.search(r"left \d+ of 160 calls without a clear answer", report.trials[2].seen)


def test_races_by_the_command():
    with small_s3() as s3:
        options = [part for key, value in s3.options.items() for part in ("--store-option", f"{key}={value}")]
        assert "7 objects, each wanted by 8" in cli("check", "--store", URI, *options, "--races", "7").stdout
