"""The README and the pages of docs/: their blocks of code, and how a page's blocks are run, one after another.

A block in Python or for a shell runs as it stands, unless `NOT_RUN` says why it can't. A page is run as a person does:
all Python in one process, each shell block in a terminal of its own, in the clone's folder. Files below /tmp on
the page are in the test's folder. As a program: `python -m support.pages PAGE FOLDER '{"text": "instead"}'`.
`pages_in_turn.py` runs pages that start Spark in one process.
"""

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.forked_commands import forked_commands
from support.nursery import run_forked

from tidelog.cli.serving.configuration import given_by_file, settings_of
from tidelog.log.base.properties import properties

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))))
SHELLS = ("sh", "bash")

# (page, how the block begins): why it does not run with the others of its page.
NOT_RUN: Mapping[tuple[str, str], str] = {
    ("README.md", "make demo"): "the demo's own tests run it, and `make test` runs this one",
    ("README.md", "make dist"): "the tests of the distributions build and install them",
    (
        "docs/brokers.md",
        "tidelog --lake /tmp/lake broker start",
    ): "runs until it is stopped; its own tests run it",
    (
        "docs/metrics.md",
        "pip install 'tidelog[broker,otel]'",
    ): "installs, and runs until it is stopped; test_otlp.py runs it",
    ("docs/metrics.md", "kafka-client-metrics.sh"): "Kafka's script; test_broker_client_metrics.py runs its class",
    ("docs/metrics.md", "SELECT client_id"): "a query for an engine that reads Delta, of what clients have pushed",
    ("docs/console.md", "tidelog --lake /tmp/lake console"): "runs until it is stopped; its own tests run it",
    (
        "docs/access.md",
        ".venv/bin/tidelog --lake /tmp/lake broker start",
    ): "test_access_page.py runs it, and its client",
    ("docs/access.md", "from pathlib import Path"): "needs the broker; test_access_page.py runs both",
    (
        "docs/connect.md",
        ".venv/bin/tidelog --lake /tmp/lake connect start",
    ): "runs until it is stopped; test_connect_page.py runs it, and its requests",
    ("docs/connect.md", "curl -s -X PUT"): "needs the worker; test_connect_page.py runs both",
    ("docs/brokers.md", "make demo-kafka"): "its own tests run it",
    ("docs/replicas.md", "make demo-replicas"): "builds MinIO and takes a minute; `make reliability` runs such nodes",
    ("docs/replicas.md", "tidelog check --store s3://lakes"): "needs four nodes; test_check_store.py tries small ones",
    ("docs/replicas.md", "go install github.com/minio"): "needs four machines",
    ("docs/replicas.md", "git clone https://github.com/seaweedfs"): "builds for a quarter of an hour",
    (
        "docs/schemas.md",
        ".venv/bin/tidelog --lake /tmp/lake registry start",
    ): "runs until it is stopped; test_schemas_page.py runs it, and its client",
    ("docs/schemas.md", "from confluent_kafka"): "needs the registry; test_schemas_page.py runs both",
    ("docs/connect-postgres.md", "CREATE ROLE reader"): "statements for a PostgreSQL server",
    **{
        ("docs/clusters.md", begin): "takes minutes, and starts what stays up; `make compat` follows the page"
        for begin in (
            "mkdir -p /tmp/cluster",
            "cat >/tmp/cluster/shout.py",
            *(f". /tmp/cluster/env.sh\n{line}" for line in ("copied", "daemon start", "daemon stop")),
        )
    },
    ("docs/spark.md", "python3 -m venv /tmp/pipeline"): "makes an environment of half a gigabyte",
    ("docs/spark.md", "# A file in the folder"): "needs that environment, which Spark Connect's protobuf wants",
    ("docs/schedules.md", "useradd"): "changes the machine",
    ("docs/schedules.md", "install -m 644 deploy/cron"): "changes the machine; test_schedules.py runs the file's lines",
    ("docs/schedules.md", "install -m 644 deploy/systemd"): "changes the machine; test_schedules.py runs its units",
    ("docs/schedules.md", "airflow variables set"): "needs Airflow; `make compat` runs the DAGs",
    (
        "docs/mirror.md",
        "tidelog mirror start --from kafka://",
    ): "needs Kafka; test_mirror_from_kafka.py runs it at a broker",
    ("docs/mirror.md", "spark-submit jobs/mirror.py"): "needs a cluster and S3; test_spark_mirror.py runs the job",
    ("docs/console.md", "SELECT decode(value)"): "a query of the console's SQL box, whose tests run such",
    ("docs/kubernetes.md", "make image"): "needs a builder of images; `make compat` runs the recipe's steps",
    ("docs/kubernetes.md", "podman run"): "needs podman; `make compat` starts a container of the image",
    ("docs/kubernetes.md", "helm upgrade"): "needs a cluster; test_chart.py checks what Helm renders",
    ("docs/kubernetes.md", "kubectl --namespace data exec"): "needs a cluster; commands of users have tests",
    ("docs/operations.md", "2026-11-22T16:05:01.123Z WARNING"): "a line of a log",
    ("docs/speed.md", "make bench-peers"): "takes half an hour, and fetches Kafka",
    ("docs/time.md", "make demo-branch"): "its own test runs it",
    ("docs/format.md", "SELECT `group`"): "the group log's contract tests run it over a table of groups",
}

_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"(?:\S*/)?tidelog|-m tidelog")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands (`line` of the fence), its language, what follows that, and what is in it."""

    page: str
    line: int
    language: str
    label: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def why_not_run(self) -> str | None:
        """Why it does not run with the others of its page."""
        return next((why for (page, begin), why in NOT_RUN.items() if page == self.page and self.begins(begin)), None)

    @property
    def commands(self) -> str:
        """What it runs, as lines for a shell: of a systemd unit its ExecStart."""
        if self.language == "ini":
            return "\n".join(section.get("ExecStart", "") for section in _unit(self.code).values())
        return self.code if self.language in SHELLS else ""

    def begins(self, text: str) -> bool:
        """Whether the block begins like this."""
        return self.code.startswith(text)


def text_of(page: str) -> str:
    """A page, by its path in the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, or in all, in their order."""
    text = text_of(page)
    found = [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2] or "", match[3])
        for match in _BLOCK.finditer(text)
    ]
    return [block for block in found if not languages or block.language in languages]


def programs(page: str) -> list[Block]:
    """The blocks of a page that run."""
    return [block for block in blocks(page, "python", *SHELLS) if block.why_not_run is None]


def needs_spark(page: str) -> bool:
    """Whether what runs of a page starts Spark."""
    return any("spark" in block.code for block in programs(page))


def check_data(block: Block) -> None:
    """Refuse a block of data that does not parse; JSON may be several documents.

    Raises ValueError, `UsageProblemError` for a broker's configuration that is none.
    """
    if block.language == "toml":
        tomllib.loads(block.code)
        return
    if block.language == "ini":
        _unit(block.code)
        return
    if block.language == "properties":
        config = properties(block.code)
        if "listeners" in config:  # a broker's; others are a client's
            settings_of(given_by_file(config, block.page))
        return
    if block.language == "yaml":
        try:
            yaml.safe_load(block.code)
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error
        return
    decoder, rest = json.JSONDecoder(), block.code.strip()
    while rest:
        _, end = decoder.raw_decode(rest)
        rest = rest[end:].strip()


def _unit(code: str) -> configparser.ConfigParser:
    """A systemd unit, which may name a key again. Raises ValueError if it does not parse."""
    unit = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=False)
    try:
        unit.read_string(code)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return unit


def tidelog_calls(shell: str) -> list[list[str]]:
    """The arguments of each call of `tidelog` in lines for a shell, pipes and comments aside."""
    calls = []
    for line in shell.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars="|")
        words.whitespace_split = True
        pipeline: list[list[str]] = [[]]
        for word in words:
            pipeline.append([]) if word == "|" else pipeline[-1].append(word)
        calls += [call[1:] for call in pipeline if call and _PROGRAM.fullmatch(call[0])]
    return calls


def run_page(page: str, folder: Path, environment: Mapping[str, str], instead: Mapping[str, str] | None = None) -> str:
    """Run a page in a process of its own, and what it printed. `instead`: texts of the page to replace."""
    program = [sys.executable, "-m", "support.pages", page, str(folder), json.dumps(instead or {})]
    made = clone(folder)
    path = f"{made / '.venv/bin'}{os.pathsep}{environment['PATH']}"
    done = run_forked(program, cwd=made, env={**with_support(environment), "PATH": path}, timeout=900)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def with_support(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that runs this module, and prints at once."""
    path = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), str(ROOT / "tests")]))
    return {**environment, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def clone(folder: Path) -> Path:
    """A folder that looks like a clone after `make setup`, and may be written to."""
    made = folder / "clone"
    programs = made / ".venv/bin"
    programs.mkdir(parents=True)
    links = {
        **{made / name: ROOT / name for name in ("jobs", "docs")},
        **{made / ".venv" / own.name: own for own in Path(sys.prefix).iterdir() if own.name != "bin"},
        **{programs / own.name: own for own in Path(sys.prefix, "bin").iterdir()},
    }
    for link, own in links.items():
        link.symlink_to(own)
    return made


def run_blocks(page: str, folder: str, instead: Mapping[str, str]) -> None:
    """Run a page's blocks in this process, all Python of them in one module."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in programs(page):
        code = block.code.replace("/tmp/", f"{folder}/")
        for text, other in instead.items():
            code = code.replace(text, other)
        if block.language == "python":
            exec(compile("\n" * block.line + code, block.page, "exec"), names)
        else:
            subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True, env={**os.environ, "PYTHONPATH": ""})


if __name__ == "__main__":
    called = Path(".venv/bin/tidelog")
    called.unlink()
    with forked_commands(called):
        run_blocks(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
