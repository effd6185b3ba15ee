"""An HTTP proxy on loopback between a client and an S3 server, which fails as a test says.

It forwards requests as they are: the signature is over the header Host, so that must be the client's.
"""

import http.client
import random
import re
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit


class Fault(Enum):
    """What becomes of a request. The server executes those of the second line."""

    LOST, SLOW_DOWN, ERROR, HUNG = auto(), auto(), auto(), auto()
    DROPPED, ERROR_AFTER, HUNG_AFTER, NONE = auto(), auto(), auto(), auto()

    @property
    def acts(self) -> bool:
        return self in (Fault.DROPPED, Fault.ERROR_AFTER, Fault.HUNG_AFTER, Fault.NONE)


class Request(NamedTuple):
    """`kind`: get, head, list, put, create (put-if-absent), part (of an upload in parts), delete; `nth` such request
    for this path, from 1."""

    kind: str
    path: str
    nth: int


Plan = Callable[[Request], Fault]
_STATUS = {
    Fault.SLOW_DOWN: (503, "Service Unavailable", "SlowDown"),
    Fault.ERROR: (500, "Internal Server Error", "InternalError"),
    Fault.ERROR_AFTER: (500, "Internal Server Error", "InternalError"),
}


def well(request: Request) -> Fault:
    """No faults."""
    return Fault.NONE


def storm(seed: int, share: float, *faults: Fault, most: int = 3) -> Plan:
    """Each request fails by chance, in this share of cases, at most `most` times in a row for a path.

    What happens depends on the seed and the request alone, not on the order in which threads send them.
    """

    def plan(request: Request) -> Fault:
        chance = random.Random(f"{seed} {request.kind} {_unnamed(request.path)} {request.nth}")
        if request.nth % (most + 1) == 0 or chance.random() >= share:
            return Fault.NONE
        return chance.choice(faults)

    return plan


def _unnamed(path: str) -> str:
    """The path without the names that chance gave its parts."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "", path)


def first(fault: Fault, count: int, *kinds: str, path: str = "") -> Plan:
    """The first `count` of these kinds of requests (none named: of all), to paths that hold `path`, fail."""
    left = count

    def plan(request: Request) -> Fault:
        nonlocal left
        if left and (not kinds or request.kind in kinds) and re.search(path, request.path):
            left -= 1
            return fault
        return Fault.NONE

    return plan


class FaultProxy:
    """`plan` says what becomes of a request, `delay_s` how long each answer takes by its kind ("": of any other).

    `counts` and `failed` count requests by kind. All may be changed at any time.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream)
        self.plan: Plan = well
        self.delay_s: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.paths: Counter[tuple[str, str]] = Counter()
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self._server: _Server | None = None
        self._port = 0
        self._start()

    @property
    def url(self) -> str:
        """Where the client is to send its requests."""
        return f"http://127.0.0.1:{self._port}"

    def forget(self) -> None:
        """Count from zero."""
        with self.lock:
            self.counts.clear()
            self.failed.clear()
            self.paths.clear()

    def judge(self, kind: str, path: str) -> Fault:
        """Count a request, and say what becomes of it."""
        with self.lock:
            self.paths[kind, path] += 1
            fault = self.plan(Request(kind, path, self.paths[kind, path]))
            self.counts[kind] += 1
            self.failed[kind] += fault is not Fault.NONE
            return fault

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """No listener: connections are refused, and those that were there are closed."""
        self.stop()
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        self.closing.clear()
        self._server = _Server(("127.0.0.1", self._port), _Handler, self)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """End: no listener is left."""
        if self._server is not None:
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()
            self._server.close_connections()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], proxy: FaultProxy) -> None:
        self.proxy = proxy
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: socket.socket, client_address: tuple[str, int]) -> None:  # type: ignore[override]
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone is no news."""

    def close_connections(self) -> None:
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    _upstream: http.client.HTTPConnection | None = None

    def answer(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        kind = _kind(self.command, self.path, self.headers.get("if-none-match"))
        fault = proxy.judge(kind, urlsplit(self.path).path)
        told = self._forward(body) if fault.acts else None
        time.sleep(proxy.delay_s.get(kind, proxy.delay_s.get("", 0.0)))
        if told is not None and fault is Fault.NONE:
            self._send(*told)
        elif fault in _STATUS:
            status, reason, code = _STATUS[fault]
            self._send(status, reason, [], f"<Error><Code>{code}</Code></Error>".encode())
        else:
            self.close_connection = True
            while fault in (Fault.HUNG, Fault.HUNG_AFTER) and not proxy.closing.is_set():
                if select.select([self.connection], [], [], 0.05)[0]:  # the client has given up
                    break

    def _forward(self, body: bytes) -> tuple[int, str, list[tuple[str, str]], bytes]:
        upstream = self.server.proxy.upstream
        if self._upstream is None:
            self._upstream = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=30)
        connection = self._upstream
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        kept = ("connection", "transfer-encoding", "content-length")
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in kept]
        if self.command == "HEAD":
            headers += [("content-length", answer.getheader("content-length") or "0")]
        return answer.status, answer.reason, headers, answer.read()

    def _send(self, status: int, reason: str, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status, reason)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD" and status != http.HTTPStatus.NO_CONTENT:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

    def finish(self) -> None:
        super().finish()
        if self._upstream is not None:
            self._upstream.close()

    def log_message(self, *args: object) -> None:
        pass


def _kind(method: str, path: str, if_none_match: str | None) -> str:
    query = urlsplit(path).query
    if method == "GET":
        return "list" if "list-type=" in query else "get"
    if method == "PUT":
        return "part" if "uploadId=" in query else "create" if if_none_match else "put"
    if method == "POST":
        return "delete" if query.startswith("delete") else "part"
    return method.lower()


@contextmanager
def fault_proxy(upstream: str) -> Iterator[FaultProxy]:
    """A proxy before the server at this address."""
    proxy = FaultProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.stop()
