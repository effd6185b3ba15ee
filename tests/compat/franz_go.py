"""franz-go's own tests of its client, which its module carries (pkg/kgo/*_test.go).

Tests that never reach a broker are left out: what they try is franz-go alone.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from compat.suite import FAILED, PASSED, SKIPPED, Outcome, ToolError, built, run

MODULE, VERSION = "github.com/twmb/franz-go", "v1.22.2"
SUITE = "franz-go"
_PACKAGE = "pkg/kgo"
# Where each client of the tests is given its brokers.
_REACHES_A_BROKER = "getSeedBrokers"
_FUNCTION = re.compile(r"^func (?:\([^)]*\) )?(\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
_LIMIT_S = 900


def build(folder: Path) -> Path:
    """Fetch the module and build the tests' program; the package's folder. Does nothing the second time."""
    tree = folder / f"franz-go-{VERSION}"
    package = tree / _PACKAGE
    if not (package / "kgo.test").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "go.mod").write_text("module compat\n\ngo 1.24\n")
        log = folder / "fetch.log"
        built(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], log, cwd=folder)
        found = re.search(r'"Dir": "(.*)"', log.read_text())
        if found is None:
            raise ToolError(f"go does not say where it put {MODULE} ({log})")
        built(["cp", "-rT", found[1], tree], folder / "copy.log", cwd=folder)
        built(["chmod", "-R", "u+w", tree], folder / "copy.log", cwd=folder)
        built(["go", "test", "-c", "-o", "kgo.test", "."], folder / "build.log", cwd=package)
    return package


def tests(package: Path) -> list[str]:
    """The tests that reach a broker, by themselves or through what they call."""
    bodies = {m[1]: m[0] for path in sorted(package.glob("*_test.go")) for m in _FUNCTION.finditer(path.read_text())}
    calls = {name: set(re.findall(r"\w+", body)) & bodies.keys() - {name} for name, body in bodies.items()}
    reaching = {_REACHES_A_BROKER}
    while more := {name for name, called in calls.items() if called & reaching} - reaching:
        reaching |= more
    return sorted(name for name in reaching if name.startswith("Test") and name != "TestMain")


def outcomes(package: Path, address: str, logs: Path, only: str = "", records: int = 50_000) -> Iterator[Outcome]:
    """Run the tests, one after another. `only`: a part of a name."""
    environment = {"KGO_SEEDS": address, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(records)}
    for name in tests(package):
        if only not in name:
            continue
        log = logs / f"{name}.log"
        code = run(
            [
                "go",
                "tool",
                "test2json",
                "-t",
                "./kgo.test",
                "-test.v=test2json",
                f"-test.run=^{name}$",
                f"-test.timeout={_LIMIT_S}s",
            ],
            log,
            cwd=package,
            env=environment,
            limit_s=_LIMIT_S + 30,
        )
        yield _read(name, log, code)


def _read(name: str, log: Path, code: int | None) -> Outcome:
    states = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}
    state, took_s, words = FAILED, 0.0, [] if code is not None else [f"no end within {_LIMIT_S} s"]
    for line in log.read_text(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("Test") == name and event["Action"] in states:
            state, took_s = states[event["Action"]], event.get("Elapsed", 0.0)
        elif event.get("Action") == "output" and re.match(r"\s+\w+_test\.go:\d+:", event["Output"]):
            words.append(event["Output"].strip())
    return Outcome(SUITE, name, state, took_s, " / ".join(words[:2])[:300])
