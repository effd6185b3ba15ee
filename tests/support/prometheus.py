"""Prometheus (Debian's package) in a folder of its own, which scrapes what a test names."""

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml
from support.tools import require
from support.waiting import PATIENCE_S, eventually

Labels = dict[str, str]


class Prometheus:
    """A server that answers queries."""

    def __init__(self, url: str) -> None:
        self.url = url

    def _ask(self, path: str, **query: str) -> Any:
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(query)}", timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """(labels, value) of each series that an expression gives now."""
        return [(one["metric"], float(one["value"][1])) for one in self._ask("query", query=expression)["result"]]

    def number(self, expression: str) -> float | None:
        """The value of the one series that it gives; None for none."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def label_values(self, metric: str, label: str) -> set[str]:
        """As Grafana asks for `label_values(metric, label)`."""
        return set(self._ask(f"label/{label}/values", **{"match[]": metric}))

    def rules(self) -> list[dict[str, Any]]:
        """Every rule, as it was evaluated last."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]


@contextmanager
def running_prometheus(folder: Path, jobs: Mapping[str, Sequence[str]], rules: Path) -> Iterator[Prometheus]:
    """A server that scrapes `jobs`, {name: addresses}, once a second. Skips where it is not; in CI it fails."""
    program = require("prometheus", "Prometheus")
    folder.mkdir()
    times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    scraped = [{"job_name": job, "static_configs": [{"targets": [*at]}]} for job, at in jobs.items()]
    config = {"global": times, "rule_files": [str(rules)], "scrape_configs": scraped}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with open(folder / "log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:

            def is_ready() -> bool:
                assert process.poll() is None, (folder / "log").read_text()[-3000:]
                try:
                    return urlopen(f"http://{address}/-/ready").status == 200
                except URLError:
                    return False

            eventually(is_ready, "Prometheus is ready")
            yield Prometheus(f"http://{address}")
        finally:
            process.terminate()


def checked_rules(rules: Path) -> str:
    """What `promtool check rules` says of a file that it takes."""
    return _promtool("check", "rules", rules)


def tried_rules(tests: Path) -> str:
    """What `promtool test rules` says of a file of tests that hold."""
    return _promtool("test", "rules", tests)


def _promtool(*words: str | Path) -> str:
    program = require("promtool", "Prometheus' rule checker")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
