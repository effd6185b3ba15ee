"""The demo with a Kafka client: whole, as a person runs it; then again on the same lake, with a wrong result."""

import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.demo_runs import FLIGHTS, commands_to_try, counts, shell, shown_with_one_average_off, whole_demo

from tidelog.cli.demo import kafka_steps


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return whole_demo(tmp_path_factory.mktemp("demo"), "--kafka")


def test_the_whole_demo(whole: tuple[Path, str]) -> None:
    folder, shown = whole
    lake = folder / "demo-lake"
    assert counts(lake)["flights"] == FLIGHTS
    assert "336,776 records" in shown
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


def test_another_run_starts_afresh_and_tells_a_wrong_result(
    whole: tuple[Path, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_steps, "YEAR_S", 0.0)
    shown = shown_with_one_average_off(whole[0] / "demo-lake", monkeypatch, kafka=True)
    assert (shown.count("✓"), shown.count("✗")) == (5, 2)
