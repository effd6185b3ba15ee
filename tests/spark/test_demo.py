"""The demo: whole, as a person runs it, and what it says to try."""

import re
from pathlib import Path

import pytest
from support.demo_runs import FLIGHTS, commands_to_try, counts, shell, whole_demo


@pytest.fixture(autouse=True)
def _no_query_outlives_its_test() -> None:
    """No query runs in this process."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return whole_demo(tmp_path_factory.mktemp("demo"))


def test_the_whole_demo(whole: tuple[Path, str]) -> None:
    folder, shown = whole
    lake = folder / "demo-lake"
    assert counts(lake)["flights"] == FLIGHTS
    assert counts(lake)["typed_flights"] > FLIGHTS - 1000  # all but the last day
    assert "LGA      Mon 2 Sep, 16:00" in shown
    assert "avg(columns.dep_delay)" in shown
    assert re.search(r"Frontier Airlines Inc\. +\d+ +20 min", shown)
    assert (shown.count("✓"), shown.count("✗")) == (9, 0)
    assert "Spark" in (lake / "__demo" / "spark.log").read_text(encoding="utf-8")


def test_what_it_says_to_try_works(whole: tuple[Path, str]) -> None:
    folder, shown = whole
    commands = commands_to_try(shown)
    assert len(commands) == 5
    for command in commands:
        done = shell(command, folder)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert counts(folder / "demo-lake")["greetings"] == 1
