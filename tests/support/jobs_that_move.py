"""Calls of the jobs that move data, in this process and on the session that runs."""

import json
from types import ModuleType
from typing import Any

import pytest

from tidelog.log.lake import Lake


def moved(job: ModuleType, capsys: pytest.CaptureFixture[str], lake: Lake, *args: str) -> dict[str, Any]:
    """Run a job that must succeed; the document that it prints."""
    capsys.readouterr()
    code = job.main([*args, "--lake", lake.uri, "--format", "json"])
    printed = capsys.readouterr()
    assert code == 0, printed.out + printed.err
    return json.loads(printed.out)


def refused(job: ModuleType, capsys: pytest.CaptureFixture[str], lake: Lake, *args: str) -> tuple[int, str]:
    """Run a job that must fail and print nothing to stdout; its exit code, and what it says on one line."""
    capsys.readouterr()
    code = job.main([*args, "--lake", lake.uri])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    return code, " ".join(printed.err.split())


def ranges(report: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    """(topic, partition, from, to) of a report, without partitions of which nothing was moved."""
    found = [(p["topic"], p["partition"], p["from"], p["to"]) for p in report["partitions"]]
    return [place for place in found if place[2] < place[3]]
