"""A process that stays up: its lake, its log, its metrics and health, what it says once it serves, and its end."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import orjson

from tidelog.log.base.extras import require
from tidelog.server.process.logs import LimitedLines, LogFormat, LogLevel, lines_to_stderr, logging_lines
from tidelog.server.process.stopping import Stop
from tidelog.server.telemetry.settings import telemetry_settings

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.operations.metric_families import MetricFamily
    from tidelog.server.process.metrics_listener import Problem, Troubles
    from tidelog.server.telemetry.process_metrics import Metrics
    from tidelog.server.telemetry.sending import Telemetry
    from tidelog.server.telemetry.settings import TelemetrySettings
    from tidelog.server.telemetry.tracing import Tracing


class Speech(Protocol):
    """How a process speaks."""

    @property
    def as_json(self) -> bool:
        """Whether what is said on stdout is JSON."""

    @property
    def log_format(self) -> LogFormat | None:
        """How the lines of its log are written."""

    @property
    def log_level(self) -> LogLevel | None:
        """From which level on they are written."""


class Ready(NamedTuple):
    """What a process says once it serves: a sentence for people, a document for programs."""

    text: str
    document: Mapping[str, object]


class Service:
    """What a process does until it is asked to stop. A face has what it needs of this, and `serve` runs it.

    `drains`: what began is finished once a signal comes; else a signal ends the process at once. `named`: what the
    process is.
    """

    drains: ClassVar[bool] = True
    named: str = "process"

    def trace(self, tracing: "Tracing") -> None:
        """Have what it does become traces there, from now on; called before `start`."""

    def start(self) -> None:
        """Begin. Raises what is in the way of that."""

    def ready(self, metrics: str | None) -> Ready | None:  # noqa: ARG002 - others name it
        """What is said once it serves. `metrics`: HOST:PORT of the process's metrics, where it serves them."""
        return None

    def run(self, stop: Stop) -> None:
        """Go on until `stop`, or until there is nothing left to do. Raises what ended it."""
        stop.within()

    def stop(self) -> None:
        """Finish what began, and end, also where `start` or `run` raised."""

    def metrics(self) -> "Iterable[MetricFamily]":
        """What it counts, as of now."""
        return ()

    def sent_metrics(self) -> "Iterable[MetricFamily]":
        """Of what it counts, what it sends to a collector: what is the same in all processes of a lake, one sends."""
        return self.metrics()

    def why_not_ready(self) -> str | None:
        """Why it can't do its work now, besides a store that does not answer; None while it can."""
        return None

    def troubles(self) -> Iterable[str]:
        """What is not well with its work while it serves, in words."""
        return ()


def serve(
    speech: Speech,
    open_lake: Callable[[], "AbstractContextManager[Lake]"],
    opened: Callable[["Lake", LimitedLines], Service],
    *,
    metrics: str | None = None,
    otlp: str | None = None,
    log: bool = True,
    say: Callable[[Ready], None] | None = None,
    stop: Stop | None = None,
    **fields: str,
) -> Stop:
    """Open a lake, run what is `opened` over it until SIGTERM or Ctrl-C, and drain it; how it was asked to stop.

    A second signal ends the process at once. `opened` gets the lines of the log, too. `metrics`: HOST:PORT to serve
    them at, until all is drained. `otlp`: the URL of a collector that metrics and traces are sent to, the last of them
    once all is drained. `log`: whether the log goes to stderr in lines, with `fields` in each, or as that of
    other commands. `say`: takes what is said once it serves, in place of stdout. `stop`: entered, by which others ask
    for an end. For the main thread. Raises `TelemetrySettingError`, and what opening, starting and running raise.
    """
    settings = None if otlp is None else checked_collector(otlp)
    with ExitStack() as ends:
        lines = lines_to_stderr(speech.log_format)
        if log:
            lines = ends.enter_context(logging_lines(speech.log_format, speech.log_level, **fields))
        lake = ends.enter_context(open_lake())
        service = opened(lake, lines)
        if stop is None:
            stop = Stop()
            if service.drains:
                ends.enter_context(stop)
        telemetry = None if settings is None else ends.enter_context(telemetry_sent(settings, lake, service))
        try:
            service.start()
            counted: list[Metrics] = [service.metrics]
            if telemetry is not None:
                counted.append(telemetry.outcomes.metrics)
                telemetry.start()
            served = metrics_served(
                metrics, lake, *counted, why_not_ready=service.why_not_ready, troubles=service.troubles
            )
            ready = service.ready(ends.enter_context(served))
            if ready is not None:
                say_ready(speech, ready) if say is None else say(ready)
            service.run(stop)
        finally:
            service.stop()
    return stop


def say_ready(speech: Speech, ready: Ready) -> None:
    """Say on stdout, at once, that clients can connect: in JSON where that is asked for, else by a sentence."""
    sys.stdout.write(f"{orjson.dumps(ready.document).decode() if speech.as_json else ready.text}\n")
    sys.stdout.flush()


def checked_collector(otlp: str) -> "TelemetrySettings":
    """What a process sends to a collector, as its option and the environment say.

    Raises `TelemetrySettingError`, `MissingPackageError`.
    """
    require("otel", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    require("broker", "prometheus_client")
    return telemetry_settings(otlp, os.environ)


@contextmanager
def telemetry_sent(settings: "TelemetrySettings", lake: "Lake", service: Service) -> "Iterator[Telemetry]":
    """Meanwhile have what a service does become traces, and, once the telemetry is started, send what it counts."""
    # Heavy, and only needed where telemetry is asked for.
    from tidelog.server.process.metrics_listener import store_metrics
    from tidelog.server.telemetry.sending import Telemetry

    about = {"tidelog.lake": lake.uri}
    telemetry = Telemetry(
        settings, service.named, about, lake.clock, lake.ids.fraction, service.sent_metrics,
        lambda: store_metrics(lake.storage),
    )  # fmt: skip
    service.trace(telemetry.tracing)
    try:
        yield telemetry
    finally:
        telemetry.close()


@contextmanager
def metrics_served(
    at: str | None,
    lake: "Lake",
    *metrics: "Metrics",
    why_not_ready: "Problem" = lambda: None,
    troubles: "Troubles" = tuple,
) -> Iterator[str | None]:
    """Meanwhile serve a process's metrics, with those of its store; HOST:PORT, or None where none are asked for.

    `why_not_ready`: why the process can't do its work, besides a store that does not answer. `troubles`: what
    `/healthz` names beside. Raises `ListenerError`, `MissingPackageError`.
    """
    if at is None:
        yield None
        return
    require("broker", "prometheus_client")
    # Heavy, and not needed for --help.
    from tidelog.server.base.listeners import parse_listener, refusal, shown
    from tidelog.server.process.metrics_listener import MetricsListener, store_metrics, store_problem

    address, of_store = parse_listener(at), store_problem(lake)
    try:
        listener = MetricsListener(
            address,
            *metrics,
            lambda: store_metrics(lake.storage),
            problem=lambda: why_not_ready() or of_store(),
            troubles=troubles,
        )
    except OSError as e:
        raise refusal(address, e) from e
    with listener:
        yield shown(listener.address)
