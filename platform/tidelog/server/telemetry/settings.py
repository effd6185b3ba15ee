"""What a process is asked to send, and where: a collector's address, and OpenTelemetry's variables of the environment.

Source: OpenTelemetry's specification of the SDK's environment variables, and of OTLP over HTTP.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from tidelog.log.base.errors import TidelogError
from tidelog.server.telemetry.tracing import TraceParent

# The part of requests that is traced where nothing else is asked for.
DEFAULT_RATIO: Final = 0.01
DEFAULT_INTERVAL_S: Final = 60.0

SAMPLER: Final = "OTEL_TRACES_SAMPLER"
SAMPLER_ARG: Final = "OTEL_TRACES_SAMPLER_ARG"
INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
_HTTP: Final = "http/protobuf"
_RATIO: Final = "traceidratio"
_FOLLOWS: Final = "parentbased_"
_SIGNALS: Final = ("/v1/traces", "/v1/metrics", "/v1/logs")


class TelemetrySettingError(TidelogError):
    """An address of a collector, or a variable of the environment, that can't be taken."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The part of requests that is traced. `follows_parent`: one that belongs to a trace is traced as that is."""

    ratio: float = DEFAULT_RATIO
    follows_parent: bool = True

    def takes(self, parent: TraceParent | None, chance: float) -> bool:
        """Whether a request is traced. `chance`: a number in [0, 1)."""
        if parent is None:
            return chance < self.ratio
        if self.follows_parent:
            return parent.is_sampled
        return (parent.trace_id & (2**64 - 1)) < self.ratio * 2**64


def sampling_of(environment: Mapping[str, str]) -> Sampling:
    """What `OTEL_TRACES_SAMPLER` and its argument ask for. Raises `TelemetrySettingError`."""
    name = environment.get(SAMPLER, "").strip().lower()
    if not name:
        return Sampling()
    kind = name.removeprefix(_FOLLOWS)
    ratios = {"always_on": 1.0, "always_off": 0.0}
    if kind in ratios:
        return Sampling(ratios[kind], name != kind)
    if kind != _RATIO:
        names = ", ".join(f"{prefix}{one}" for prefix in ("", _FOLLOWS) for one in (*ratios, _RATIO))
        raise TelemetrySettingError(f"{SAMPLER} is {name!r}, which tidelog does not have: give one of {names}.")
    text = environment.get(SAMPLER_ARG, "").strip() or "1"
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise TelemetrySettingError(f"{SAMPLER_ARG} is {text!r}: give the part that is traced, from 0 to 1.")
    return Sampling(ratio, name != kind)


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where a process sends its telemetry, which requests it traces, and how often it sends its metrics."""

    url: str
    sampling: Sampling
    interval_s: float = DEFAULT_INTERVAL_S


def telemetry_settings(url: str, environment: Mapping[str, str]) -> TelemetrySettings:
    """The settings. `url`: what was given as --otlp. Raises `TelemetrySettingError`."""
    protocol = environment.get(PROTOCOL, "").strip()
    if protocol not in ("", _HTTP):
        raise TelemetrySettingError(f"{PROTOCOL} is {protocol!r}, and tidelog has {_HTTP} alone.")
    return TelemetrySettings(parsed_collector(url), sampling_of(environment), _interval_s(environment))


def parsed_collector(url: str) -> str:
    """The address that `/v1/traces` and `/v1/metrics` come behind. Raises `TelemetrySettingError`.

    >>> parsed_collector("http://collector:4318/")
    'http://collector:4318'
    """
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        parts, has_port = urlsplit(""), False
    if "@" in parts.netloc:
        raise TelemetrySettingError(
            f"--otlp has a name or a password, which others see in a command's line: put it into {HEADERS}, as in"
            " authorization=Basic%20…"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port or parts.query or parts.fragment:
        raise TelemetrySettingError(
            f"--otlp {url!r} is no address of a collector: give http://HOST:PORT or https://HOST:PORT, where it takes"
            " OTLP over HTTP, as a rule at port 4318."
        )
    path = parts.path.rstrip("/")
    if path.endswith(_SIGNALS):
        signal = path[path.rindex("/v1") :]
        raise TelemetrySettingError(f"--otlp {url!r} is the address of one signal: leave out {signal}.")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _interval_s(environment: Mapping[str, str]) -> float:
    text = environment.get(INTERVAL, "").strip()
    if not text:
        return DEFAULT_INTERVAL_S
    if not text.isdecimal() or not int(text):
        raise TelemetrySettingError(f"{INTERVAL} is {text!r}: give a number of milliseconds.")
    return int(text) / 1000
