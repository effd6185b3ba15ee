"""A program `tidelog` for shells whose calls are forked from a process that has imported the command line.

A page of the documentation calls it a dozen times, and each call would import the product for itself.
"""

import atexit
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from support.nursery_server import end, settle

_LENGTH = 4
# What a shell starts: it gives its streams, folder and environment to a fork, and ends as that does.
_PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as forks:
    forks.connect({address!r})
    wanted = json.dumps(dict(words=sys.argv[1:], environment=dict(os.environ), folder=os.getcwd())).encode()
    socket.send_fds(forks, [len(wanted).to_bytes(4, "big")], [0, 1, 2])
    forks.sendall(wanted)
    ended = forks.recv(4)
os._exit(int.from_bytes(ended, "big") if ended else 1)
"""


@contextmanager
def forked_commands(program: Path) -> Iterator[None]:
    """Write `program`, and fork what its calls ask for until the block ends. This process has one thread until then."""
    from tidelog.cli.main import run

    address = f"\0tidelog-commands-{os.getpid()}"
    program.write_text(_PROGRAM.format(python=sys.executable, address=address), encoding="utf-8")
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen()
        ended, lives = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(lives)
            atexit._clear()  # what is registered there is the tests' to do: their servers, folders and loops go on
            _serve(listening, ended, run)
    os.close(ended)
    try:
        yield
    finally:
        os.close(lives)
        os.waitpid(pid, 0)


def _serve(listening: socket.socket, ended: int, run: Any) -> NoReturn:
    """Fork for each call a process that waits for the command, and says how it ended; until the caller has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while ended not in select.select([listening, ended], [], [])[0]:
        call, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer(call, run)
        call.close()
    os._exit(0)


def _answer(call: socket.socket, run: Any) -> NoReturn:
    head, streams, _, _ = socket.recv_fds(call, _LENGTH, 3)
    wanted = json.loads(call.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command == 0:
        call.close()
        settle({**wanted, "new_session": False, "process_group": -1}, streams)
        sys.argv[:] = ["tidelog", *wanted["words"]]
        end(run)
    _, status = os.waitpid(command, 0)
    code = os.waitstatus_to_exitcode(status)
    call.sendall((code if code >= 0 else 128 - code).to_bytes(_LENGTH, "big"))
    os._exit(0)
