"""What a local Spark takes for its Python: a process that it starts to plan a query becomes a fork of one that runs.

Called `python -IS forked_python.py PYTHON FOLDER ARGUMENT...`. Where the arguments name a module of PySpark's that
plans, and `python_processes` listens in FOLDER, a fork does the work, and this process stands for it: it forwards
SIGTERM, and ends when the fork ends. In all other cases it becomes PYTHON. It imports little: Spark waits for it.
"""

import os
import sys
from contextlib import suppress

SOCKET = "forks"
# Workers that run a user's own functions are none of these: libraries of mathematics keep their threads there.
PLANNERS = ("pyspark.sql.worker.", "pyspark.sql.streaming.python_streaming_")


def plans(arguments: "list[str]") -> bool:
    """Whether `python ARGUMENTS` plans a query, runs a streaming source's driver side, or commits a write.

    >>> plans(["-m", "pyspark.daemon", "pyspark.sql.worker.plan_data_source_read"]), plans(["-m", "pyspark.daemon"])
    (True, False)
    """
    if arguments[:2] == ["-m", "pyspark.daemon"]:
        return len(arguments) == 3 and arguments[2].startswith(PLANNERS)
    return len(arguments) == 2 and arguments[0] == "-m" and arguments[1].startswith(PLANNERS)


def stand_for_a_fork(address: str, arguments: "list[str]") -> None:
    """Let a fork do what `arguments` say, and exit with it; return, or raise `OSError`, where there is none."""
    import json
    import select
    import signal
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(address)
        text = json.dumps({"module": arguments[1:], "environment": dict(os.environ), "folder": os.getcwd()}).encode()
        socket.send_fds(server, [len(text).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(text)
        child = int.from_bytes(server.recv(4), "big")
    if not child:
        return
    try:
        end = os.pidfd_open(child)
    except ProcessLookupError:  # it has ended already
        os._exit(0)
    signal.signal(signal.SIGTERM, lambda number, _: signal.pidfd_send_signal(end, number))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # the fork has them, and Spark sees their ends when it is gone
        os.dup2(nothing, stream)
    select.select([end], [], [])
    os._exit(0)


def main() -> None:
    """See the module."""
    python, folder, *arguments = sys.argv[1:]
    if plans(arguments):
        with suppress(OSError):
            stand_for_a_fork(f"{folder}/{SOCKET}", arguments)
    os.execv(python, [python, *arguments])  # noqa: S606 - as Spark would have started it


if __name__ == "__main__":
    main()
