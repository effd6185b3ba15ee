"""The demo with a Kafka client, as a person runs it but with fewer flights, and what it says to try."""

import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from support.demo_runs import commands_to_try, counts, shell, small_demo_with_kafka, some_flights


@pytest.fixture(autouse=True)
def _no_query_outlives_its_test() -> None:
    """No query runs in this process."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return small_demo_with_kafka(tmp_path_factory.mktemp("demo"))


def test_the_whole_demo(whole: tuple[Path, str]) -> None:
    folder, shown = whole
    lake = folder / "demo-lake"
    flights = some_flights()
    sent = flights.year.num_rows + flights.last_day.num_rows
    assert counts(lake)["flights"] == sent
    assert f"{sent:,} records" in shown
    assert (shown.count("✓"), shown.count("✗")) == (7, 0)
    log = (lake / "__demo/broker.log").read_text(encoding="utf-8")
    assert "Broker started" in log
    assert "Broker stopped" in log
    assert "Request failed" not in log


def test_what_it_says_to_try_works(whole: tuple[Path, str]) -> None:
    folder, shown = whole
    *commands, broker = commands_to_try(shown)
    assert len(commands) == 3
    for command in commands:
        done = shell(command, folder)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert broker.endswith("broker start --listener 127.0.0.1:9092")
    assert "is ready at 127.0.0.1:" in first_line(re.sub(r"9092$", "0", broker), folder)


def first_line(command: str, folder: Path) -> str:
    """The first line that a command prints, which is then asked to stop, and ends well."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            line = process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
            return line
        finally:
            with suppress(ProcessLookupError):
                process.kill()
