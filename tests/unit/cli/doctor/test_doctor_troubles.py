"""Troubles that are planted in a lake: `tidelog doctor` names each, says what to do, and exits with the right code."""

import json
import os
import shutil
import socket
import time
from collections import namedtuple

import pytest
from support.cli_calls import cli, done
from support.logs import FakeClock
from support.small_s3 import small_s3

from tidelog.log.base.errors import StorageFullError
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder
from tidelog.operations import health
from tidelog.retention.run_history import PATH, MaintenanceRun, maintenance_runs

TWO_HOURS_S = 7_200
ERRORS, WARNINGS = 3, 0


class _Patient:
    """A lake of this machine that has been well, with one topic: its past is written two hours ago."""

    def __init__(self, folder):
        self.folder = folder
        self.address = str(folder)
        self.clock = FakeClock(int(time.time() * 1000) - TWO_HOURS_S * 1000)
        with self.lake() as lake:
            lake.create_topic("orders", 1, config={"log.checkpoint.interval": "10"})
            lake.topic("orders").append([{"value": "1"}])
        done("maintain", "--lake", self.address)

    def lake(self, **more):
        return Lake(self.address, clock=self.clock, **more)

    def examined(self, code, *options):
        return examined(code, self.address, *options)


def examined(code, address, *options):
    """{rule: finding}, when the command ends with `code`."""
    result = cli("doctor", "--lake", address, "--format", "json", *options)
    assert result.exit_code == code, result.output
    return {one["rule"]: one for one in json.loads(result.stdout)["findings"]}


@pytest.fixture
def patient(tmp_path):
    return _Patient(tmp_path / "lake")


def only(found, rule):
    """What is said of the one trouble that there is."""
    assert set(found) == {rule}
    return found[rule]["what"], found[rule]["do"]


def test_nothing_is_wrong(patient):
    assert patient.examined(0) == {}


def test_the_page_for_people_says_the_same(patient):
    (patient.folder / "orders" / "_delta_log" / f"{2:020}.json").write_text("no entry")
    result = cli("doctor", "--lake", patient.address)
    assert result.exit_code == ERRORS
    words = " ".join(result.stdout.split())
    assert "1. error topic-broken" in words
    assert "-> 'tidelog check orders' names all that is broken" in words


def test_a_store_that_does_not_answer():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        settings = {
            "lake.s3.endpoint": f"http://127.0.0.1:{taken.getsockname()[1]}",
            "lake.s3.region": "us-east-1",
            "lake.s3.access.key.id": "a",
            "lake.s3.secret.access.key": "b",
            "lake.store.retries": "0",
        }
        what, do = only(examined(ERRORS, "s3://bucket/lake", *as_options(settings)), "store-unreachable")
    assert "can't be used" in what
    assert "credentials" in do


def as_options(settings):
    return [word for pair in settings.items() for word in ("--store-option", "=".join(pair))]


def test_a_store_that_lets_two_create_one_object():
    with small_s3() as store:
        with Lake("s3://bucket/lake", options=store.options) as lake:
            lake.create_topic("orders", 1)
        store.ignores_conditions = True
        found = examined(ERRORS, "s3://bucket/lake", *as_options(store.options))
    assert "does not do what a log needs" in found["store-dishonest"]["what"]
    assert "Stop all writers now" in found["store-dishonest"]["do"]


def test_a_clock_that_is_days_off():
    with small_s3() as store:  # its clock stands still
        with Lake("s3://bucket/lake", options=store.options) as lake:
            lake.create_topic("orders", 1)
        found = examined(WARNINGS, "s3://bucket/lake", *as_options(store.options))
    assert set(found) == {"store-doubtful", "maintenance-due"}
    assert "clock" in found["store-doubtful"]["what"]
    assert "NTP" in found["store-doubtful"]["do"]


def test_a_lake_of_a_format_that_is_unknown(patient):
    (patient.folder / "__lake.json").write_text('{"format": 99, "config": {}}')
    what, do = only(patient.examined(ERRORS), "format-unknown")
    assert "99" in what
    assert "Install the tidelog that wrote it" in do


def test_a_package_of_another_version(patient, monkeypatch):
    monkeypatch.setattr(health, "requires", lambda _: ["pyarrow<1"])
    what, do = only(patient.examined(WARNINGS), "versions")
    assert "pyarrow is" in what
    assert do == "pip install 'pyarrow<1'"


@pytest.mark.parametrize(
    ("free", "rule", "code"), [(1 << 30, "disk-full", ERRORS), (5 << 30, "disk-nearly-full", WARNINGS)]
)
def test_a_disk_that_fills_up(patient, monkeypatch, free, rule, code):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100 << 30, (100 << 30) - free, free))
    what, do = only(patient.examined(code), rule)
    assert f"{free / 2**30:.1f} GiB left of 100" in what
    assert "retention" in do


def test_a_topic_that_nobody_can_checkpoint(patient):
    def refuses(*_, **__):
        raise StorageFullError("No space left.")

    with patient.lake(checkpointer=refuses) as lake:
        for _ in range(60):
            lake.topic("orders").append([{"value": "1"}])
    what, do = only(patient.examined(WARNINGS), "checkpoint-late")
    assert "'orders' has 6" in what
    assert "tidelog maintain --topic orders" in do


def noted_two_hours_ago(patient, *failures):
    with patient.lake() as lake:
        (last, *_) = maintenance_runs(lake.storage)
        run = {name: getattr(last, name) for name in MaintenanceRun.__slots__}
        aged = run | ({"failures": failures} if failures else {"at_ms": patient.clock.now_ms()})
        lake.storage.put(PATH, json.dumps([aged]).encode())


def test_maintenance_that_fails(patient):
    noted_two_hours_ago(patient, "orders: No space left.")
    what, do = only(patient.examined(ERRORS), "maintenance-failed")
    assert "orders: No space left." in what
    assert "tidelog maintain" in do


def test_holds_of_jobs_that_are_gone(patient):
    with patient.lake() as lake:
        holder = Holder(lake.storage, lake.clock, lake.ids, "a job")
        holder.hold("orders", lambda: lake.topic("orders").state().version)
        path = patient.folder / holder.path("orders")
    days_ago_s = time.time() - 30 * 86_400
    os.utime(path, (days_ago_s, days_ago_s))
    what, do = only(patient.examined(WARNINGS), "holds-abandoned")
    assert "'orders' has 1 holds of jobs that are gone" in what
    assert "tidelog maintain" in do
