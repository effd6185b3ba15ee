"""The HTTP sink against scripted answers: requests, authorization, retries, records that are refused."""

import base64
import json

import httpx
import pytest
from support.connect_records import sink_record
from support.connect_tasks import started_sink

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.http_sink import HttpSink, header_pairs, status_codes
from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.data.schema import STRING

URL = "http://receiver.test/in"


class Clock:
    seconds = 0.0

    def elapsed_s(self):
        return self.seconds

    def now_ms(self):
        return 1_767_323_045_000  # 2026-01-02 03:04:05 UTC


class Receiver:
    """Answers requests as scripted, then 200; `requests` has what was asked."""

    def __init__(self, *answers):
        self.answers, self.requests = [*answers], []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else httpx.Response(200)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def bodies(self):
        return [request.content.decode() for request in self.requests]


def sink(receiver, tolerant=True, clock=None, **config):
    given = {"http.api.url": URL} | {key.replace("_", "."): value for key, value in config.items()}
    return started_sink(
        HttpSink, given, [("test", 0)], tolerant, clock=clock or Clock(), transport=httpx.MockTransport(receiver)
    )


def records(count, first=0):
    return [sink_record(None, {"n": offset}, offset=offset) for offset in range(first, first + count)]


def test_each_record_is_a_request():
    receiver = Receiver()
    task, _ = sink(receiver, headers="X-One: a:b|X-Two:2")
    task.put(records(2))
    assert receiver.bodies == ['{"n":0}', '{"n":1}']
    request = receiver.requests[0]
    assert (request.method, str(request.url)) == ("POST", URL)
    assert {name: request.headers[name] for name in ("x-one", "x-two", "content-type")} == {
        "x-one": "a:b", "x-two": "2", "content-type": "application/json",
    }  # fmt: skip
    task.stop()


def test_batches_are_of_one_address_and_size():
    receiver = Receiver()
    task, _ = sink(receiver, batch_max_size="2", http_api_url=URL + "/${topic}")
    task.put([*records(3), sink_record(None, 1, offset=3).but(topic="a/b")])
    assert [json.loads(body) for body in receiver.bodies] == [[{"n": 0}, {"n": 1}], [{"n": 2}], [1]]
    assert [request.url.raw_path for request in receiver.requests] == [b"/in/test", b"/in/test", b"/in/a%2Fb"]
    receiver = Receiver()
    task, _ = sink(receiver, batch_max_size="9", batch_prefix="<", batch_separator=";", batch_suffix=">",
                   request_body_format="string")  # fmt: skip
    task.put([sink_record(STRING, text) for text in ("a", "b")])
    assert receiver.bodies == ["<a;b>"]


@pytest.mark.parametrize(
    ("behavior", "methods", "refused"), [("ignore", [], 0), ("delete", ["DELETE"], 0), ("fail", [], 1)]
)
def test_null_values(behavior, methods, refused):
    receiver = Receiver()
    task, context = sink(receiver, behavior_on_null_values=behavior, http_api_url=URL + "/${key}")
    task.put([sink_record(None, None).but(key="k 1")])
    assert [request.method for request in receiver.requests] == methods
    assert {request.url.raw_path for request in receiver.requests} <= {b"/in/k%201"}
    assert len(context.refused) == refused


@pytest.mark.parametrize(
    ("config", "header"),
    [
        ({"auth_type": "basic", "connection_user": "u", "connection_password": "p"},
         "Basic " + base64.b64encode(b"u:p").decode()),
        ({"auth_type": "BEARER", "bearer_token": "t"}, "Bearer t"),
    ],
)  # fmt: skip
def test_authorization(config, header):
    receiver = Receiver()
    sink(receiver, **config)[0].put(records(1))
    assert receiver.requests[0].headers["authorization"] == header


def test_oauth2_tokens_are_asked_for_before_they_end():
    tokens = iter("abc")

    def answer(request):
        if request.url.path == "/token":
            assert request.content == b"grant_type=client_credentials&scope=s"
            assert request.headers["authorization"].startswith("Basic ")
            return httpx.Response(200, json={"access_token": next(tokens), "expires_in": 100})
        return httpx.Response(401 if request.headers["authorization"] == "Bearer b" else 200)

    seen = []
    clock = Clock()
    task, context = sink(
        lambda request: seen.append(request.headers["authorization"]) or answer(request), clock=clock,
        auth_type="oauth2",
        oauth2_token_url="http://issuer.test/token", oauth2_client_id="i", oauth2_client_secret="s",
        oauth2_client_scope="s", retry_on_status_codes="401",
    )  # fmt: skip
    task.put(records(2))
    clock.seconds = 71.0
    with pytest.raises(RetriableConnectError, match="401"):
        task.put(records(1, 2))
    task.put(records(1, 2))
    assert [one for one in seen if one.startswith("Bearer")] == ["Bearer a", "Bearer a", "Bearer b", "Bearer c"]
    assert context.refused == []


@pytest.mark.parametrize("failure", [httpx.Response(503), httpx.Response(429), httpx.ConnectError("refused")])
def test_answers_that_may_change_are_asked_for_again_without_what_was_sent(failure):
    receiver = Receiver(httpx.Response(204), failure, failure)
    task, context = sink(receiver, retry_backoff_ms="100")
    for _ in range(2):
        with pytest.raises(RetriableConnectError, match=URL):
            task.put(records(3))
    task.put(records(3))
    assert receiver.bodies == ['{"n":0}', '{"n":1}', '{"n":1}', '{"n":1}', '{"n":2}']
    assert context.waits == [0.1, 0.2]


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("Fri, 02 Jan 2026 03:04:15 GMT", 10.0), ("soon", 0.1), ("999", 60.0)]
)
def test_retry_after_says_how_long_to_wait(header, seconds):
    task, context = sink(Receiver(httpx.Response(503, headers={"retry-after": header})), retry_backoff_ms="100")
    with pytest.raises(RetriableConnectError):
        task.put(records(1))
    assert context.waits == [seconds]


@pytest.mark.parametrize("answers", [[httpx.Response(400, text="no")], [httpx.Response(503)] * 2])
def test_refused_records_are_reported_and_the_next_are_sent(answers):
    receiver = Receiver(*answers)
    task, context = sink(receiver, max_retries="1", retry_backoff_ms="0")
    for _ in answers[1:]:
        with pytest.raises(RetriableConnectError):
            task.put(records(2))
    task.put(records(2))
    assert [record.offset for record, _ in context.refused] == [0]
    assert str(answers[0].status_code) in str(context.refused[0][1])
    assert receiver.bodies[-1] == '{"n":1}'


def test_refused_records_fail_the_task_or_are_left_out():
    task, _ = sink(Receiver(httpx.Response(422, text="bad field")), tolerant=False)
    with pytest.raises(ConnectError, match="422: bad field") as raised:
        task.put(records(1))
    assert not raised.value.retriable
    task, context = sink(Receiver(httpx.Response(422)), tolerant=False, behavior_on_error="ignore")
    task.put(records(1))
    assert context.refused == []


def test_a_partition_that_comes_back_is_sent_from_its_offset():
    receiver = Receiver()
    task, _ = sink(receiver)
    task.put(records(2))
    task.close([("test", 0)])
    task.open([("test", 0)])
    task.put(records(1, 1))
    assert receiver.bodies == ['{"n":0}', '{"n":1}', '{"n":1}']


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"http.api.url": "ftp://x"}, "http.api.url"),
        ({"retry.on.status.codes": "5xx"}, "retry.on.status.codes"),
        ({"retry.on.status.codes": "500-400"}, "retry.on.status.codes"),
        ({"auth.type": "basic"}, "connection.user"),
        ({"auth.type": "bearer"}, "bearer.token"),
        ({"http.api.url": URL + "/${key}", "batch.max.size": "2"}, "batch.max.size"),
        ({"request.method": "GET"}, "request.method"),
    ],
)
def test_validation_names_the_key(config, key):
    assert [value.name for value in HttpSink.validate({"http.api.url": URL} | config) if value.errors] == [key]


def test_codes_and_headers():
    assert status_codes("500-,429") == frozenset({429, *range(500, 600)})
    assert header_pairs("a:1| b : 2:3 |", "|") == [("a", "1"), ("b", "2:3")]
    with pytest.raises(ConnectConfigError, match="name:value"):
        header_pairs("a", "|")
