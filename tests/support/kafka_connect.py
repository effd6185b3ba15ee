"""Kafka's Connect and MirrorMaker, unmodified: workers as processes, and calls of their REST API."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.kafka_programs import CONNECT, JavaProgram, java
from support.waiting import PATIENCE_S, eventually

_LOGGING = ("-Dlog4j2.level=WARN",)
_ANSWERS_S = 90.0


def properties(path: Path, settings: Mapping[str, object]) -> Path:
    """Write a file of settings; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    return path


class ConnectWorker(JavaProgram):
    """A worker in distributed mode (`CONNECT` is installed). Its log is in the folder.

    Converters are of texts unless `settings` say otherwise. `plugins`: the folder of its plugins, each one a folder.
    """

    def __init__(
        self, address: str, folder: Path, settings: Mapping[str, object] | None = None, plugins: Path | None = None
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        told = properties(
            folder / "connect.properties",
            {
                "bootstrap.servers": address,
                "group.id": "connect-own",
                "listeners": self.url,
                "key.converter": "org.apache.kafka.connect.storage.StringConverter",
                "value.converter": "org.apache.kafka.connect.storage.StringConverter",
                **{
                    f"{kind}.storage.{name}": value
                    for kind in ("config", "offset", "status")
                    for name, value in (("topic", f"connect-{kind}s"), ("replication.factor", 1))
                },
                "offset.storage.partitions": 2,
                "offset.flush.interval.ms": 1000,
                # A worker that was killed is missed soon.
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 1000,
                "scheduled.rebalance.max.delay.ms": 0,
                **({"plugin.path": plugins} if plugins else {"plugin.discovery": "service_load"}),
                **(settings or {}),
            },
        )
        command = java(CONNECT.folder, *_LOGGING, "org.apache.kafka.connect.cli.ConnectDistributed")
        super().__init__([*command, told], folder / "connect.log")

    def ready(self) -> "ConnectWorker":
        """Wait until it has joined its group and serves."""

        def serves() -> bool:
            assert self.process.poll() is None, self.said()[-3000:]
            try:
                self.call("GET", "/connectors")
            except (urllib.error.URLError, OSError):
                return False
            return True

        eventually(serves, "Connect's worker serves", _ANSWERS_S)
        return self

    def call(self, method: str, path: str, body: object = None) -> Any:
        """A request to the REST API; the answer's document. Raises `urllib.error.HTTPError`."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=_ANSWERS_S) as answer:
            said = answer.read()
        return json.loads(said) if said else None

    def configure(self, name: str, config: Mapping[str, object]) -> None:
        """Create a connector or change it, once its group has settled."""

        def taken() -> bool:
            try:
                self.call("PUT", f"/connectors/{name}/config", {key: str(value) for key, value in config.items()})
            except urllib.error.HTTPError as error:
                if error.code == 409:  # it rebalances
                    return False
                raise AssertionError(error.read().decode()) from error
            return True

        eventually(taken, f"connector {name} is configured", _ANSWERS_S)

    def states(self, name: str) -> list[str]:
        """States of a connector and its tasks; empty before there are any."""
        try:
            status = self.call("GET", f"/connectors/{name}/status")
        except urllib.error.HTTPError:
            return []
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def await_running(self, *names: str) -> None:
        """Wait until these connectors run with all tasks. Raises `AssertionError` with the trace of one that failed."""

        def run() -> bool:
            assert self.process.poll() is None, self.said()[-3000:]
            self.require_sound(*names)
            states = [self.states(name) for name in names]
            return all(len(one) > 1 and set(one) == {"RUNNING"} for one in states)

        eventually(run, f"{', '.join(names)} run", PATIENCE_S)

    def require_sound(self, *names: str) -> None:
        """Raises `AssertionError` with its trace for a connector or a task that has failed."""
        for name in names:
            if "FAILED" in self.states(name):
                raise AssertionError(json.dumps(self.call("GET", f"/connectors/{name}/status"))[:4000])


def mirror_maker(folder: Path, settings: Mapping[str, object]) -> JavaProgram:
    """MirrorMaker 2 with these settings in a process of its own; its log is in the folder."""
    told = properties(folder / "mirror.properties", settings)
    command = java(CONNECT.folder, *_LOGGING, "org.apache.kafka.connect.mirror.MirrorMaker")
    return JavaProgram([*command, told], folder / "mirror.log")
