"""Kafdrop over brokers: each of its pages, opened and judged by what the lake holds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from compat.kafka_cases.lakes import opened, records, topics
from compat.kafka_scripts import Tools
from compat.uis.programs import await_page, free_port
from compat.uis.visits import Visitor
from support.kafka_connect import properties
from support.kafka_programs import JavaProgram
from support.waiting import eventually


@contextmanager
def running(command: Sequence[str | Path], tools: Tools) -> Iterator[str]:
    """Start it over the brokers; its address."""
    port = free_port()
    own = [f"--{key}.port={port}" for key in ("server", "management.server")]
    file = properties(tools.folder / "kafdrop.properties", tools.settings)
    own += ["--server.address=127.0.0.1", f"--kafka.brokerConnect={tools.address}", f"--kafka.propertiesFile={file}"]
    with JavaProgram([*command, *own], tools.folder / "kafdrop.log"):
        url = f"http://127.0.0.1:{port}"
        await_page(f"{url}/actuator/health")
        yield url


def _overview(page: Visitor, tools: Tools) -> None:
    shown = page.go("/")
    brokers = {":".join(row[1:3]) for row in page.rows() if len(row) >= 6 and row[0] in {"1", "2", "3"}}
    assert brokers == set(tools.address.split(",")), shown
    assert ["ui-orders", "3", "100%", "0"] in [row[:4] for row in page.rows()], shown


def _broker(page: Visitor, tools: Tools) -> None:
    assert "Broker ID: 2" in page.go("/broker/2")


def _topic(page: Visitor, tools: Tools) -> None:
    shown = page.go("/topic/ui-orders")
    with opened(tools) as lake:
        ends = lake.offsets("ui-orders")
    partitions = {row[0]: row[1:4] for row in page.rows() if len(row) > 6 and row[0].isdigit()}
    assert partitions == {str(n): [str(begin), str(end), str(end - begin)] for n, (begin, end) in ends.items()}, shown
    assert "77000000" in shown, "its configuration"
    assert "ui-group" in shown, "its consumers"


def _messages(page: Visitor, tools: Tools) -> None:
    shown = page.go("/topic/ui-orders/messages?partition=1&offset=0&count=100&keyFormat=DEFAULT&format=DEFAULT")
    with opened(tools) as lake:
        rows = [row for batch in lake.topic("ui-orders").read(1) for row in batch.to_pylist()]
    assert rows
    for row in rows:
        assert f"Offset: {row['offset']}" in shown, shown[:2000]
    assert len(page.page.locator(".message-body").all()) == len(rows)
    everything = page.go("/topic/ui-orders/allmessages")
    assert everything.count("Offset:") == 30, everything[:2000]


def _search(page: Visitor, tools: Tools) -> None:
    asked = {
        "searchText": "17",
        "maximumCount": "1000",
        "partition": "-1",
        "format": "DEFAULT",
        "keyFormat": "DEFAULT",
        "startTimestamp": "2000-01-01 00:00:00.000",
    }
    shown = page.go(f"/topic/ui-orders/search-messages?{urlencode(asked)}")
    assert "Key: 17" in shown, shown[:2000]


def _consumer(page: Visitor, tools: Tools) -> None:
    shown = page.go("/consumer/ui-group")
    assert "Kafka Consumer: ui-group" in shown
    assert ["Combined lag", "0"] in page.rows(), shown


def _acls(page: Visitor, tools: Tools) -> None:
    page.go("/acl")
    assert "User:ui-dora" in [row[1] for row in page.rows() if len(row) == 7], page.rows()


def _changes(page: Visitor, tools: Tools) -> None:
    """A topic is made, and deleted."""
    page.go("/topic/create")
    page.page.fill("input[name=name]", "ui-made")
    page.page.fill("input[name=partitionsNumber]", "2")
    page.page.fill("input[name=replicationFactor]", "1")
    page.page.click("button[type=submit]")
    assert "Successfully created topic" in page.text()
    eventually(lambda: "ui-made" in topics(tools), "the topic is in the lake", 60.0)
    page.go("/topic/ui-made/messages")
    assert records(tools, "ui-made") == []
    page.go("/topic/ui-made")
    page.page.once("dialog", lambda question: question.accept())
    page.page.click("#delete-topic-form button")
    page.text()
    eventually(lambda: "ui-made" not in topics(tools), "the topic is gone", 60.0)


PAGES = {
    "overview": _overview,
    "broker": _broker,
    "topic": _topic,
    "messages": _messages,
    "search": _search,
    "consumer": _consumer,
    "ACLs": _acls,
    "topic made and deleted": _changes,
}
