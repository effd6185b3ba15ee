"""The demo as its tests run it: whole, with a Kafka client and fewer flights, and with a wrong result."""

import io
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.nursery import TESTS

from tidelog.cli.demo import checks
from tidelog.cli.demo.flights import Flights, closed_averages, load_flights
from tidelog.cli.demo.run import run_demo
from tidelog.log.lake import Lake

FLIGHTS = 336_776
SOME = 15_000
# The command with fewer flights, which go by in a second.
_SMALL = """
import sys
from support.demo_runs import some_flights
from tidelog.cli.demo import kafka_steps, run
from tidelog.cli.main import run as tidelog
run.load_flights, kafka_steps.YEAR_S = some_flights, 1.0
sys.argv = ["-m", *sys.argv[1:]]
tidelog()
"""


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a command does that is typed in this folder."""
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=600)


def counts(lake: Path) -> dict[str, int]:
    """The records of each topic."""
    with Lake(str(lake), create=False) as opened:
        return {name: sum(end - start for start, end in opened.offsets(name).values()) for name in opened.topics()}


def some_flights() -> Flights:
    """The first flights of the year, and all of its last day."""
    flights = load_flights()
    return replace(flights, year=flights.year.slice(0, SOME))


def whole_demo(folder: Path) -> tuple[Path, str]:
    """The whole demo in a process of its own: the folder that it ran in, and what it showed."""
    return _shown(f"{sys.executable} -m tidelog demo", folder)


def small_demo_with_kafka(folder: Path) -> tuple[Path, str]:
    """The demo with a Kafka client and fewer flights, in a process of its own: its folder, and what it showed."""
    words = [sys.executable, "-c", _SMALL, "demo", "--kafka"]
    return _shown(f"PYTHONPATH={TESTS} {shlex.join(words)}", folder)


def _shown(command: str, folder: Path) -> tuple[Path, str]:
    demo = shell(command, folder)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""  # what Spark and the broker print is in their logs
    return folder, demo.stdout


def commands_to_try(shown: str) -> list[str]:
    """The commands that the demo says to try."""
    lines = [line.strip() for line in shown.partition("Try next:")[2].splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def shown_with_one_average_off(lake: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a demo shows with fewer flights, and one of the averages that it compares with a minute off."""

    def one_minute_off(*args: Any) -> Any:
        averages = closed_averages(*args)
        hour, (scheduled, departed, delay) = next((h, a) for h, a in averages.items() if a[2] is not None)
        return {**averages, hour: (scheduled, departed, delay + 1)}

    monkeypatch.setattr(checks, "closed_averages", one_minute_off)
    flights, out = some_flights(), io.StringIO()
    assert run_demo(lake, Console(file=out, width=100), flights=flights) == 1

    shown = out.getvalue()
    assert "An earlier demo's topics and checkpoint were deleted first." in shown
    assert counts(lake)["flights"] == SOME + flights.last_day.num_rows
    assert shown.count("1 are missing or differ") == 2
    assert "2 checks failed" in shown
    assert "Try next" not in shown
    return shown
