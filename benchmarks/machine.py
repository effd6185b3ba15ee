"""The machine and the versions that figures belong to, and what processes on it use."""

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("tidelog", "pyspark", "delta-spark", "deltalake", "pyarrow", "numpy")


def describe(folder: Path) -> dict[str, Any]:
    """What a reader of the figures must know: cores, memory, the file system below `folder`, versions, load."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "file_system": _file_system(folder),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        "versions": {name: version(name) for name in _PACKAGES},
        "load_before": round(os.getloadavg()[0], 2),
    }


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether figures of the one machine may stand beside the other's in one table."""
    return all(one[fact] == other[fact] for fact in ("cpu", "cores", "file_system"))


def one_line(facts: dict[str, Any]) -> str:
    """The same for a heading."""
    return (
        f"{facts['cores']} cores ({facts['cpu']}), {facts['memory_gib']:g} GiB, {facts['file_system']}, "
        f"Python {facts['python']}, Spark {facts['versions']['pyspark']}"
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _file_system(folder: Path) -> str:
    run = subprocess.run(["df", "-PT", str(folder)], capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    return lines[1].split()[1] if run.returncode == 0 and len(lines) > 1 else "unknown"


def _java() -> str:
    java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return "none"
    return (run.stderr.splitlines() or ["unknown"])[0]
