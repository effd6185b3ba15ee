"""Prometheus' text format: what prometheus_client's own parser reads is what was written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from tidelog.operations.metric_families import MetricFamily, counter, gauge, read_rows
from tidelog.server.process.metrics_text import rendered
from tidelog.server.telemetry.process_metrics import family_of


def read(text):
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    ]


@given(
    st.dictionaries(st.sampled_from(["topic", "group", "at"]), st.text(st.characters(exclude_categories=["Cs"]))),
    st.one_of(st.floats(allow_nan=False), st.integers(-(2**60), 2**60)),
)
def test_labels_and_values(labels, value):
    family = MetricFamily("one", "What\nit \\ is.", samples=[(labels, value)])
    if any("\r" in text or "\x85" in text or not text.isprintable() for text in labels.values()):
        assert rendered([family])
    else:
        assert read(rendered([family])) == [("one", labels, float(value))]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers(value):
    assert repr(read(rendered([MetricFamily.of("one", "It.", value)]))) == repr([("one", {}, value)])


def test_it_says_what_prometheus_client_says():
    registry = CollectorRegistry()
    Gauge("size", "A size.", ["of"], registry=registry).labels("it").set(1.5)
    registry.register(_Requests())
    families = [family_of(metric) for metric in registry.collect()]
    assert families == [
        MetricFamily("size", "A size.", samples=[({"of": "it"}, 1.5)]),
        MetricFamily("requests", "Requests.", True, [({}, 7)]),
    ]
    assert read(rendered(families)) == read(generate_latest(registry))


class _Requests:
    def collect(self):
        yield CounterMetricFamily("requests", "Requests.", value=7)


def test_samples_that_share_labels():
    place = {"topic": "a"}
    families = [MetricFamily(name, name, samples=[(place, value)]) for name, value in (("first", 1), ("second", 2))]
    assert read(rendered(families)) == [("first", place, 1.0), ("second", place, 2.0)]


def test_rows_are_read_of_a_state():
    rows = (
        gauge("size", "A size.", lambda state: state),
        counter("requests", "Requests.", lambda state: (({"api": api}, state) for api in ("Fetch", "Produce"))),
        gauge("none", "What has no sample now.", lambda _: []),
        gauge("nothing", "What is not there now.", lambda _: None),
    )
    assert rendered(read_rows(rows, 7)).decode().splitlines() == [
        "# HELP size A size.",
        "# TYPE size gauge",
        "size 7",
        "# HELP requests_total Requests.",
        "# TYPE requests_total counter",
        'requests_total{api="Fetch"} 7',
        'requests_total{api="Produce"} 7',
        "# HELP none What has no sample now.",
        "# TYPE none gauge",
    ]
