"""The HTTP sink in a worker, against a real server: batches, answers that may change, and those that don't."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from support.waiting import eventually

from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.runtime.offsets import committed_offsets
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.connect.worker import Worker
from tidelog.log.lake import Lake


class Receiver:
    """Answers by `answer`, of a request's values and how many came before; `seen` has what came: (time, values)."""

    def __init__(self, answer):
        self.answer, self.seen, self.headers = answer, [], []

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        values = json.loads(body)
        values = values if isinstance(values, list) else [values]
        status, headers = self.answer(values, len(self.seen))
        self.seen.append((time.monotonic(), values))
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await PlainTextResponse(f"told {status}", status, headers)(scope, receive, send)

    @property
    def values(self):
        return [values for _, values in self.seen]


@contextmanager
def serving(receiver, at=None):
    """The receiver at an address of its own, or at one that it had before."""
    listening = at or socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(receiver, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield "http://{}:{}/in".format(*listening.getsockname())
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def lake(tmp_path):
    with Lake(str(tmp_path / "lake"), True) as found:
        found.create_topic("in", 1)
        yield found


@contextmanager
def sinking(lake, url, **others):
    """A worker that runs the sink; yields its states."""
    worker = Worker(lake, "here:1", WorkerSettings(flush_interval_s=0.1))
    config = {
        "connector.class": "HttpSink", "topics": "in", "http.api.url": url, "retry.backoff.ms": "10",
        "key.converter": "string", "value.converter": "json", "value.converter.schemas.enable": "false",
    } | {key.replace("_", "."): value for key, value in others.items()}  # fmt: skip
    operations = ConnectOperations(worker)
    worker.start()
    try:
        operations.put_config("c", {"name": "c", **config})
        yield lambda: [one["state"] for one in operations.status("c")["tasks"]]
    finally:
        worker.stop()


def append(lake, numbers):
    lake.topic("in").append([{"value": json.dumps({"n": number}).encode()} for number in numbers])


def test_batches_are_sent_again_until_they_are_taken(lake):
    answers = {1: (503, {}), 2: (429, {"retry-after": "1"}), 3: (500, {})}
    receiver = Receiver(lambda _, before: answers.get(before, (200, {})))
    append(lake, range(7))
    with serving(receiver) as url, sinking(lake, url, batch_max_size="3"):
        eventually(lambda: committed_offsets(lake, "connect-c") == {("in", 0): 7}, "all are sent and committed")
    first, second, third = ([{"n": number} for number in part] for part in (range(3), range(3, 6), [6]))
    assert receiver.values == [first, second, second, second, second, third]
    assert receiver.seen[3][0] - receiver.seen[2][0] >= 1.0  # as Retry-After said
    assert receiver.headers[0]["content-type"] == "application/json"


def test_records_that_are_refused_go_to_the_dead_letter_topic_and_the_next_are_sent(lake):
    receiver = Receiver(lambda values, _: (400, {}) if values == [{"n": 1}] else (201, {}))
    append(lake, range(4))
    tolerant = {
        "errors_tolerance": "all", "errors_deadletterqueue_topic_name": "dead",
        "errors_deadletterqueue_context_headers_enable": "true",
    }  # fmt: skip
    with serving(receiver) as url, sinking(lake, url, **tolerant) as states:
        eventually(lambda: committed_offsets(lake, "connect-c") == {("in", 0): 4}, "all are done with")
        assert states() == ["RUNNING"]
    assert receiver.values == [[{"n": number}] for number in range(4)]
    (batch,) = lake.topic("dead").read(0, include_headers=True)
    assert batch.column("value").to_pylist() == [b'{"n": 1}']
    told = {one["key"]: one["value"] for one in batch.column("headers").to_pylist()[0]}
    assert b"was answered 400: told 400" in told["__connect.errors.exception.message"]
    assert told["__connect.errors.offset"] == b"1"


def test_without_a_dead_letter_topic_a_refused_record_fails_the_task(lake):
    receiver = Receiver(lambda _, __: (400, {}))
    append(lake, range(2))
    with serving(receiver) as url, sinking(lake, url) as states:
        eventually(lambda: states() == ["FAILED"], "the task fails")
    assert receiver.values == [[{"n": 0}]]
    assert committed_offsets(lake, "connect-c") == {}


def test_a_server_that_is_away_is_waited_for(lake):
    receiver = Receiver(lambda _, __: (200, {}))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    append(lake, range(3))
    with sinking(lake, f"http://127.0.0.1:{port}/in", max_retries="1000000", retry_backoff_ms="1") as states:
        eventually(lambda: states() == ["RUNNING"], "the task runs")
        with serving(receiver, socket.create_server(("127.0.0.1", port))):
            eventually(lambda: committed_offsets(lake, "connect-c") == {("in", 0): 3}, "it is sent when it is back")
    assert receiver.values == [[{"n": number}] for number in range(3)]
