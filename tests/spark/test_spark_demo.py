"""The demo on a lake of an earlier one, with a wrong result, in the session that is there."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.demo_runs import shown_with_one_average_off

from tidelog.cli.demo.lake import DemoFolder
from tidelog.log.lake import Lake


def test_another_run_starts_afresh_and_tells_a_wrong_result(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DemoFolder(tmp_path / "lake")
    with Lake(str(folder.lake)) as lake:
        folder.start_afresh(lake)
    shown = shown_with_one_average_off(folder.lake, monkeypatch)
    assert (shown.count("✓"), shown.count("✗")) == (7, 2)
