"""Prometheus' text format: what prometheus_client's own parser reads is what was written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from tidelog.server.process.metrics_text import add, rendered


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
    family = GaugeMetricFamily("one", "What\nit \\ is.")
    add(family, labels, value)
    if any("\r" in text or "\x85" in text or not text.isprintable() for text in labels.values()):
        assert rendered([family])
    else:
        assert read(rendered([family])) == [("one", labels, float(value))]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers(value):
    family = GaugeMetricFamily("one", "It.", value=value)
    assert repr(read(rendered([family]))) == repr([("one", {}, value)])


def test_counters_are_named_as_prometheus_wants():
    family = CounterMetricFamily("requests", "Requests.")
    add(family, {"api": "Fetch"}, 3)
    assert (
        rendered([family])
        == b'# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total{api="Fetch"} 3\n'
    )


def test_it_says_what_prometheus_client_says():
    registry = CollectorRegistry()
    Gauge("size", "A size.", ["of"], registry=registry).labels("it").set(1.5)
    registry.register(_Requests())
    assert read(rendered(registry.collect())) == read(generate_latest(registry))


class _Requests:
    def collect(self):
        yield CounterMetricFamily("requests", "Requests.", value=7)


def test_samples_that_share_labels():
    first, second = GaugeMetricFamily("first", "1."), GaugeMetricFamily("second", "2.")
    place = {"topic": "a"}
    add(first, place, 1)
    add(second, place, 2)
    assert read(rendered([first, second])) == [("first", place, 1.0), ("second", place, 2.0)]
