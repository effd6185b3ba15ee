"""Spans of OpenTelemetry's SDK, for whatever a process traces."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from tidelog.log.base.clock import Clock
from tidelog.log.base.request_ids import Attributes
from tidelog.server.telemetry.settings import Sampling
from tidelog.server.telemetry.tracing import TraceBudget, TraceParent

# The wall clock of one trace's spans may be off by so much: it is read in ms, and jumps.
_OFF_NS: Final = 2_000_000


class SdkTracing:
    """Makes spans by a tracer, which takes all that it is given. For any thread.

    `fraction`: draws a number in [0, 1).
    """

    def __init__(self, tracer: Any, sampling: Sampling, clock: Clock, fraction: Callable[[], float]) -> None:
        self.tracer = tracer
        self._sampling = sampling
        self._clock = clock
        self._fraction = fraction
        self._budget = TraceBudget(clock.elapsed_s())
        self._offset_ns = self._measured_ns()

    def begin(
        self, name: str, start_s: float, parents: Sequence[TraceParent] = (), *, is_request: bool = True
    ) -> "SdkSpan | None":
        """As `Tracing.begin`."""
        parent = parents[0] if len(parents) == 1 else None
        if not self._sampling.takes(parent, self._fraction()) or not self._budget.take(self._clock.elapsed_s()):
            return None
        measured_ns = self._measured_ns()
        if abs(measured_ns - self._offset_ns) > _OFF_NS:
            self._offset_ns = measured_ns
        context = trace.set_span_in_context(NonRecordingSpan(_remote(parent))) if parent is not None else Context()
        links = [] if parent is not None else [_remote(one) for one in parents]
        kind = SpanKind.SERVER if is_request else SpanKind.INTERNAL
        return SdkSpan.started(self.tracer, self._offset_ns, context, name, kind, start_s, {}, links)

    def _measured_ns(self) -> int:
        """What is added to a time of the elapsed clock, in ns, to have it since the epoch."""
        return self._clock.now_ms() * 1_000_000 - int(self._clock.elapsed_s() * 1e9)


class SdkSpan:
    """A `RequestSpan`, and its trace's way to tell the time. Times are rounded to a microsecond."""

    __slots__ = ("_offset_ns", "_span", "_tracer", "start_s", "trace_id")

    def __init__(self, tracer: Any, offset_ns: int, start_s: float, span: Span) -> None:
        self.start_s = start_s
        self.trace_id = trace.format_trace_id(span.get_span_context().trace_id)
        self._tracer = tracer
        self._offset_ns = offset_ns
        self._span = span

    @classmethod
    def started(
        cls, tracer: Any, offset_ns: int, context: Context, name: str, kind: SpanKind, start_s: float,
        attributes: Attributes, links: Sequence[SpanContext],
    ) -> "SdkSpan":  # fmt: skip
        """A span that goes on."""
        named = [Link(link) for link in links]
        start_ns = offset_ns + int(start_s * 1e6) * 1000
        return cls(tracer, offset_ns, start_s, tracer.start_span(name, context, kind, attributes, named, start_ns))

    def part(
        self, name: str, start_s: float, end_s: float, attributes: Attributes, error: str = "",
        links: Sequence["SdkSpan"] = (), others: Sequence[tuple[int, int, bool]] = (),
    ) -> "SdkSpan":  # fmt: skip
        """As `RequestSpan.part`."""
        named = [*(link._span.get_span_context() for link in links), *(_remote(TraceParent(*one)) for one in others)]
        return self._ended(trace.set_span_in_context(self._span), name, start_s, end_s, attributes, error, named)

    def beside(self, name: str, start_s: float, end_s: float, attributes: Attributes) -> "SdkSpan":
        """As `RequestSpan.beside`."""
        return self._ended(Context(), name, start_s, end_s, attributes, "", [self._span.get_span_context()])

    def note(self, attributes: Attributes) -> None:
        """As `RequestSpan.note`."""
        self._span.set_attributes(attributes)

    def link(self, spans: Sequence[tuple[int, int, bool]]) -> None:
        """As `RequestSpan.link`."""
        for span in spans:
            self._span.add_link(_remote(TraceParent(*span)))

    def end(self, end_s: float, error: str = "") -> None:
        """As `RequestSpan.end`."""
        if error:
            self._span.set_status(Status(StatusCode.ERROR, error))
        self._span.end(self._offset_ns + int(end_s * 1e6) * 1000)

    def _ended(
        self, context: Context, name: str, start_s: float, end_s: float, attributes: Attributes, error: str,
        links: Sequence[SpanContext],
    ) -> "SdkSpan":  # fmt: skip
        kind = SpanKind.INTERNAL
        span = self.started(self._tracer, self._offset_ns, context, name, kind, start_s, attributes, links)
        span.end(end_s, error)
        return span


def _remote(parent: TraceParent) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(parent.trace_id, parent.span_id, True, flags)
