"""PySpark's daemon, whose Python workers acknowledge at once what Spark sends them: `spark.python.daemon.module`.

Spark sends a worker each task in pieces. Nagle's algorithm holds the second piece back until the worker acknowledges
the first, and a worker that has nothing to answer yet delays that for 40 ms (RFC 1122, 4.2.3.2): in a micro-batch as
long as all else that the worker does.
"""

import socket

from pyspark import daemon

run_task = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run a worker's next task. On Linux the kernel acknowledges at once until the worker first answers."""
    if hasattr(socket, "TCP_QUICKACK") and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    return run_task(sock, authenticated)


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
