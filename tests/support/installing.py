"""Installs what tests run and no package of Python brings: Kafka clients, the S3 server, axe-core; all side by side.

As a program: `python -m support.installing PROGRAM …` installs what these programs (go, npm, java, javac) fetch and
build, where they are there; what is installed already stays. It prints a line for each.
"""

import shutil
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.axe import AXE
from support.kafka_clients import ACCESS_TOOLS, NEWEST, TOOLS, KafkaClient, install, run_command
from support.kafka_programs import CONNECT, STREAMS
from support.tools import BIN


def _make_versitygw(client: KafkaClient, folder: Path) -> None:
    package = f"github.com/versity/versitygw/cmd/versitygw@{client.version}"
    run_command(["go", "install", package], folder, GOBIN=str(BIN))


# No client of Kafka's, but installed in the same way.
VERSITYGW = KafkaClient("versitygw", "v1.8.0", "go", _make_versitygw, lambda _: [BIN / "versitygw"])
INSTALLED = (*NEWEST, TOOLS, ACCESS_TOOLS, STREAMS, CONNECT, VERSITYGW, AXE)


def wanted(programs: Collection[str]) -> list[KafkaClient]:
    """What these programs install, those programs that are there."""
    return [one for one in INSTALLED if one.program in programs and shutil.which(one.program)]


def main(programs: Sequence[str]) -> int:
    """Install all; the exit code is 1 when one failed, the others are installed all the same."""
    failed = 0
    clients = wanted(programs)
    with ThreadPoolExecutor(max(1, len(clients))) as threads:
        for client, done in [(client, threads.submit(install, client)) for client in clients]:
            error = done.exception()
            failed += error is not None
            sys.stdout.write(f"{client}: {'installed' if error is None else error}\n")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
