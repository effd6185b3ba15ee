"""Python workers of Spark acknowledge at once what Spark sends them."""

import socket
import subprocess
import sys

import pytest

from tidelog.sources import worker_daemon


def acknowledges_at_once(sock: socket.socket, _authenticated: bool) -> int:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can be asked to")
def test_a_worker_acknowledges_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_daemon, "run_task", acknowledges_at_once)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        assert (acknowledges_at_once(one, True), worker_daemon.worker(one, True)) == (0, 1)


def test_a_worker_on_another_kind_of_socket_works_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_daemon, "run_task", lambda _sock, _authenticated: 7)
    one, other = socket.socketpair()
    with one, other:
        assert worker_daemon.worker(one, True) == 7


def test_the_daemon_imports_nothing_that_starts_threads() -> None:
    """Workers are forked from it."""
    threads = "{'numpy', 'pandas', 'pyarrow'} & sys.modules.keys()"
    program = f"import sys, tidelog.sources.worker_daemon; print(sorted({threads}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
