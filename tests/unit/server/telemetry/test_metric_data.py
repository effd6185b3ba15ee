"""Metrics as OpenTelemetry has them: the names, labels and values of the listener's text."""

import math

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import Sum
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.parser import text_string_to_metric_families

from tidelog.operations.metric_families import MetricFamily, counter, gauge, read_rows
from tidelog.server.process.metrics_text import rendered
from tidelog.server.telemetry.metric_data import MOST_POINTS, metric_data
from tidelog.server.telemetry.process_metrics import ProcessMetrics

ROWS = (
    counter("app_requests", "Requests.", lambda n: [({"api": "Produce"}, n), ({"api": "Fetch"}, 2 * n)]),
    gauge("app_is_well", "Whether it is.", lambda n: n > 0),
    gauge("app_share", "A part.", lambda n: n / 3),
    gauge("app_nothing", "No sample.", lambda n: []),
)


def sent(families):
    data = metric_data(families, Resource({}), InstrumentationScope("tidelog"), 1, 2)
    return [one.resource_metrics[0].scope_metrics[0].metrics for one in data]


def as_samples(metrics):
    return {
        (metric.name, tuple(sorted(point.attributes.items()))): point.value
        for metric in metrics
        for point in metric.data.data_points
    }


def test_both_faces_have_the_same_samples():
    (metrics,) = sent(read_rows(ROWS, 6))
    text = rendered(read_rows(ROWS, 6)).decode()
    shown = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert as_samples(metrics) == shown
    assert {metric.name: isinstance(metric.data, Sum) for metric in metrics} == {
        "app_requests_total": True,
        "app_is_well": False,
        "app_share": False,
    }


def test_a_counter_names_when_its_process_began_and_a_gauge_only_now():
    (metrics,) = sent(read_rows(ROWS, 6))
    times = {m.name: {(p.start_time_unix_nano, p.time_unix_nano) for p in m.data.data_points} for m in metrics}
    assert times == {"app_requests_total": {(1, 2)}, "app_is_well": {(0, 2)}, "app_share": {(0, 2)}}


def test_many_samples_are_several_requests():
    large = MetricFamily("app_lag", "Lag.", samples=[({"p": str(n)}, n) for n in range(2 * MOST_POINTS + 5)])
    requests = sent([*read_rows(ROWS, 1), large])
    points = [[point for metric in metrics for point in metric.data.data_points] for metrics in requests]
    assert [len(one) for one in points] == [MOST_POINTS, MOST_POINTS, 9]
    assert sorted(p.value for one in points for p in one if "p" in p.attributes) == [*range(2 * MOST_POINTS + 5)]


def test_every_value_can_be_encoded():
    family = MetricFamily("odd", "Odd.", samples=[({}, value) for value in (math.nan, math.inf, True, 2**53, 0.5)])
    for data in metric_data([family, *ProcessMetrics().read()], Resource({}), InstrumentationScope("t"), 1, 2):
        assert encode_metrics(data).ByteSize() > 0
