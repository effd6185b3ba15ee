"""Kafka's tools, several commands in one process."""

import subprocess
from collections.abc import Sequence

from support.kafka_clients import ACCESS_TOOLS

DONE = "--- done\n"


def run(address: str, *commands: Sequence[str]) -> list[str]:
    """What the tools print, of each command: its class and its arguments."""
    lines = "".join("\t".join([tool, "--bootstrap-server", address, *args]) + "\n" for tool, *args in commands)
    done = subprocess.run(
        [str(word) for word in ACCESS_TOOLS.command(ACCESS_TOOLS.folder)],
        input=lines,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    printed = done.stdout.split(DONE)
    assert done.returncode == 0, f"{printed[-1]}\n{done.stderr[-4000:]}"
    assert len(printed) == len(commands) + 1, done.stderr[-4000:]
    return printed[:-1]
