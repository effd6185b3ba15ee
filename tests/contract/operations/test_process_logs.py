"""Logs of real processes: one format, from a client's request to its entry, and nothing of what records hold."""

import json
import re
import signal
from base64 import b64encode

from confluent_kafka import Consumer, Producer
from support.broker_processes import broker_command
from support.cli_calls import process
from support.waiting import PATIENCE_S, eventually

from tidelog.log.lake import Lake

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
SECRET = "s3cret-of-a-record"
BROKER = ("--listener", "127.0.0.1:0")


def producer(address, **more):
    return Producer({"bootstrap.servers": address, "client.id": "orders-service", **more})


def test_a_requests_id_leads_from_the_client_to_the_entry(tmp_path):
    lake = tmp_path / "lake"
    with broker_command(lake, *BROKER, "--log-level", "debug", "--log-format", "json") as command:
        client = producer(command.ready()["listener"])
        for _ in range(3):
            client.produce("orders", b"a value", partition=0)
            assert client.flush(PATIENCE_S) == 0
        command.stop()
        lines = [json.loads(line) for line in command.log]
    assert all(re.fullmatch(TIME, line["time"]) and line["level"] and line["logger"] for line in lines)
    found = [line for line in lines if line["message"].startswith("Appended: topic=orders")]
    assert [re.search(r"offset=(\d+)", line["message"])[1] for line in found] == ["0", "1", "2"]
    ids = [re.fullmatch(r"127\.0\.0\.1:\d+/orders-service/(\d+)", line["request"])[1] for line in found]
    assert sorted(ids, key=int) == ids  # the client's correlation ids, which count up
    assert len(set(ids)) == 3
    assert {line["broker"] for line in found} == {"1"}
    with Lake(lake, create=False) as opened:
        state = opened.topic("orders").state()
        assert [segment.base_offset for segment in state.live(0)] == [0, 1, 2]  # each in an entry of its own


def test_work_for_many_requests_names_none_of_them(tmp_path):
    with broker_command(tmp_path / "lake", *BROKER, "--log-format", "json") as command:
        client = producer(command.ready()["listener"])
        client.produce("orders", b"1")
        assert client.flush(PATIENCE_S) == 0
        command.stop()
    lines = [json.loads(line) for line in command.log]
    assert [line for line in lines if "Broker stop" in line["message"]]
    assert not [line for line in lines if "request" in line and "Broker" in line["message"]]


def test_no_log_holds_what_records_hold(tmp_path):
    lake, logs = tmp_path / "lake", []
    with Lake(lake) as opened:
        for name in ("orders", "small"):
            opened.create_topic(name, 1, config={"max.message.bytes": "300"} if name == "small" else {})
    with broker_command(lake, *BROKER, "--log-level", "debug") as command:
        address = command.ready()["listener"]
        client, reports = producer(address), []
        for topic, value in (("orders", SECRET), ("small", SECRET * 100), ("orders", SECRET + "\n" * 3)):
            client.produce(
                topic, value, key=f"key {SECRET}", headers=[("h", SECRET)], callback=lambda e, _: reports.append(e)
            )
        assert client.flush(PATIENCE_S) == 0
        assert sorted(error is not None for error in reports) == [False, False, True]
        reader = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
        reader.subscribe(["orders"])
        eventually(lambda: reader.poll(0.1), "a record")
        reader.close()
        command.stop()
        logs.append(("broker", "\n".join(command.log)))
    for words in (["maintain", "--every", "50ms"], ["consume", "orders", "-q"]):
        with process("--lake", str(lake), *words, "--log-level", "debug", "--log-format", "json") as running:
            assert running.stdout.readline()  # it has done something
            running.send_signal(signal.SIGTERM)
            _, said = running.communicate(timeout=PATIENCE_S)
            logs.append((words[0], said.decode()))
    assert "Appended: topic=orders" in dict(logs)["broker"]
    for shape in (SECRET, SECRET.encode().hex(), b64encode(SECRET.encode()).decode()[:-4]):
        for who, text in logs:
            assert shape not in text, who
