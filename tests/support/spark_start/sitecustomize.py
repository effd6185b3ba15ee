"""What Python runs first in the processes that Spark starts for tests: they become forks of `support.spark_workers`."""

import os
import sys


def _forked() -> None:
    """Let a fork do this process's work, and stand for it: forward SIGTERM, and end when it ends."""
    import json
    import select
    import signal
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(os.environ["TIDELOG_TESTS_SPARK_WORKERS"])
        said = {"module": sys.orig_argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}
        text = json.dumps(said).encode()
        socket.send_fds(server, [len(text).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(text)
        child = int.from_bytes(server.recv(4), "big")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # the fork has them, and Spark sees their ends when it is gone
        os.dup2(nothing, stream)
    if child:
        ended = os.pidfd_open(child)
        signal.signal(signal.SIGTERM, lambda number, _: signal.pidfd_send_signal(ended, number))
        select.select([ended], [], [])
    os._exit(0)


if sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2].startswith("pyspark."):
    _forked()
elif sys.orig_argv[1:] == ["-m", "tidelog.sources.worker_daemon"]:
    import pyspark_tidelog  # noqa: F401 - before the workers are forked
