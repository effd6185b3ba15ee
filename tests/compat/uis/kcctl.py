"""kcctl at a worker of `tidelog connect`: all of its commands."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from support.broker_processes import broker_command
from support.waiting import eventually

from tidelog.log.lake import Lake

_LIMIT_S = 240
_LINES = ["one", "two", "three"]


class Kcctl:
    """Calls kcctl, whose own configuration is in a folder of the test's."""

    def __init__(self, command: Sequence[str | Path], home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._command = list(map(str, command))
        if self._command[0] == "java":
            self._command.insert(1, f"-Duser.home={home}")
        self._environment = {**os.environ, "HOME": str(home)}

    def __call__(self, *args: str | Path, given: str = "") -> str:
        """What it prints, without colours; `AssertionError` when it fails."""
        done = subprocess.run(
            [*self._command, *map(str, args)],
            input=given,
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=_LIMIT_S,
            check=False,
        )
        words = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        assert done.returncode == 0, f"kcctl {' '.join(map(str, args))}: {words[-600:]}"
        assert "requires at least" not in words, words
        return words


def commands(command: Sequence[str | Path], folder: Path) -> None:
    """Each command of kcctl, from the context to a connector that is deleted."""
    kcctl = Kcctl(command, folder / "home")
    source = folder / "given.txt"
    source.write_text("\n".join(_LINES) + "\n", encoding="utf-8")
    texts = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines", "tasks.max": "1", **texts}
    file = folder / "files.json"
    file.write_text(json.dumps({"name": "files", "config": config}), encoding="utf-8")
    worker = folder / "worker.properties"
    worker.write_text("group.id=workers\noffset.flush.interval.ms=500\n", encoding="utf-8")
    start = ("--listener", "127.0.0.1:0", "--config", str(worker))
    with broker_command(folder / "lake", *start, family="connect") as run:
        url = run.ready()["url"]
        kcctl("config", "set-context", "own", f"--cluster={url}")
        assert "own" in kcctl("config", "get-contexts")
        assert re.search(r"Version: +[4-9]\.\d", kcctl("info"))
        plugins = kcctl("get", "plugins")
        assert {"source", "sink", "transformation", "converter", "predicate"} <= set(plugins.split())
        assert "tasks.max" in kcctl("describe", "plugin", "FileStreamSource")
        assert "valid" in kcctl("apply", "-f", file, "--dry-run")
        kcctl("apply", "-f", file)

        def state(name: str) -> str:
            rows = [line.split() for line in kcctl("get", "connectors").splitlines() if line.split()[:1] == ["files"]]
            return " ".join(rows[0]) if rows else name

        eventually(lambda: "0: RUNNING" in state("files"), "the connector runs", 120.0)
        assert str(source) in kcctl("describe", "connector", "files")
        eventually(lambda: '"position" : 14' in kcctl("get", "offsets", "files"), "its offset is committed", 120.0)
        kcctl("pause", "connector", "files")
        eventually(lambda: "PAUSED" in state("files"), "the connector is paused", 120.0)
        kcctl("resume", "connector", "files")
        eventually(lambda: "0: RUNNING" in state("files"), "the connector runs again", 120.0)
        kcctl("restart", "connector", "files", "--tasks", "all")
        kcctl("restart", "task", "files/0")
        kcctl("patch", "connector", "files", "--set", "tasks.max=2")
        assert re.search(r"tasks.max: +2", kcctl("describe", "connector", "files"))
        kcctl("stop", "connector", "files")
        eventually(lambda: "STOPPED" in state("files"), "the connector is stopped", 120.0)
        kcctl("delete", "offsets", "files")
        assert "position" not in kcctl("get", "offsets", "files")
        place = {"partition": {"filename": str(source)}, "offset": {"position": 4}}
        told = [f"--source-{name}={json.dumps(value)}" for name, value in place.items()]
        kcctl("patch", "offsets", "files", *told)
        assert '"position" : 4' in kcctl("get", "offsets", "files")
        kcctl("patch", "logger", "tidelog.connect", "--level=DEBUG")
        assert "DEBUG" in kcctl("get", "logger", "tidelog.connect")
        kcctl("patch", "logger", "tidelog.connect", "--level=INFO", "--scope=cluster")
        assert "tidelog" in kcctl("get", "loggers")
        kcctl("delete", "connector", "files")
        assert state("gone") == "gone"
        assert run.stop() == 0
    with Lake(str(folder / "lake"), create=False) as lake:
        values = [row["value"].decode() for batch in lake.topic("lines").read(0) for row in batch.to_pylist()]
    assert values[:3] == _LINES
