"""docs/clusters.md, word by word: a standalone cluster over a lake on S3, one block of the page after another."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from compat.suite import Outcome, free_ports, run_block, tried
from support.pages import blocks, clone
from support.spark_cluster import PATIENCE_S
from support.versitygw import S3Place, fresh_place
from support.waiting import eventually

from tidelog.cli.main import app
from tidelog.commands.failures import exit_code_of
from tidelog.log.lake import Lake

SUITE = "spark-cluster"
PAGE = "docs/clusters.md"


def outcomes(work: Path, only: str) -> Iterator[Outcome]:
    """Each block is a test, and needs those before it: the first that fails is the last."""
    work.mkdir(parents=True)
    with fresh_place() as place:
        try:
            yield from tried(SUITE, _tests(work, place), only, in_turn=True)
        finally:
            _end_all(work)


def _tests(work: Path, place: S3Place) -> dict[str, Callable[[], object]]:
    folder = clone(work)
    (port,) = free_ports(1)
    instead = {
        "/tmp/": f"{work}/",
        "127.0.0.1:7077": f"127.0.0.1:{port}",
        "--port 7077 --webui-port 8080": f"--port {port} --webui-port 0",
        "s3://bucket/lake": place.uri,
    }
    environment = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "TIDELOG_LAKE")} | place.environment
    start, stream, death, maintenance, stop = blocks(PAGE, "bash")

    def run(code: str) -> str:
        return run_block(code, folder, environment, instead)

    def started() -> None:
        run(start.code)
        (log,) = (work / "cluster/logs").glob("*master*.out")
        eventually(lambda: log.read_text().count("Registering worker") == 2, "two workers", PATIENCE_S)

    def one_after_another() -> None:
        assert "each record once" in run(death.code)

    def maintained() -> None:
        reports = [json.loads(line) for line in run(maintenance.code).splitlines() if line.startswith("{")]
        assert [report["failed"] for report in reports] == [False, False], reports
        assert reports[1]["topics"][0]["compact"]["landed"] > 0, reports[1]

    def stopped() -> None:
        run(stop.code)
        with Lake(place.uri, options=place.options) as lake:
            words = [f"--store-option={key}={value}" for key, value in place.options.items()]
            assert exit_code_of(app, "tidelog", ["--lake", lake.uri, *words, "check", "--deep"]) == 0

    return {
        "a master and two workers": started,
        "a stream": lambda: run(stream.code),
        "a worker is killed amid the stream": one_after_another,
        "retention and compaction": maintained,
        "all is stopped, and the lake is whole": stopped,
    }


def _end_all(work: Path) -> None:
    """End what the page has started, if it stopped half way."""
    for path in (work / "cluster").glob("*.pid"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(path.read_text()), signal.SIGKILL)
