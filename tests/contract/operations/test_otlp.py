"""`--otlp`: real processes send traces and metrics to a collector, which may be down, slow or strict."""

import subprocess
import urllib.request

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.parser import text_string_to_metric_families
from support.broker_processes import broker_command
from support.cli_calls import process
from support.otlp_receiver import otlp_receiver
from support.waiting import PATIENCE_S, eventually

from tidelog.log.lake import Lake

ALL = {
    "OTEL_TRACES_SAMPLER": "parentbased_always_on",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_METRIC_EXPORT_INTERVAL": "300",
}
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


def serving(lake, receiver, *args, env=ALL, **more):
    return broker_command(lake, "--listener", "127.0.0.1:0", "--otlp", receiver.url, *args, env=env, **more)


def set_all(monkeypatch, env):
    for name, value in env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """(what the collector has, the broker's ready line) of a broker that clients have used."""
    lake = tmp_path_factory.mktemp("otlp") / "lake"
    with (
        otlp_receiver() as receiver,
        serving(lake, receiver, "--metrics", "127.0.0.1:0", start=subprocess.Popen) as run,
    ):
        ready = run.ready()
        server = {"bootstrap.servers": ready["listener"]}
        plain = Producer({**server, "client.id": "orders-service"})
        plain.produce("orders", b"1", partition=0, headers=[("traceparent", TRACEPARENT.encode())])
        assert plain.flush(PATIENCE_S) == 0
        packed = Producer({**server, "client.id": "packed", "compression.type": "gzip", "linger.ms": 200})
        for _ in range(20):
            packed.produce("orders", b"1" * 100, partition=0, headers=[("traceparent", TRACEPARENT.encode())])
        assert packed.flush(PATIENCE_S) == 0
        consumer = Consumer({**server, "client.id": "reader", "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        assert consumer.poll(PATIENCE_S).value() == b"1"
        consumer.close()
        transactional = Producer({**server, "client.id": "tx", "transactional.id": "payments"})
        transactional.init_transactions()
        transactional.begin_transaction()
        transactional.produce("orders", b"2")
        transactional.commit_transaction()
        yield receiver, ready
        assert run.stop() == 0
        assert not [line for line in run.log if "WARNING" in line or "ERROR" in line]


def test_a_produce_request_is_traced_from_its_frame_to_its_entry(broker):
    receiver, _ = broker
    request = receiver.first("Produce", messaging__client__id="orders-service")
    assert (request.trace_id, request.parent_id) == (TRACE, SPAN)
    (append,) = eventually(lambda: receiver.children(request), "the part of its entry")
    (entry,) = eventually(lambda: receiver.children(append), "its entry")
    assert (append.name, entry.name) == ("append orders-0", "commit orders")
    assert append.attributes["messaging.kafka.offset"] == 0
    assert entry.attributes["tidelog.entry_records"] == 1
    assert request.start_ns <= append.start_ns <= entry.start_ns < entry.end_ns <= append.end_ns <= request.end_ns
    assert request.resource["service.name"] == "tidelog-broker"


def test_compressed_records_name_their_traces(broker):
    receiver, _ = broker
    request = receiver.first("Produce", messaging__client__id="packed")
    assert request.parent_id == ""
    (append,) = eventually(lambda: receiver.children(request), "the part of its entry")
    assert append.links == [(TRACE, SPAN)]
    assert append.attributes["messaging.batch.message_count"] == 20


def test_a_fetch_names_the_traces_of_the_records_that_it_brought(broker):
    receiver, _ = broker

    def fetched():
        return [span for span in receiver.named("Fetch", messaging__client__id="reader") if span.links]

    (request, *_) = eventually(fetched, "a fetch with records")
    assert request.links == [(TRACE, SPAN)]


def test_a_transaction_is_traced_from_its_beginning_to_its_topics(broker):
    receiver, _ = broker
    whole = receiver.first("transaction")
    request = receiver.first("EndTxn", messaging__client__id="tx")
    assert whole.links == [(request.trace_id, request.span_id)]
    assert whole.attributes["messaging.kafka.transactional_id"] == "payments"
    assert whole.attributes["tidelog.transaction_outcome"] == "committed"
    assert whole.attributes["tidelog.transaction_partitions"] == 1
    assert whole.start_ns < request.start_ns
    decide, apply = sorted(receiver.children(request), key=lambda span: span.start_ns)
    assert (decide.name, apply.name) == ("decide", "apply")
    staged = receiver.first("stage orders")
    assert whole.start_ns <= staged.end_ns <= whole.end_ns


def test_metrics_are_those_of_the_listener_by_name(broker):
    receiver, ready = broker

    def shown():
        with urllib.request.urlopen(f"http://{ready['metrics']}/metrics", timeout=PATIENCE_S) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            return {sample.name for family in families for sample in family.samples}

    def sent():
        return receiver.metrics[-1] if receiver.metrics else {}

    eventually(lambda: sent() and shown() == sent().keys(), "the same names")
    assert {kind for kind, *_ in sent()["kafka_server_brokertopicmetrics_messagesin_total"]} == {"counter"}
    assert {kind for kind, *_ in sent()["kafka_brokers"]} == {"gauge"}
    records = [("counter", {"topic": "orders"}, 22)]
    eventually(lambda: sent()["tidelog_topic_records_total"] == records, "all records")
    assert receiver.resources[-1]["tidelog.lake"].endswith("/lake")


def test_a_registrys_requests_go_on_in_their_clients_traces(tmp_path):
    with otlp_receiver() as receiver, serving(tmp_path / "lake", receiver, family="registry") as run:
        url = run.ready()["url"]
        assert httpx.get(f"{url}/subjects", headers={"traceparent": TRACEPARENT}, timeout=PATIENCE_S).json() == []
        request = receiver.first("GET", url__path="/subjects")
        assert (request.trace_id, request.parent_id) == (TRACE, SPAN)
        assert request.attributes["http.response.status_code"] == 200
        assert request.resource["service.name"] == "tidelog-registry"
        eventually(lambda: receiver.metrics and "tidelog_registry_subjects" in receiver.metrics[-1], "its metrics")
        assert run.stop() == 0


def test_a_brokers_registry_is_traced_with_it(tmp_path):
    with otlp_receiver() as receiver, serving(tmp_path / "lake", receiver, "--registry", "127.0.0.1:0") as run:
        httpx.get(f"{run.ready()['registry']}/subjects", headers={"traceparent": TRACEPARENT}, timeout=PATIENCE_S)
        assert receiver.first("GET", url__path="/subjects").trace_id == TRACE
        assert run.stop() == 0


def test_a_task_is_traced_with_each_batch(tmp_path):
    file, copied = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_text("one\n")
    string = "org.apache.kafka.connect.storage.StringConverter"
    shared = {"tasks.max": "1", "key.converter": string, "value.converter": string}
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("lines", 1)
        lake.create_topic("traced", 1)
        lake.topic("traced").append([{"value": "two", "headers": [("traceparent", TRACEPARENT)]}])
    with otlp_receiver() as receiver, serving(tmp_path / "lake", receiver, family="connect") as run:
        url = run.ready()["url"]
        source = {"connector.class": "FileStreamSource", "file": str(file), "topic": "lines", **shared}
        sink = {"connector.class": "FileStreamSink", "file": str(copied), "topics": "traced", **shared}
        for name, config in (("source", source), ("sink", sink)):
            httpx.put(f"{url}/connectors/{name}/config", json=config, timeout=PATIENCE_S).raise_for_status()
        written = receiver.first("write source-0")
        assert written.attributes["messaging.batch.message_count"] == 1
        put = receiver.first("put sink-0")
        assert (put.trace_id, put.parent_id) == (TRACE, SPAN)
        assert run.stop() == 0


def test_the_default_traces_few_requests_and_follows_clients(tmp_path):
    few = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
    with otlp_receiver() as receiver, serving(tmp_path / "lake", receiver, family="registry", env=few) as run:
        url = run.ready()["url"]
        for _ in range(30):
            httpx.get(f"{url}/subjects", timeout=PATIENCE_S)
        httpx.get(f"{url}/mode", headers={"traceparent": TRACEPARENT}, timeout=PATIENCE_S)
        httpx.get(f"{url}/mode", headers={"traceparent": f"00-{TRACE}-{SPAN}-00"}, timeout=PATIENCE_S)
        receiver.first("GET", url__path="/mode")
        assert run.stop() == 0
        assert len(receiver.named("GET", url__path="/mode")) == 1
        assert len(receiver.named("GET", url__path="/subjects")) < 15


def test_headers_go_to_the_collector_and_not_into_the_log(tmp_path):
    env = {**ALL, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20hidden,x-scope=prod"}
    with otlp_receiver() as receiver:
        receiver.status = 401
        with serving(tmp_path / "lake", receiver, "--format", "json", family="registry", env=env) as run:
            url = run.ready()["url"]
            httpx.get(f"{url}/subjects", timeout=PATIENCE_S)
            eventually(lambda: len(receiver.headers) >= 3, "requests")
            assert run.stop() == 0
        assert {(one["authorization"], one["x-scope"]) for one in receiver.headers} == {("Basic hidden", "prod")}
        assert "hidden" not in "\n".join(run.log)
        assert len([line for line in run.log if "does not take" in line]) == 1, run.log


def test_a_collector_that_is_down_harms_nobody_and_is_said_once(tmp_path):
    with otlp_receiver() as receiver:
        port = int(receiver.url.rpartition(":")[2])
    with serving(tmp_path / "lake", receiver, "--metrics", "127.0.0.1:0") as run:
        ready = run.ready()
        producer = Producer({"bootstrap.servers": ready["listener"]})
        for _ in range(20):
            producer.produce("orders", b"1")
            assert producer.flush(PATIENCE_S) == 0
        eventually(lambda: any("does not take" in line for line in run.log), "a warning")
        with otlp_receiver(port) as back:
            eventually(lambda: back.metrics, "metrics, once it is back")
            producer.produce("orders", b"2")
            assert producer.flush(PATIENCE_S) == 0
            assert back.first("Produce").attributes["messaging.system"] == "kafka"
            eventually(lambda: any("again" in line for line in run.log), "that it is back")

            def dropped():
                sent = back.metrics[-1]["tidelog_otlp_requests_total"]
                return sum(count for _, labels, count in sent if labels["outcome"] == "dropped")

            eventually(lambda: dropped() > 0, "that requests were dropped")
        assert run.stop() == 0
    warned = [line for line in run.log if "does not take" in line]
    assert len(warned) <= 2, run.log  # the second: it went away again before the broker did
    assert receiver.url in warned[0]


def test_what_is_left_is_sent_at_the_end(tmp_path):
    late = {**ALL, "OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_METRIC_EXPORT_INTERVAL": "3600000"}
    with otlp_receiver() as receiver, serving(tmp_path / "lake", receiver, family="registry", env=late) as run:
        httpx.get(f"{run.ready()['url']}/subjects", timeout=PATIENCE_S)
        assert receiver.spans == receiver.metrics == []
        assert run.stop() == 0
        assert receiver.named("GET", url__path="/subjects")
        assert "tidelog_registry_subjects" in receiver.metrics[-1]


FAMILIES = {
    "metrics": ["metrics", "--listener", "127.0.0.1:0"],
    "maintain": ["maintain", "--every", "1h"],
    "mirror": ["mirror", "start", "--from", "LAKE", "--to", "COPY"],
    "console": ["console", "--listener", "127.0.0.1:0"],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_each_process_that_stays_up_sends_its_metrics(tmp_path, name, monkeypatch):
    set_all(monkeypatch, ALL)
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("orders", 1)
    places = {"LAKE": str(tmp_path / "lake"), "COPY": str(tmp_path / "copy")}
    whose = [] if name == "mirror" else ["--lake", places["LAKE"]]
    words = [*whose, *(places.get(word, word) for word in FAMILIES[name])]
    own = {
        "metrics": "tidelog_lake_topics",
        "maintain": "tidelog_maintain_runs_total",
        "mirror": "tidelog_mirror_lag_entries",
        "console": "tidelog_console_looks_total",
    }[name]
    with otlp_receiver() as receiver, process(*words, "--otlp", receiver.url) as running:
        try:
            eventually(lambda: any(own in sent for sent in list(receiver.metrics)), f"{own} at the collector")
        finally:
            running.terminate()
            running.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (["broker", "start", "--otlp", "collector:4318"], {}, "no address of a collector"),
        (["registry", "start", "--otlp", "http://me:pw@c"], {}, "OTEL_EXPORTER_OTLP_HEADERS"),
        (["broker", "start", "--otlp", "http://c"], {"OTEL_TRACES_SAMPLER": "some"}, "OTEL_TRACES_SAMPLER"),
        (["maintain", "--otlp", "http://c"], {}, "give --every, too"),
        (["metrics", "--otlp", "http://c"], {}, "give --listener, too"),
    ],
)
def test_what_is_wrong_is_said_before_anything_begins(tmp_path, words, env, said, monkeypatch):
    set_all(monkeypatch, env)
    with process("--lake", str(tmp_path / "lake"), *words) as running:
        out, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode in (1, 2)
    assert said in errors.decode(), errors
    assert b"pw" not in errors
    assert out == b""
    assert not (tmp_path / "lake").exists()
