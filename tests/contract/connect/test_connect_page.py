"""docs/connect.md: a worker and the requests to it, as they stand; the other blocks run with the other pages."""

import json
import shlex
import signal
import socket
import subprocess
import sys

from support.nursery import ForkedPython
from support.pages import blocks
from support.waiting import eventually

from tidelog.log.lake import Lake

PAGE = "docs/connect.md"
START = ".venv/bin/tidelog --lake /tmp/lake connect start"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_worker_and_its_requests_work_as_they_stand(tmp_path):
    port = free_port()

    def here(code):
        return code.replace("/tmp/", f"{tmp_path}/").replace("8083", str(port))

    (tmp_path / "lines.txt").write_text("one\ntwo\n")
    (start,) = (block for block in blocks(PAGE, "sh") if block.begins(START))
    (requests,) = (block for block in blocks(PAGE, "sh") if block.begins("curl -s -X PUT"))
    command = [sys.executable, "-m", "tidelog", "--format", "json", *shlex.split(here(start.code))[1:]]
    with Lake(str(tmp_path / "lake"), True) as lake, ForkedPython(command, stdout=subprocess.PIPE) as process:
        try:
            assert json.loads(process.stdout.readline())["url"] == f"http://127.0.0.1:{port}"
            shell = subprocess.run(["bash", "-ec", here(requests.code)], capture_output=True, text=True, check=True)
            assert '"name": "lines"' in shell.stdout
            eventually(lambda: lake.peek("lines"), "the topic is there")
            rows = eventually(lambda: [*lake.topic("lines").read(0)], "its records are")
            assert rows[0].column("value").to_pylist() == [b"one", b"two"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert process.returncode == 0
