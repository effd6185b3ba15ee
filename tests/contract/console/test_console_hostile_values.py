"""Values that strangers wrote, of any depth and shape: each is shown, as bytes with the reason where it must be."""

import json
import struct

import pytest
from support.console import running_console
from support.page_tails import Tailing

from tidelog.console.records.forms import ValueForms
from tidelog.schema_registry import Schema, SchemaRegistryClient

NODE = '{"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}'
NULLS = '{"type": "array", "items": "null"}'
VALUE = 'syntax = "proto3"; import "google/protobuf/struct.proto"; message M { google.protobuf.Value v = 1; }'
RECURSIVE_JSON = '{"properties": {"n": {"$ref": "#"}}, "additionalProperties": false}'


def protobuf(depth):
    """A message whose field 1 is a list of a list of a list …: longer and longer fields, each around the one before."""
    inner = b"\x08\0"
    for _ in range(depth):
        inner = field(6, field(1, inner))
    return field(1, inner)


def field(number, data):
    length, size = len(data), b""
    while length > 0x7F:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


@pytest.fixture
def running(tmp_path):
    with running_console(tmp_path / "lake") as console:
        for name in ("sound", "hostile"):
            console.lake.create_topic(name, 1)
        yield console


@pytest.fixture
def values(running):
    """{name: a value}, by schemas that the lake takes."""
    framed = lambda number, payload: b"\0" + struct.pack(">I", number) + payload  # noqa: E731
    with SchemaRegistryClient({"lake": running.lake}) as client:
        node = client.register_schema("node", Schema(NODE))
        nulls = client.register_schema("nulls", Schema(NULLS))
        proto = client.register_schema("proto", Schema(VALUE, "PROTOBUF"))
        text = client.register_schema("json", Schema(RECURSIVE_JSON, "JSON"))
    deep = b'{"n":' * 300 + b"{}" + b"}" * 300
    return {
        "deep avro": framed(node, b"\x02" * 30_000 + b"\0"),
        "avro that JSON can't hold": framed(node, b"\x02" * 300 + b"\0"),
        "avro of a billion nulls": framed(nulls, b"\x80\x80\x80\x80\x08\0"),
        "cut avro": framed(node, b"\x02" * 10),
        "deep protobuf": framed(proto, b"\0" + protobuf(2_000)),
        "deep json by a schema": framed(text, deep),
        "json by a schema that is none": framed(text, b"[" * 5_000),
    }


def test_lists_single_records_filters_and_downloads_show_the_rest(running, values):
    topic = running.lake.topic("hostile")
    sound = [{"value": b'{"a": 1}'}, {"value": b"text"}]
    topic.append([sound[0], *({"value": one} for one in values.values()), sound[1]])
    with running.client() as page:
        path = "/api/topics/hostile/records"
        found = page.ok("GET", path, **{"from": "earliest"})["records"]
        assert [one["value"]["text"] for one in (found[0], found[-1])] == ['{"a": 1}', "text"]
        for name, one in zip(values, found[1:-1], strict=True):
            assert one["value"]["as"] == "hex", name
            assert "can't be read by schema" in one["value"]["reason"], name
            assert len(one["value"]["reason"]) < 400, name
            alone = page.ok("GET", f"{path}/0/{one['offset']}")["value"]
            assert (alone["as"], alone["text"]) == ("hex", values[name].hex()), name
        filtered = page.ok("GET", path, **{"from": "earliest", "path": "$.a=1"})["records"]
        assert [one["offset"] for one in filtered] == [0]
        for form in ("jsonl", "parquet"):
            answer = page.get("/api/topics/hostile/download", params={"format": form, "path": "$.a"})
            assert answer.status_code == 200
        lines = page.get("/api/topics/hostile/download").text.splitlines()
        assert len([json.loads(one) for one in lines]) == len(values) + 2


def test_the_tails_of_other_topics_go_on(running, values):
    hostile, sound = (Tailing(f"{running.url}/api/topics/{name}/tail") for name in ("hostile", "sound"))
    filtered = Tailing(f"{running.url}/api/topics/hostile/tail", path="$.a")
    try:
        for one in (hostile, sound, filtered):
            one.wait("heartbeat", 1)
        for at, value in enumerate(values.values(), start=1):
            running.lake.topic("hostile").append([{"value": value}])
            running.lake.topic("sound").append([{"value": b"%d" % at}])
            assert sound.wait("record", at)[-1]["value"]["text"] == str(at)
        assert all("reason" in one["value"] for one in hostile.wait("record", len(values)))
        running.lake.topic("hostile").append([{"value": b'{"a": 1}'}])
        assert [one["value"]["text"] for one in filtered.wait("record", 1)] == ['{"a": 1}']
    finally:
        running.server.drain()
        for one in (hostile, sound, filtered):
            one.close()


def test_what_no_reader_expects_ends_no_tail(running, monkeypatch):
    """A fault in what shows records to one page: the thread serves them all."""
    broken, sound = (Tailing(f"{running.url}/api/topics/{name}/tail") for name in ("hostile", "sound"))
    try:
        for one in (broken, sound):
            one.wait("heartbeat", 1)
        shown = ValueForms.shown

        def failing(self, data, *rest, **more):
            if data == b"fault":
                raise AssertionError("a fault in the program")
            return shown(self, data, *rest, **more)

        monkeypatch.setattr(ValueForms, "shown", failing)
        running.lake.topic("hostile").append([{"value": b"fault"}])
        running.lake.topic("hostile").append([{"value": b"next"}])
        running.lake.topic("sound").append([{"value": b"one"}])
        assert sound.wait("record", 1)[0]["value"]["text"] == "one"
        assert broken.wait("record", 1)[0]["value"]["text"] == "next"
    finally:
        running.server.drain()
        for one in (broken, sound):
            one.close()
