"""uv and pip side by side: the demo's packages into an empty environment, from an empty cache and from a full one.

`.venv/bin/python benchmarks/installers.py` makes environments in a temporary folder, by turns, and prints a table. Both
take packages from where pip is configured to. pip compiles to bytecode as it installs and uv leaves that to the first
import, so that the first import of what the demo needs is timed as well.
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[1]
INSTALLERS = ("pip", "uv")
CACHES = ("empty", "full")
_IMPORT = "import pandas, pyarrow, pyspark.sql, tidelog.spark, tidelog.cli.demo.run"


def uv_variables() -> dict[str, str]:
    """What gives uv pip's configuration, by the rule of `.ci/parts.py`."""
    spec = importlib.util.spec_from_file_location("parts", ROOT / ".ci/parts.py")
    assert spec is not None
    assert spec.loader is not None
    parts = importlib.util.module_from_spec(spec)
    sys.modules["parts"] = parts
    spec.loader.exec_module(parts)
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    variables: dict[str, str] | None = parts.uv_environment(asked.stdout)
    if variables is None:
        raise SystemExit("pip is configured to something that uv has no setting for: nothing to compare.")
    return variables


def timed(command: list[str], environ: Mapping[str, str]) -> float:
    """Run a command; its seconds."""
    began = time.perf_counter()
    subprocess.run(command, env=dict(environ), check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - began


def install(installer: str, folder: Path, caches: Path, uv: Mapping[str, str]) -> tuple[float, float]:
    """Make an environment in `folder` with a cache in `caches`; seconds of the installation, and of the first import.

    What `.ci/setup` does: with uv, pip fetches uv itself first.
    """
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin/python")
    environ = {**os.environ, "PIP_CACHE_DIR": str(caches / "pip"), "UV_CACHE_DIR": str(caches / "uv")}
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
    if installer == "pip":
        seconds = timed([*pip, "-e", ".[demo]"], environ)
    else:
        seconds = timed([*pip, "uv>=0.9"], environ)
        by_uv = [str(folder / "bin/uv"), "pip", "install", "--quiet", "--python", python, "-e", ".[demo]"]
        seconds += timed(by_uv, {**environ, **uv, "VIRTUAL_ENV": str(folder)})
    first = timed([python, "-c", _IMPORT], environ)
    shutil.rmtree(folder)
    return seconds, first


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time uv and pip at the demo's packages.")
    parser.add_argument("--runs", type=int, default=2, help="environments by each, from each kind of cache")
    runs = parser.parse_args().runs
    uv = uv_variables()
    took: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="installers-") as name:
        work = Path(name)
        for run in range(runs):
            for installer in INSTALLERS:
                caches = work / f"caches-{installer}-{run}"
                for cache in CACHES:
                    seconds = install(installer, work / "venv", caches, uv)
                    print(
                        f"{installer}, {cache} cache: {seconds[0]:.1f} s, first import {seconds[1]:.1f} s", flush=True
                    )
                    took.setdefault((installer, cache), []).append(seconds)
        print(f"\n{machine.one_line(machine.describe(work))}\n")
    print("| installer | cache | installed, s | first import, s |\n|---|---|---|---|")
    for (installer, cache), times in took.items():
        installed, first = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"| {installer} | {cache} | {installed:.0f} | {first:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
