"""docs/access.md: its set-up of TLS and users, with the commands as they stand."""

import shlex
import socket
import subprocess
from pathlib import Path

from support.broker_processes import broker_command
from support.pages import blocks, needs_spark, programs

PAGE = "docs/access.md"
START = ".venv/bin/tidelog --lake /tmp/lake broker start"
VENV = Path(__file__).parents[3] / ".venv"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_the_set_up_of_tls_and_users_works_as_it_stands(tmp_path, capsys):
    port = free_port()

    def here(code):
        code = code.replace("/tmp/", f"{tmp_path}/").replace("9093", str(port))
        return code.replace(".venv/", f"{VENV}/")

    assert not needs_spark(PAGE)
    for block in programs(PAGE):
        subprocess.run(["bash", "-euo", "pipefail", "-c", here(block.code)], check=True, cwd=tmp_path, timeout=120)
    (start,) = (block for block in blocks(PAGE, "sh") if block.begins(START))
    options = shlex.split(here(start.code).rpartition(" broker start ")[2])
    (client,) = blocks(PAGE, "python")
    with broker_command(tmp_path / "lake", *options) as command:
        assert command.ready()["listener"] == f"127.0.0.1:{port}"
        exec(compile(here(client.code), PAGE, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.endswith("one order\n")
