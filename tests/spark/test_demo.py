"""The demo: whole, as a person runs it; then again on the same lake, with a wrong result."""

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tidelog.cli.demo import checks
from tidelog.cli.demo.flights import closed_averages, load_flights
from tidelog.cli.demo.run import run_demo
from tidelog.log.lake import Lake

FLIGHTS = 336_776
SOME = 15_000


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=600)


def counts(lake: Path) -> dict[str, int]:
    with Lake(str(lake), create=False) as opened:
        return {name: sum(end - start for start, end in opened.offsets(name).values()) for name in opened.topics()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The whole demo in a process of its own: the folder that it ran in, and what it showed."""
    folder = tmp_path_factory.mktemp("demo")
    demo = shell(f"{sys.executable} -m tidelog demo", folder)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""  # what Spark prints is in its log
    return folder, demo.stdout


def test_the_whole_demo(whole: tuple[Path, str]) -> None:
    folder, shown = whole
    lake = folder / "demo-lake"
    assert counts(lake)["flights"] == FLIGHTS
    assert "LGA      Mon 2 Sep, 16:00" in shown
    assert (shown.count("✓"), shown.count("✗")) == (8, 0)
    assert "Spark" in (lake / "__demo" / "spark.log").read_text(encoding="utf-8")


def test_what_it_says_to_try_works(whole: tuple[Path, str]) -> None:
    folder, shown = whole
    lines = [line.strip() for line in shown.partition("Try next:")[2].splitlines()]
    commands = [line for line in lines if line and not line.startswith("#")]
    assert len(commands) == 5
    for command in commands:
        done = shell(command, folder)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert counts(folder / "demo-lake")["greetings"] == 1


def test_another_run_starts_afresh_and_tells_a_wrong_result(
    whole: tuple[Path, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer flights, and one of the averages that it compares with a minute off."""

    def one_minute_off(*args):
        averages = closed_averages(*args)
        hour, (scheduled, departed, delay) = next((h, a) for h, a in averages.items() if a[2] is not None)
        return {**averages, hour: (scheduled, departed, delay + 1)}

    monkeypatch.setattr(checks, "closed_averages", one_minute_off)
    lake, flights, out = whole[0] / "demo-lake", load_flights(), io.StringIO()
    flights = replace(flights, year=flights.year.slice(0, SOME))
    assert run_demo(lake, Console(file=out, width=100), flights=flights) == 1

    shown = out.getvalue()
    assert "An earlier demo's topics and checkpoint were deleted first." in shown
    assert counts(lake)["flights"] == SOME + flights.last_day.num_rows
    assert shown.count("1 are missing or differ") == 2
    assert (shown.count("✓"), shown.count("✗")) == (6, 2)
    assert "2 checks failed" in shown
    assert "Try next" not in shown
    spark.sql("SELECT 1").collect()  # the demo stops no session but its own
