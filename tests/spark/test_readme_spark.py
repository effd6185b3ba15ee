"""The README's code, run in the order in which a person meets it, on one session and one lake."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.readme import blocks

from tidelog.log.lake import Lake


def test_the_readme_works_as_it_stands(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "lake"
    program = f"{sys.executable} -m tidelog"
    names: dict[str, object] = {}
    for language, code in blocks("python", "sh"):
        here = code.replace("/tmp/lake", str(lake)).replace(".venv/bin/tidelog", program)
        if language == "python":
            exec(compile(here, "README", "exec"), names)
        elif "make " not in here:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", here], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{here}\n{done.stdout}\n{done.stderr}"
            sys.stdout.write(done.stdout)
    shown = capfd.readouterr().out

    assert "0:3 cleo: JAM" in shown
    assert "| ann|     2|     2|" in shown
    assert "{0: (4, 5)}" in shown
    assert "[b'jam', b'salt']" in shown
    with Lake(str(lake), create=False) as opened:
        assert opened.offsets("orders") == {0: (0, 5)}
        assert len(opened.offsets("events")) == 12
        assert sum(end for _, end in opened.offsets("events").values()) == 1000
