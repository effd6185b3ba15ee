"""Brokers for the suites: processes over a lake in a folder, three where nothing else is said."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compat.suite import ToolError
from support.kafka_connect import properties
from support.kafka_users import User, secure

from tidelog.log.lake import Lake

# As in the own clusters of the suites: a new group waits for no more members, and sessions may be short.
_SETTINGS = {
    "TIDELOG_BROKER_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "TIDELOG_BROKER_GROUP_MIN_SESSION_TIMEOUT_MS": "100",
}
_STOPS_WITHIN_S = 60


@contextmanager
def running(
    folder: Path,
    configuration: Mapping[str, str],
    environment: Mapping[str, str],
    user: User | None = None,
    processes: int = 3,
) -> Iterator[str]:
    """Brokers of a lake with this configuration; their addresses as clients take them. Logs go to the folder.

    `user`: the user that logs in there; without one, brokers ask clients for no log-in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    address = str(folder / "lake")
    listener = ["--listener", "127.0.0.1:0"]
    with Lake(address) as lake:
        lake.alter_config(configuration)
        if user:
            listener = ["--config", str(properties(folder / "broker.properties", secure(lake, user)))]
    command = [sys.executable, "-m", "tidelog", "--lake", address, "--format", "json", "broker", "start"]
    with open(folder / "brokers.log", "wb") as log:
        process = subprocess.Popen(
            [*command, *listener, "--processes", str(processes), "--no-maintain"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**environment, **_SETTINGS},
            start_new_session=True,
        )
    with process:
        try:
            if process.stdout is None:
                raise ToolError("a pipe was asked for")
            lines = [process.stdout.readline() for _ in range(processes)]
            if not all(lines):
                raise ToolError(f"the brokers did not start: {folder / 'brokers.log'}")
            yield ",".join(json.loads(line)["listener"] for line in lines)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
