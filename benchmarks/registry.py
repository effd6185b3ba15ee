"""A registry with ten thousand schemas: how long it takes to start, and to give a schema by its id over HTTP."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from figures import Row, percentile
from plan import Plan

import tidelog
from tidelog.operations.schemas.records import SubjectVersion
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.schemas.base.model import Schema

_SCHEMAS = 10_000
# As many as real records have: about 1.5 KB of text.
_FIELDS = 19
_MOST_START_S = 3.0
_MOST_MS = 2.0


def run(plan: Plan) -> list[Row]:
    """Start it a few times; then ask for ids in turn, over one connection."""
    folder = plan.work / "ten-thousand-schemas"
    with tidelog.Lake(str(folder)) as lake:
        _fill(RegistryLog(lake))
    starts, samples = [], []
    for _ in range(plan.rounds):
        began = time.perf_counter()
        with _running(folder) as (url, schemas):
            starts.append(time.perf_counter() - began)
            if schemas != _SCHEMAS:
                raise RuntimeError(f"the registry has {schemas} schemas, not {_SCHEMAS}")
            samples += _asked(url, plan.appends)
    start_s, ms = percentile(starts, 50), percentile(samples, 50)
    return [
        Row(
            f"a registry with {_SCHEMAS:,} schemas: from its process's start to its first client",
            f"≤ {_MOST_START_S:g} s",
            f"{start_s:.2f} s",
            start_s <= _MOST_START_S,
            {"schemas": _SCHEMAS, "start_s": starts},
        ),
        Row(
            "a schema of it by its id, over HTTP, p50",
            f"≤ {_MOST_MS:g} ms",
            f"{ms:.2f} ms (p99 {percentile(samples, 99):.2f} ms)",
            ms <= _MOST_MS,
            {"p50_ms": ms, "p99_ms": percentile(samples, 99)},
        ),
    ]


def _fill(log: RegistryLog) -> None:
    for first in range(0, _SCHEMAS, 1_000):
        versions = [SubjectVersion(f"s{i}-value", 1, i + 1, _schema(i)) for i in range(first, first + 1_000)]
        records = [version.record() for version in versions]
        log.decide(lambda _, records=records: (None, records))  # type: ignore[misc]  # mypy has no type for it


def _schema(number: int) -> Schema:
    fields = [{"name": f"field_{i}", "type": ["null", "string"], "default": None} for i in range(_FIELDS)]
    text = {"type": "record", "name": f"Record{number}", "namespace": "org.example.things", "fields": fields}
    return Schema(json.dumps(text, separators=(",", ":")))


@contextmanager
def _running(folder: Path) -> Iterator[tuple[str, int]]:
    """A registry's process: its URL, and how many schemas it says it has."""
    command = ["--lake", str(folder), "--format", "json", "registry", "start", "--listener", "127.0.0.1:0"]
    with subprocess.Popen([sys.executable, "-m", "tidelog", *command], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said: dict[str, Any] = json.loads(process.stdout.readline())
            yield said["url"], said["schemas"]
        finally:
            process.terminate()


def _asked(url: str, count: int) -> list[float]:
    """How long each request took, in ms."""
    at = urlsplit(url)
    connection, samples = http.client.HTTPConnection(at.hostname or "", at.port), []
    for i in range(count):
        began = time.perf_counter()
        connection.request("GET", f"/schemas/ids/{i * 7919 % _SCHEMAS + 1}")
        with connection.getresponse() as answer:
            text = answer.read()
        samples.append((time.perf_counter() - began) * 1000)
        if answer.status != 200 or b"Record" not in text:
            raise RuntimeError(f"the registry answered {answer.status}: {text[:200]!r}")
    connection.close()
    return samples
