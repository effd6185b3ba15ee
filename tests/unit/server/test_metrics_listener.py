"""The listener for Prometheus and for supervisors of a process."""

import urllib.error
import urllib.request

import orjson
import pytest

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.operations.metric_families import MetricFamily
from tidelog.server.process.metrics_listener import MetricsListener


def ask(listener, path):
    """(status, body) of a request."""
    host, port = listener.address
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def test_metrics():
    with MetricsListener(("127.0.0.1", 0), lambda: [MetricFamily.of("answer", "What it is.", 42)]) as listener:
        for path in ("/metrics", "/"):
            status, body = ask(listener, path)
            assert status == 200
            assert b"answer 42\n" in body
            assert b"process_resident_memory_bytes" in body


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_process_that_is_well(path):
    with MetricsListener(("127.0.0.1", 0)) as listener:
        assert ask(listener, path) == (200, b'{"status":"ok"}')


def test_a_process_that_lives_and_does_not_serve():
    with MetricsListener(("127.0.0.1", 0), problem=lambda: "The store is away.") as listener:
        assert ask(listener, "/healthz")[0] == 200
        status, body = ask(listener, "/readyz")
    assert status == 503
    assert orjson.loads(body) == {"status": "not ready", "reason": "The store is away."}


def test_troubles_are_named_by_a_process_that_lives():
    with MetricsListener(("127.0.0.1", 0), troubles=lambda: ["Connector 'c' has failed."]) as listener:
        status, body = ask(listener, "/healthz")
        assert (status, orjson.loads(body)) == (200, {"status": "degraded", "troubles": ["Connector 'c' has failed."]})
        assert ask(listener, "/readyz")[0] == 200


def test_a_problem_that_is_raised_is_told():
    def away():
        raise StorageUnavailableError("The store is away.")

    with MetricsListener(("127.0.0.1", 0), problem=away) as listener:
        assert ask(listener, "/readyz")[0] == 503


def test_other_paths():
    with MetricsListener(("127.0.0.1", 0)) as listener:
        assert ask(listener, "/metric")[0] == 404


def test_an_address_that_is_taken():
    with MetricsListener(("127.0.0.1", 0)) as first, pytest.raises(OSError, match="in use"):
        MetricsListener(first.address)


def test_a_listener_that_is_closed_leaves_its_port():
    with MetricsListener(("127.0.0.1", 0)) as first:
        address = first.address
    with MetricsListener(address) as second:
        assert ask(second, "/healthz")[0] == 200
