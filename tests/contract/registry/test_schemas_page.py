"""docs/schemas.md: a registry and a client of Confluent's, as they stand; the other blocks run with the other pages."""

import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

from support.nursery import ForkedPython
from support.pages import blocks

from tidelog.log.lake import Lake

PAGE = "docs/schemas.md"
START = ".venv/bin/tidelog --lake /tmp/lake registry start"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_registry_and_its_client_work_as_they_stand(tmp_path, capsys):
    port = free_port()

    def here(code):
        return code.replace("/tmp/", f"{tmp_path}/").replace("8081", str(port))

    Lake(str(tmp_path / "lake")).close()
    (start,) = (block for block in blocks(PAGE, "sh") if block.begins(START))
    (client,) = (block for block in blocks(PAGE, "python") if block.begins("from confluent_kafka"))
    words = shlex.split(here(start.code))
    assert Path(words[0]).name == "tidelog"
    command = [sys.executable, "-m", "tidelog", "--format", "json", *words[1:]]
    with ForkedPython(command, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        try:
            assert str(port) in process.stdout.readline().decode()
            exec(compile(here(client.code), PAGE, "exec"), {"__name__": "__main__"})
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert capsys.readouterr().out == "{'page': 'home'} ['visits-value']\n"
