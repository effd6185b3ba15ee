"""Processes whose streams are closed, piped to a reader that leaves early, or of a locale with ASCII only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_calls import open_lake
from support.logs import values

TIDELOG = [sys.executable, "-m", "tidelog"]
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "80"}


def shell(line: str, lake: Path, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """A line for bash, in which `tidelog` is this one; its exit code is that of the first command of a pipe."""
    env = {**os.environ, "TIDELOG_LAKE": str(lake), **environment}
    line = line.replace("tidelog", " ".join(TIDELOG)) + "\nexit ${PIPESTATUS[0]}"
    return subprocess.run(["bash", "-c", line], env=env, capture_output=True, check=False, timeout=60)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    with open_lake(str(tmp_path / "lake")) as opened:
        opened.topic("orders").append(values("é", key=[b"k"]))
    return tmp_path / "lake"


@pytest.mark.parametrize("command", ["tidelog", "tidelog topic", "tidelog topic create", "tidelog perf produce"])
def test_a_reader_of_help_that_leaves_early_is_no_failure(command: str, lake: Path):
    result = shell(f"{command} --help | head -1", lake)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize(
    "command",
    [
        "tidelog --help >&-",
        "tidelog --version >&-",
        "tidelog topic list >&-",
        "tidelog topic list >&- 2>&-",
        "tidelog topic describe orders --format json >&-",
        "tidelog consume orders -e -q >&-",
        "tidelog topic list <&- >&- 2>&-",
    ],
)
def test_a_closed_stdout_is_no_traceback(command: str, lake: Path):
    result = shell(command, lake)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("tidelog --help", 0),
        ("tidelog topic create --help", 0),
        ("tidelog topic list", 0),
        ("tidelog topic create ø", 1),
        ("tidelog topic list --øption", 2),
        ("tidelog check", 0),
        ("tidelog lake describe --all", 0),
    ],
)
def test_an_ascii_locale_is_no_traceback(command: str, code: int, lake: Path):
    result = shell(command, lake, **ASCII)
    assert result.returncode == code, result.stderr
    assert b"codec" not in result.stderr
    assert b"Traceback" not in result.stderr
    result.stdout.decode("ascii")


def test_json_is_whole_in_an_ascii_locale(lake: Path):
    with open_lake(str(lake)) as opened:
        opened.alter_topic("orders", config={"retention.ms": "1"})
    listed = shell("tidelog topic list --format json", lake, **ASCII)
    assert json.loads(listed.stdout)[0]["name"] == "orders"
    consumed = shell("tidelog consume orders -e -q -J", lake, **ASCII)
    assert json.loads(consumed.stdout)["payload"] == "é"
