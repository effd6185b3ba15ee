"""Suites of other clients that pytest runs, of a checkout of their repository, in a Python of their own."""

import os
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compat.suite import ABSENT, CLASSIC, FAILED, PASSED, SKIPPED, Outcome, built, named, run

_LIMIT_S = 3600


@dataclass(frozen=True)
class PytestSuite:
    """A suite by the name of its repository. `packages`: what its Python has; `tests`: its files and folders."""

    name: str
    packages: Sequence[str]
    tests: Sequence[str]

    def checkout(self, programs: Path) -> Path | None:
        """The repository's folder below that of programs, where it is there."""
        found = sorted(programs.glob(f"{self.name}*"))
        return next((path for path in found if all((path / test).exists() for test in self.tests)), None)

    def build(self, folder: Path) -> Path:
        """A Python of its own with the packages. Does nothing the second time."""
        home = folder / self.name
        python = home / "bin/python"
        if not (home / "complete").exists():
            folder.mkdir(parents=True, exist_ok=True)
            built([sys.executable, "-m", "venv", home], folder / "venv.log", cwd=folder)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
            built([*pip, *self.packages], folder / "pip.log", cwd=folder)
            (home / "complete").touch()
        return python

    def absent(self) -> Outcome:
        """How the suite ends where no checkout is."""
        return Outcome(self.name, self.tests[0], ABSENT, 0.0, "put a checkout of its repository into .venv/programs")

    def outcomes(
        self,
        python: Path,
        tree: Path,
        environment: Mapping[str, str],
        logs: Path,
        only: str,
        protocol: str = CLASSIC,
    ) -> Iterator[Outcome]:
        """Run the tests. `environment`: what tells them their brokers. `only`: what `pytest -k` takes."""
        report = logs / f"{protocol}.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300", f"--junitxml={report}"]
        chosen = ["-k", only] if only else []
        log = logs / f"{protocol}.log"
        env = {**os.environ, **environment}
        code = run([*command, *chosen, *self.tests], log, cwd=tree, env=env, limit_s=_LIMIT_S)
        if not report.exists():
            words = f"no end within {_LIMIT_S} s" if code is None else f"ended with {code}"
            yield Outcome(self.name, named(self.tests[0], protocol), FAILED, 0.0, words)
            return
        yield from self.read(report, protocol)

    def read(self, report: Path, protocol: str = CLASSIC) -> Iterator[Outcome]:
        """How each test of a report of pytest (JUnit's XML) ended."""
        for case in ET.parse(report).getroot().iter("testcase"):
            bad = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
            state = PASSED if bad is None else SKIPPED if bad.tag == "skipped" else FAILED
            words = "" if bad is None else " ".join((bad.get("message") or "").split())[:300]
            test = f"{case.get('classname', '').rpartition('.')[2]} {case.get('name', '')}"
            yield Outcome(self.name, named(test, protocol), state, float(case.get("time", 0)), words)
