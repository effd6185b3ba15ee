"""`tidelog doctor` and `tidelog metrics`: what they print, and exit with."""

import json

import pytest
from support.cli_calls import cli, done, refused

from tidelog.log.base.clock import SystemClock
from tidelog.log.lake import Lake


@pytest.fixture
def lake(tmp_path):
    address = str(tmp_path / "lake")
    done("topic", "create", "orders", "--partitions", "1", "--lake", address)
    return address


def test_a_lake_that_is_well(lake):
    done("maintain", "--lake", lake)
    result = done("doctor", "--lake", lake)
    assert "topics 1" in result.stdout
    assert "All is well." in result.stdout


def test_a_warning_is_told_and_is_no_failure(lake):
    result = done("doctor", "--lake", lake)
    assert "1. warning  maintenance-due" in result.stdout
    assert "-> Run 'tidelog maintain --every 5m'" in result.stdout


def test_an_error_has_a_code_of_its_own(tmp_path):
    result = cli("doctor", "--lake", str(tmp_path / "none"))
    assert result.exit_code == 3
    assert "1. error  no-lake" in result.stdout


def test_json(lake):
    found = json.loads(done("doctor", "--lake", lake, "--format", "json").stdout)
    assert found["topics"] == 1
    assert [one["rule"] for one in found["findings"]] == ["maintenance-due"]
    assert set(found["findings"][0]) == {"rule", "level", "what", "do"}


def test_files_that_wait_are_told_with_how_much_and_until_when(lake):
    with Lake(lake) as opened:
        for _ in range(30):
            opened.topic("orders").append([{"value": b"x" * 100}])
    before_ms = SystemClock().now_ms()
    assert " wait (" in done("maintain", "--lake", lake).stdout.replace("\n", " ")
    found = json.loads(done("doctor", "--lake", lake, "--format", "json").stdout)
    assert found["waiting_files"] == 30
    assert found["waiting_bytes"] > 30 * 100
    # log.min.age.ms, and file.delete.delay.ms
    assert before_ms + 300_000 <= found["waiting_until_ms"] <= SystemClock().now_ms() + 361_000
    said = done("doctor", "--lake", lake).stdout
    assert "Files that left their topics wait to be deleted: 30 (" in said
    assert " UTC, by the next maintenance after that." in " ".join(said.split())
    assert "All is well." in said


def test_files_that_waited_long_enough_are_not_told(lake, monkeypatch):
    with Lake(lake) as opened:
        for _ in range(30):
            opened.topic("orders").append([{"value": b"x" * 100}])
    done("maintain", "--lake", lake)
    later_ms = SystemClock().now_ms() + 361_000
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: later_ms)
    assert "wait to be deleted" not in done("doctor", "--lake", lake).stdout


def test_metrics_once(lake):
    text = done("metrics", "--lake", lake, "--cluster", "prod").stdout
    assert 'kafka_topic_partitions{topic="orders"} 1' in text
    assert 'kafka_partition_latest_offset{cluster_name="prod",topic="orders",partition="0"} 0' in text


def test_metrics_of_no_lake(tmp_path):
    assert "There is no lake" in refused(1, "metrics", "--lake", str(tmp_path / "none"))
