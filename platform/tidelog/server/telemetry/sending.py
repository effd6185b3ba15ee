"""A process's telemetry on its way to a collector, in threads of its own: what can't be sent is dropped.

Traces wait in a queue of 2,048 spans (OTEL_BSP_MAX_QUEUE_SIZE); metrics are read when they are due.
"""

import logging
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError
from tidelog.operations.metric_families import MetricFamily, MetricRow, counter, read_rows
from tidelog.server.telemetry.metric_data import metric_data
from tidelog.server.telemetry.process_metrics import Metrics, ProcessMetrics
from tidelog.server.telemetry.settings import TelemetrySettings
from tidelog.server.telemetry.spans import SdkTracing

logger = logging.getLogger(__name__)

# How long a process that ends waits until the last of its telemetry is sent.
FLUSH_S: Final = 5.0
# Names come from clients, and may be of any length.
_MOST_CHARACTERS: Final = 256
_TRACES, _METRICS = "traces", "metrics"


class CollectorOutcomes:
    """Whether the collector takes what it is sent: one warning when it begins not to, one line when it does again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._failing: set[str] = set()
        self._reason = _LastWords()
        # {(signal, whether it was taken): requests}
        self.counts: Counter[tuple[str, bool]] = Counter()

    def note(self, signal: str, *, taken: bool) -> None:
        """What became of one request."""
        with self._lock:
            self.counts[signal, taken] += 1
            was_well = not self._failing
            (self._failing.discard if taken else self._failing.add)(signal)
            is_well = not self._failing
        if was_well and not is_well:
            logger.warning(
                "The collector at %s does not take %s, which are dropped until it does; clients notice nothing: %s",
                self._url, signal, self._reason.text or "it did not answer",
            )  # fmt: skip
        elif is_well and not was_well:
            logger.info("The collector at %s takes %s again.", self._url, signal)

    def metrics(self) -> Iterator[MetricFamily]:
        """How many requests it took, and did not."""
        return read_rows(_ROWS, self)


_ROWS: Final[tuple[MetricRow[CollectorOutcomes], ...]] = (
    counter(
        "tidelog_otlp_requests",
        "Requests to the collector of telemetry.",
        lambda outcomes: [
            ({"signal": signal, "outcome": "taken" if taken else "dropped"}, outcomes.counts[signal, taken])
            for signal in (_METRICS, _TRACES)
            for taken in (True, False)
        ],
    ),
)


class _LastWords(logging.Handler):
    """Keeps what the SDK says last, which says it for each try, and has no other handler print it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""
        said = logging.getLogger("opentelemetry")
        said.handlers[:] = [self]
        said.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.text = record.getMessage()


class _Reported:
    """An exporter of spans whose outcomes are noted."""

    def __init__(self, exporter: Any, outcomes: CollectorOutcomes) -> None:
        self._exporter = exporter
        self._outcomes = outcomes

    def export(self, spans: Any) -> Any:
        """Send spans, until they are taken or can't be."""
        result = self._exporter.export(spans)
        self._outcomes.note(_TRACES, taken=result.name == "SUCCESS")
        return result

    def shutdown(self) -> None:
        """Try no more."""
        self._exporter.shutdown()


class Telemetry:
    """Sends what a process traces, from construction on, and what it counts, from `start` on, until `close`.

    `named`: what the process is; `about`: attributes of it beside its name. `fraction`: draws a number in [0, 1).
    """

    def __init__(
        self, settings: TelemetrySettings, named: str, about: Mapping[str, str], clock: Clock,
        fraction: Callable[[], float], *metrics: Metrics,
    ) -> None:  # fmt: skip
        self.outcomes = CollectorOutcomes(settings.url)
        self._clock = clock
        self._interval_s = settings.interval_s
        self._began_ns = clock.now_ms() * 1_000_000
        own = {
            "service.name": f"tidelog-{named}",
            "service.version": version("tidelog"),
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
            **about,
        }
        # What the environment says of the process comes first.
        self._resource = Resource.get_empty().merge(Resource(own)).merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope("tidelog", version("tidelog"))
        self._to_metrics = OTLPMetricExporter(f"{settings.url}/v1/metrics")
        self._to_traces = _Reported(OTLPSpanExporter(f"{settings.url}/v1/traces"), self.outcomes)
        limits = SpanLimits(max_attribute_length=_MOST_CHARACTERS)
        self._provider = TracerProvider(ALWAYS_ON, self._resource, shutdown_on_exit=False, span_limits=limits)
        exporter: Any = self._to_traces
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = self._provider.get_tracer("tidelog", version("tidelog"))
        self.tracing = SdkTracing(tracer, settings.sampling, clock, fraction)
        self._metrics = ProcessMetrics(*metrics, self.outcomes.metrics)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._send_metrics, name="telemetry", daemon=True)

    def start(self) -> None:
        """Send metrics, too."""
        self._thread.start()

    def close(self) -> None:
        """Send what is left, for `FLUSH_S` at most, and end."""
        self._ends.set()
        until_s = self._clock.elapsed_s() + FLUSH_S
        traces = threading.Thread(target=self._provider.shutdown, name="telemetry-end", daemon=True)
        traces.start()
        threads = [traces] if self._thread.ident is None else [traces, self._thread]
        for thread in threads:
            thread.join(max(0.0, until_s - self._clock.elapsed_s()))
        self._to_metrics.shutdown()
        if traces.is_alive():
            self._to_traces.shutdown()

    def _send_metrics(self) -> None:
        while not self._ends.wait(self._interval_s):
            self._send_once()
        self._send_once()

    def _send_once(self) -> None:
        try:
            families = list(self._metrics.read())
            now_ns = self._clock.now_ms() * 1_000_000
            for data in metric_data(families, self._resource, self._scope, self._began_ns, now_ns):
                result = self._to_metrics.export(data)
                self.outcomes.note(_METRICS, taken=result.name == "SUCCESS")
        except TidelogError as e:
            logger.info("No metrics are sent for a moment: %s", e)
        except Exception:
            logger.exception("No metrics are sent for a moment, by a fault in the program.")
