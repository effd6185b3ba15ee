"""What a newcomer waits for: the commands of the README in a fresh clone, with empty caches of pip, uv, Ivy, Go, npm.

`.venv/bin/python benchmarks/first_run.py` clones this repository, HEAD as it is committed, into an empty folder, runs
`make demo` twice, then `make demo-kafka`, and prints a table. `--parts setup,quick,test` times others. A command's time
is also set against a bare download of the bytes that it fetched, as the network decides much of the first one.
"""

import argparse
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from json import loads
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_PARTS = ("demo", "demo", "demo-kafka")
# Seconds that a part may take: the first and the second time in a clone.
LIMITS_S: Mapping[str, tuple[float, float]] = {"demo": (180, 45), "quick": (180, 180), "test": (1320, 1320)}
FIRST_RESULT_S = 60.0
_CONNECTIONS = 4
_CHUNK = 1 << 20
# The environment's variables that name caches, or what the caller's own environment is.
_OF_THE_CALLER = (
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "XDG_CACHE_HOME",
    "GOPATH",
    "GOCACHE",
    "GOMODCACHE",
    "npm_config_cache",
    "MAKEFLAGS",
    "MAKELEVEL",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "SPARK_HOME",
    "TIDELOG_LAKE",
    "VIRTUAL_ENV",
)
_STEP = re.compile(r"^ ?(\d+)  \S")


@dataclass
class Part:
    """A command that was run. `steps`: when each step of a demo was shown, in seconds since the command began."""

    name: str
    times: int  # how often it ran in this clone, this run included
    took_s: float = 0.0
    code: int = 0
    steps: dict[int, float] = field(default_factory=dict)

    @property
    def limit_s(self) -> float | None:
        """How long it may take; None where nothing is asked of it."""
        limits = LIMITS_S.get(self.name)
        return None if limits is None else limits[min(self.times, 2) - 1]

    @property
    def first_result_s(self) -> float | None:
        """From Spark's start, which follows a demo's first step, until the step after it shows a result."""
        return self.steps[3] - self.steps[1] if self.name == "demo" and {1, 3} <= self.steps.keys() else None

    @property
    def failed(self) -> list[str]:
        """What it should have reached."""
        found = [] if self.code == 0 else [f"exit code {self.code}"]
        if self.limit_s is not None and self.took_s > self.limit_s:
            found.append(f"more than {self.limit_s:.0f} s")
        if (self.first_result_s or 0.0) > FIRST_RESULT_S:
            found.append(f"first result later than {FIRST_RESULT_S:.0f} s")
        return found


def environment(home: Path, given: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment with an empty home, where the caches of all package clients are.

    Java takes its home from the user's entry and not from HOME. What the caller has configured for pip, and a Python of
    pyenv, count all the same.
    """
    own = {name: value for name, value in given.items() if name not in _OF_THE_CALLER}
    caller = Path(given.get("HOME", "/"))
    for name, place in (("PIP_CONFIG_FILE", ".config/pip/pip.conf"), ("PYENV_ROOT", ".pyenv")):
        if name not in own and (caller / place).exists():
            own[name] = str(caller / place)
    java = f"{given.get('JAVA_TOOL_OPTIONS', '')} -Duser.home={home}".strip()
    return {**own, "HOME": str(home), "JAVA_TOOL_OPTIONS": java}


def run_part(part: Part, clone: Path, environ: Mapping[str, str]) -> None:
    """Run `make` in the clone, show what it prints, and note its times."""
    print(f"\n$ make {part.name}", flush=True)
    started = time.monotonic()
    with subprocess.Popen(
        ["make", part.name],
        cwd=clone,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as make:
        try:
            assert make.stdout is not None
            for line in make.stdout:
                now = time.monotonic() - started
                print(f"{now:7.1f}  {line}", end="", flush=True)
                if step := _STEP.match(line):
                    part.steps[int(step[1])] = now
            part.code = make.wait()
        except BaseException:
            os.killpg(make.pid, signal.SIGINT)
            raise
    part.took_s = time.monotonic() - started


def jar_urls(ivy: Path) -> set[str]:
    """Where Ivy has fetched the jars in its folder from, by the notes in its cache."""
    found: set[str] = set()
    for notes in ivy.rglob("ivydata-*.properties"):
        for line in notes.read_text(encoding="latin-1").splitlines():
            name, _, value = line.partition("=")
            if name.endswith(".location") and value.endswith((".jar", ".pom")):
                found.add(value.replace("\\:", ":"))
    return {url for url in found if url.startswith("http")}


def package_urls(python: Path, environ: Mapping[str, str]) -> set[str]:
    """Where the index has the files of the packages that this Python's environment holds."""
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    frozen = subprocess.run(
        [*pip, "freeze", "--exclude-editable"], env=environ, capture_output=True, text=True, check=True
    )
    command = [
        *pip,
        "install",
        "--dry-run",
        "--ignore-installed",
        "--no-deps",
        "--report",
        "-",
        *frozen.stdout.split("\n"),
    ]
    report = subprocess.run(
        [word for word in command if word], env=environ, capture_output=True, text=True, check=True
    ).stdout
    return {one["download_info"]["url"] for one in loads(report)["install"]}


def download(urls: Iterable[str], environ: Mapping[str, str]) -> tuple[int, float]:
    """Fetch these files and keep none of them; their bytes, and the seconds that it took."""
    certificates = environ.get("SSL_CERT_FILE") or environ.get("PIP_CERT")
    context = ssl.create_default_context(cafile=certificates)

    def fetch(url: str) -> int:
        total = 0
        with urllib.request.urlopen(url, context=context) as answer:
            while chunk := answer.read(_CHUNK):
                total += len(chunk)
        return total

    started = time.monotonic()
    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        total = sum(threads.map(fetch, urls))
    return total, time.monotonic() - started


def table(parts: Sequence[Part], fetched: tuple[int, float] | None) -> list[str]:
    """The lines of a table in Markdown."""
    lines = ["| command | seconds | may take | first result after Spark's start |", "|---|---|---|---|"]
    for part in parts:
        what = f"`make {part.name}`" + ("" if parts[0] is not part else ", fresh clone, empty caches")
        what += f", time {part.times}" if part.times > 1 else ""
        first, limit = (("" if s is None else f"{s:.0f} s") for s in (part.first_result_s, part.limit_s))
        lines.append(f"| {what} | {part.took_s:.0f} | {limit} | {first} |")
    if fetched is not None:
        size, took_s = fetched
        lines.append(f"| the same {size / 2**20:.0f} MiB of packages and jars, only downloaded | {took_s:.0f} |  |  |")
    return lines


def main() -> int:
    """Run the parts; the exit code is 1 when one failed or took too long."""
    parser = argparse.ArgumentParser(description="Time what a newcomer types, in a fresh clone with empty caches.")
    parser.add_argument("--parts", default=",".join(DEFAULT_PARTS), help="targets of make, in this order")
    parser.add_argument("--folder", type=Path, help="an empty folder to work in (a temporary one)")
    parser.add_argument("--no-download", action="store_true", help="leave the bare download out")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="first-run-")) if given.folder is None else given.folder.resolve()
    try:
        return _run(folder, given.parts.split(","), with_download=not given.no_download)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, names: Sequence[str], *, with_download: bool) -> int:
    home, clone = folder / "home", folder / "tidelog"
    home.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", ROOT.as_uri(), str(clone)], check=True)
    environ = environment(home, os.environ)
    parts: list[Part] = []
    fetched = None
    for name in names:
        parts.append(Part(name, 1 + sum(part.name == name for part in parts)))
        run_part(parts[-1], clone, environ)
        if parts[-1].code:
            break
        if with_download and fetched is None:  # of what the first part has fetched
            urls = jar_urls(home) | package_urls(clone / ".venv/bin/python", environ)
            fetched = download(urls, environ)
    print(f"\n{machine.one_line(machine.describe(folder))}\n")
    print("\n".join(table(parts, fetched)))
    failures = [f"make {part.name}: {why}" for part in parts for why in part.failed]
    print(*failures, sep="\n", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
