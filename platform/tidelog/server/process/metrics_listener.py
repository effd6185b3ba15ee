"""The listener that Prometheus and a process's supervisor ask: metrics, whether it lives, and whether it serves.

Requests to a store a minute are `rate(tidelog_store_requests_total[5m]) * 60`.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Thread
from types import TracebackType
from typing import Final, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from prometheus_client.exposition import ThreadingWSGIServer

from tidelog.log.base.errors import TidelogError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.log.storage.requests import RequestCounts, Requests
from tidelog.operations.metric_families import MetricFamily, MetricRow, counter, read_rows
from tidelog.server.base.listeners import Address
from tidelog.server.process.metrics_text import CONTENT_TYPE, rendered
from tidelog.server.telemetry.process_metrics import Metrics, ProcessMetrics

# Why a process can't do its work now; None while it can.
Problem = Callable[[], str | None]
# What is not well with the work of a process that serves all the same, in words.
Troubles = Callable[[], Iterable[str]]

_METRICS: Final = frozenset({"/", "/metrics"})
_LIVES: Final = frozenset({"/healthz", "/livez"})
_READY: Final = "/readyz"


class MetricsListener:
    """Serves `/metrics`, `/healthz` and `/readyz` over HTTP, from construction to `close`.

    `/healthz` answers 200 while the process can answer at all, and names `troubles`: a new process would have the same.
    `/readyz` answers 503 with the reason while `problem` gives one.
    `address`: (host, port), where 0 takes a free port; `self.address` has the one that was taken. Raises `OSError`.
    """

    def __init__(
        self,
        address: Address,
        *metrics: Metrics,
        problem: Problem = lambda: None,
        troubles: Troubles = tuple,
    ) -> None:
        self._metrics = ProcessMetrics(*metrics)
        self._problem = problem
        self._troubles = troubles
        host, port = address
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        server = type("Server", (ThreadingWSGIServer,), {"address_family": family})
        self._server: WSGIServer = make_server(host, port, self._answer, server, _QuietHandler)
        self.address: Address = (host, self._server.server_port)
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = request["PATH_INFO"] or "/"
        if path in _METRICS:
            start("200 OK", [("Content-Type", CONTENT_TYPE)])
            return [rendered(self._metrics.read())]
        if path in _LIVES:
            found = self._found_troubles()
            return _said(start, "200 OK", {"status": "degraded", "troubles": found} if found else {"status": "ok"})
        if path == _READY:
            why = self._why_not_ready()
            if why is None:
                return _said(start, "200 OK", {"status": "ok"})
            return _said(start, "503 Service Unavailable", {"status": "not ready", "reason": why})
        return _said(start, "404 Not Found", {"error": "Ask /metrics, /healthz or /readyz."})

    def _found_troubles(self) -> list[str]:
        try:
            return list(self._troubles())
        except TidelogError as e:
            return [str(e)]

    def _why_not_ready(self) -> str | None:
        try:
            return self._problem()
        except TidelogError as e:
            return str(e)


def _said(start: StartResponse, status: str, body: Mapping[str, str | list[str]]) -> list[bytes]:
    start(status, [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
    return [orjson.dumps(body)]


class _QuietHandler(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base calls it
        """Nothing."""


# For how long a store that answered is taken to answer: supervisors ask every second, and each request costs.
_ANSWERED_S: Final = 10.0
_OF_STORE: Final[tuple[MetricRow[RequestCounts], ...]] = (
    counter(
        "tidelog_store_requests",
        "Requests to the object store.",
        lambda counts: [({"kind": kind.value}, count) for kind, count in sorted(counts.by_kind.items())],
    ),
    counter("tidelog_store_sent_bytes", "Bytes sent to the object store.", lambda counts: counts.sent_bytes),
    counter(
        "tidelog_store_received_bytes",
        "Bytes received from the object store.",
        lambda counts: counts.received_bytes,
    ),
)


def store_metrics(storage: Storage) -> Iterator[MetricFamily]:
    """The requests to an object store since the process began, by kind, and their bytes; nothing of a local disk."""
    requests: Requests | None = getattr(storage, "requests", None)
    return iter(()) if requests is None else read_rows(_OF_STORE, requests.counts())


def store_problem(lake: Lake) -> Callable[[], str | None]:
    """What says why a lake's store does not answer, None while it does: one request every 10 s at most."""
    answered_s = float("-inf")

    def problem() -> str | None:
        nonlocal answered_s
        now_s = lake.clock.elapsed_s()
        if now_s - answered_s < _ANSWERED_S and lake.storage.is_shared:
            return None
        try:
            lake.storage.head(layout.LAKE_FILE)
        except TidelogError as e:
            answered_s = float("-inf")
            return str(e)
        answered_s = now_s
        return None

    return problem
