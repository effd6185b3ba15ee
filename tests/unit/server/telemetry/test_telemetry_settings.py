"""A collector's address and OpenTelemetry's variables: what is taken, and what is refused by its name."""

import pytest

from tidelog.server.telemetry.settings import Sampling, TelemetrySettingError, sampling_of, telemetry_settings
from tidelog.server.telemetry.tracing import TraceParent

LOW, HIGH = TraceParent(1, 1, False), TraceParent(2**128 - 1, 1, True)


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
        ("https://collector/otlp/", "https://collector/otlp"),
        ("http://[::1]:4318", "http://[::1]:4318"),
    ],
)
def test_an_address_is_taken(url, taken):
    assert telemetry_settings(url, {}).url == taken


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("collector:4318", "OTLP over HTTP"),
        ("grpc://collector:4317", "OTLP over HTTP"),
        ("http://", "OTLP over HTTP"),
        ("http://collector:99999", "OTLP over HTTP"),
        ("http://collector?x=1", "OTLP over HTTP"),
        ("http://collector:4318/v1/traces", "leave out /v1/traces"),
    ],
)
def test_an_address_is_refused(url, why):
    with pytest.raises(TelemetrySettingError, match=why):
        telemetry_settings(url, {})


def test_a_password_in_an_address_is_refused_and_not_said():
    with pytest.raises(TelemetrySettingError, match="OTEL_EXPORTER_OTLP_HEADERS") as refused:
        telemetry_settings("http://me:secret@collector:4318", {})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("sampler", "argument", "taken"),
    [
        ("", "0.5", Sampling(0.01, True)),
        ("always_on", "", Sampling(1.0, False)),
        ("parentbased_always_on", "0.2", Sampling(1.0, True)),
        ("parentbased_always_off", "", Sampling(0.0, True)),
        ("traceidratio", "0.25", Sampling(0.25, False)),
        ("parentbased_traceidratio", "", Sampling(1.0, True)),
    ],
)
def test_samplers_of_the_specification(sampler, argument, taken):
    assert sampling_of({"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument}) == taken


@pytest.mark.parametrize(
    "environment",
    [
        {"OTEL_TRACES_SAMPLER": "xray"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "nan"},
        {"OTEL_METRIC_EXPORT_INTERVAL": "often"},
        {"OTEL_METRIC_EXPORT_INTERVAL": "0"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_a_variable_is_refused_by_its_name(environment):
    with pytest.raises(TelemetrySettingError, match=[*environment][-1]):
        telemetry_settings("http://collector:4318", environment)


def test_the_interval_is_in_ms():
    assert telemetry_settings("http://c", {}).interval_s == 60
    assert telemetry_settings("http://c", {"OTEL_METRIC_EXPORT_INTERVAL": "1500"}).interval_s == 1.5


@pytest.mark.parametrize(
    ("sampling", "parent", "chance", "taken"),
    [
        (Sampling(0.01), None, 0.009, True),
        (Sampling(0.01), None, 0.01, False),
        (Sampling(0.0), None, 0.0, False),
        (Sampling(0.0), HIGH, 0.9, True),
        (Sampling(1.0), LOW, 0.0, False),
        (Sampling(0.5, False), LOW, 0.9, True),
        (Sampling(0.5, False), HIGH, 0.0, False),
    ],
)
def test_which_requests_are_traced(sampling, parent, chance, taken):
    assert sampling.takes(parent, chance) is taken
