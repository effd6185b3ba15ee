"""confluent-kafka-python's own integration tests, of a checkout of its repository: its package has none.

They are those of consumers, producers and of its AdminClient; what asks for share groups is left out.
"""

import os
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from compat.suite import ABSENT, FAILED, GROUP_PROTOCOL, PASSED, SKIPPED, Outcome, built, named, run

SUITE = "confluent-kafka-python"
_FOLDERS = ("tests/integration/consumer", "tests/integration/admin", "tests/integration/producer")
_CLIENT = "confluent-kafka[avro,json,protobuf,schemaregistry]==2.16.1"
_OF_TESTS = ("trivup==0.12.2", "pytest", "pytest-timeout", "pytest-asyncio", "pyyaml")
_LIMIT_S = 3600


def checkout(programs: Path) -> Path | None:
    """The repository's folder below that of programs, where it is there."""
    return next((path for path in sorted(programs.glob(f"{SUITE}*")) if (path / "tests/integration").is_dir()), None)


def build(folder: Path) -> Path:
    """A Python of its own with the client and what its tests import. Does nothing the second time."""
    home = folder / SUITE
    python = home / "bin/python"
    if not (home / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        built([sys.executable, "-m", "venv", home], folder / "venv.log", cwd=folder)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        built([*pip, _CLIENT, *_OF_TESTS], folder / "pip.log", cwd=folder)
        (home / "complete").touch()
    return python


def absent() -> Outcome:
    """How the suite ends where no checkout is."""
    return Outcome(SUITE, "tests/integration", ABSENT, 0.0, "put a checkout of its repository into .venv/programs")


def outcomes(python: Path, tree: Path, address: str, logs: Path, only: str, protocol: str) -> Iterator[Outcome]:
    """Run the tests by pytest. `only`: a part of a name."""
    report = logs / f"{protocol}.xml"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300", f"--junitxml={report}"]
    environment = {**os.environ, "BROKERS": address, GROUP_PROTOCOL: protocol}
    chosen = ["-k", only] if only else []
    code = run([*command, *chosen, *_FOLDERS], logs / f"{protocol}.log", cwd=tree, env=environment, limit_s=_LIMIT_S)
    if not report.exists():
        words = f"no end within {_LIMIT_S} s" if code is None else f"ended with {code}"
        yield Outcome(SUITE, named("tests/integration", protocol), FAILED, 0.0, words)
        return
    yield from read(report, protocol)


def read(report: Path, protocol: str) -> Iterator[Outcome]:
    """How each test of a report of pytest (JUnit's XML) ended."""
    for case in ET.parse(report).getroot().iter("testcase"):
        bad = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
        state = PASSED if bad is None else SKIPPED if bad.tag == "skipped" else FAILED
        words = "" if bad is None else " ".join((bad.get("message") or "").split())[:300]
        test = f"{case.get('classname', '').rpartition('.')[2]} {case.get('name', '')}"
        yield Outcome(SUITE, named(test, protocol), state, float(case.get("time", 0)), words)
