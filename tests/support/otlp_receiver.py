"""A collector of OpenTelemetry's on loopback: it takes OTLP over HTTP, and keeps what came."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.waiting import eventually

_BODIES = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came. Ids are hex, "" for a parent that there is none of; `links`: (trace id, span id)."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    kind: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    error: str | None
    resource: dict[str, Any]


@dataclass
class OtlpReceiver:
    """What came so far; `status` is what requests are answered with."""

    url: str = ""
    status: int = 200
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[ReceivedSpan] = field(default_factory=list)
    # {name: [(kind, attributes, value)]}, of each request.
    metrics: list[dict[str, list[tuple[str, dict[str, Any], float]]]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)

    def named(self, name: str, **attributes: Any) -> list[ReceivedSpan]:
        """The spans of that name with these attributes, whose dots are written as two underscores."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return [
            span
            for span in list(self.spans)
            if span.name == name and wanted.items() <= {k: v for k, v in span.attributes.items() if k in wanted}.items()
        ]

    def first(self, name: str, **attributes: Any) -> ReceivedSpan:
        """The first of them, once it has come."""
        return eventually(lambda: self.named(name, **attributes), f"a span {name}")[0]

    def children(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        """The spans below one, of those that came so far."""
        return [span for span in list(self.spans) if span.parent_id == parent.span_id]

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        self.headers.append(headers)
        if self.status != 200:
            return self.status
        request = _BODIES[path].FromString(gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body)
        if path == "/v1/traces":
            for group in request.resource_spans:
                resource = _attributes(group.resource.attributes)
                self.spans += [_span(one, resource) for scope in group.scope_spans for one in scope.spans]
        else:
            for group in request.resource_metrics:
                self.resources.append(_attributes(group.resource.attributes))
                self.metrics.append({m.name: _points(m) for scope in group.scope_metrics for m in scope.metrics})
        return 200


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def _span(one: Any, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        one.name,
        one.trace_id.hex(),
        one.span_id.hex(),
        one.parent_span_id.hex(),
        one.start_time_unix_nano,
        one.end_time_unix_nano,
        one.kind,
        _attributes(one.attributes),
        [(link.trace_id.hex(), link.span_id.hex()) for link in one.links],
        one.status.message if one.status.code == 2 else None,
        resource,
    )


def _points(metric: Any) -> list[tuple[str, dict[str, Any], float]]:
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind)
    if kind == "sum":
        assert data.is_monotonic
        assert data.aggregation_temporality == 2  # cumulative
        kind = "counter"
    return [(kind, _attributes(p.attributes), getattr(p, p.WhichOneof("value"))) for p in data.data_points]


@contextmanager
def otlp_receiver(port: int = 0) -> Iterator[OtlpReceiver]:
    """One that runs until the end of the block."""
    receiver = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(receiver._take(self.path, headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
