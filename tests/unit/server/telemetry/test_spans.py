"""Spans by OpenTelemetry's SDK: parents, links, times, and which begin at all."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from support.logs import FakeClock

from tidelog.server.telemetry.settings import Sampling
from tidelog.server.telemetry.spans import SdkTracing
from tidelog.server.telemetry.tracing import MOST_TRACES_A_SECOND, TraceParent, traced

CLIENT = TraceParent(0xA, 0xB, True)
OTHER = TraceParent(0xC, 0xD, False)


class World:
    def __init__(self, ratio=1.0, chance=0.0):
        self.clock = FakeClock()
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = SdkTracing(provider.get_tracer("t"), Sampling(ratio), self.clock, lambda: chance)
        self.start_s = self.clock.elapsed_s()

    def spans(self):
        return {span.name: span for span in self.exporter.get_finished_spans()}


def test_a_request_goes_on_in_its_clients_trace():
    world = World(ratio=0.0)
    span = world.tracing.begin("Produce", world.start_s, [CLIENT])
    span.part("append", world.start_s, world.start_s + 1, {"n": 1})
    span.end(world.start_s + 2)
    request, part = world.spans()["Produce"], world.spans()["append"]
    assert (request.context.trace_id, request.parent.span_id, request.kind) == (0xA, 0xB, SpanKind.SERVER)
    assert (part.context.trace_id, part.parent.span_id) == (0xA, request.context.span_id)
    assert part.attributes == {"n": 1}
    assert request.links == ()


def test_a_request_of_several_traces_names_all():
    world = World()
    world.tracing.begin("Produce", world.start_s, [CLIENT, OTHER]).end(world.start_s)
    request = world.spans()["Produce"]
    assert request.parent is None
    assert [link.context.trace_id for link in request.links] == [0xA, 0xC]


def test_times_are_those_of_the_wall_clock():
    world = World()
    began_ms = world.clock.now_ms()
    span = world.tracing.begin("Fetch", world.start_s)
    span.end(world.start_s + 0.25)
    request = world.spans()["Fetch"]
    assert abs(request.start_time - began_ms * 1_000_000) < 2_000_000
    assert request.end_time - request.start_time == 250_000_000


def test_a_trace_beside_names_the_one_that_it_is_beside():
    world = World()
    span = world.tracing.begin("EndTxn", world.start_s)
    span.beside("transaction", world.start_s - 10, world.start_s, {})
    span.link([OTHER])
    span.end(world.start_s, "ProducerFencedError")
    whole, request = world.spans()["transaction"], world.spans()["EndTxn"]
    assert whole.context.trace_id != request.context.trace_id
    assert [link.context.span_id for link in whole.links] == [request.context.span_id]
    assert [link.context.span_id for link in request.links] == [0xD]
    assert whole.end_time - whole.start_time == 10_000_000_000
    assert (request.status.is_ok, request.status.description) == (False, "ProducerFencedError")


def test_what_is_not_taken_costs_no_span():
    world = World(ratio=0.5, chance=0.5)
    assert world.tracing.begin("Fetch", world.start_s) is None
    assert world.tracing.begin("Fetch", world.start_s, [OTHER]) is None
    assert world.tracing.begin("Fetch", world.start_s, [CLIENT]) is not None


def test_clients_that_have_all_traced_are_bounded():
    world = World()
    begun = [world.tracing.begin("Produce", world.start_s, [CLIENT]) for _ in range(4000)]
    assert sum(one is not None for one in begun) == MOST_TRACES_A_SECOND


def test_work_that_is_done_becomes_a_trace_of_one_span():
    world = World()
    traced(world.tracing, "put sink-0", world.start_s, world.start_s + 1, {"n": 2}, [CLIENT], "ConnectError")
    span = world.spans()["put sink-0"]
    assert (span.kind, span.context.trace_id, span.attributes["n"]) == (SpanKind.INTERNAL, 0xA, 2)
    assert span.status.description == "ConnectError"
    traced(None, "put sink-0", world.start_s, world.start_s, {})
