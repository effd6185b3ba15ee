"""What tests need beside Python's packages: how to see each tool, how to get it, and which tests skip without it.

A test whose tool is missing skips by the tool's name; where CI=true it fails. As a program (any Python 3.11, no
packages): `python tests/support/tools.py` prints the table, with `debian` only the packages of Debian that are missing.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]
# What tests install themselves, by the package clients of the languages; below .venv, as it goes with it.
BIN = ROOT / ".venv/bin"
POSTGRES = "/usr/lib/postgresql"


def _on_path(program: str) -> Callable[[], str | None]:
    return lambda: shutil.which(program)


def _postgres() -> str | None:
    kept = sorted(Path(POSTGRES).glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    return str(kept[-1]) if kept else shutil.which("postgres")


def _headers() -> str | None:
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return str(header) if header.exists() else None


def _installed(program: str) -> Callable[[], str | None]:
    return lambda: str(BIN / program) if (BIN / program).exists() else None


@dataclass(frozen=True)
class Tool:
    """A program that tests run. `see` gives its path where it is; `debian`: the package that brings it."""

    name: str
    see: Callable[[], str | None]
    get: str
    tests: str
    debian: str = ""


def _of_debian(name: str, package: str, tests: str, see: Callable[[], str | None] | None = None) -> Tool:
    return Tool(name, see or _on_path(name), f"apt install {package}", tests, package)


_NATIVE = "record batches read in native code"
_JDK = "a JDK of version 17 or newer: apt install openjdk-17-jdk-headless, brew install openjdk@17, or SDKMAN"
_GO = "Go: https://go.dev/dl"
_NODE = "Node: https://nodejs.org, with npm"

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("java", _on_path("java"), _JDK, "Spark, and Kafka's programs at brokers"),
        Tool("javac", _on_path("javac"), _JDK, "Java's Kafka clients at brokers"),
        Tool("go", _on_path("go"), _GO, "Go's Kafka clients at brokers, and the S3 server"),
        Tool("npm", _on_path("npm"), _NODE, "Node's Kafka clients at brokers, and axe-core for the console's page"),
        Tool("versitygw", _installed("versitygw"), f"make setup, where there is {_GO}", "lakes on S3"),
        Tool("hadolint", _installed("hadolint"), "make setup, on Linux", "the images' recipe, linted"),
        _of_debian("kcat", "kcat", "kcat at brokers"),
        _of_debian("chromium", "chromium", "the console's page in a browser"),
        _of_debian("postgres", "postgresql", "connectors of PostgreSQL and JDBC", _postgres),
        _of_debian("prometheus", "prometheus", "metrics and alarms in Prometheus"),
        _of_debian("gcc", "gcc", _NATIVE),
        _of_debian("Python.h", "python3-dev", _NATIVE, _headers),
        _of_debian("systemd-analyze", "systemd", "units and timers, checked by systemd"),
        _of_debian("promtool", "prometheus", "rules of alarms, checked by Prometheus"),
    )
}


def missing(program: str, what: str) -> NoReturn:
    """Skip a test for want of a program, or fail it where CI=true; `what` can't run."""
    import pytest  # as a program, this module runs before there are packages

    tool = TOOLS.get(program)
    why = f"{what} can't run: '{program}' is not there" + (f" ({tool.get})" if tool else "")
    if os.environ.get("CI") == "true":
        pytest.fail(f"{why}, and CI must have it", pytrace=False)
    pytest.skip(why)


def require(name: str, what: str = "") -> str:
    """The path of a tool of the table; the test skips where it is not, and fails in CI."""
    tool = TOOLS[name]
    return tool.see() or missing(name, what or tool.tests)


def missing_packages() -> Iterator[str]:
    """The packages of Debian whose tools are missing, each once."""
    yield from dict.fromkeys(tool.debian for tool in TOOLS.values() if tool.debian and tool.see() is None)


def table() -> Iterator[str]:
    """A line a tool: its name, where it is or how to get it, and the tests that skip without it."""
    for tool in TOOLS.values():
        there = tool.see()
        yield f"{tool.name:<12}{there or 'missing: ' + tool.get}"
        if there is None:
            yield f"{'':<12}these tests skip, and fail where CI=true: {tool.tests}"


if __name__ == "__main__":
    for line in missing_packages() if sys.argv[1:] == ["debian"] else table():
        sys.stdout.write(f"{line}\n")
