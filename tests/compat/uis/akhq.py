"""AKHQ over brokers: its pages, opened and judged by what the lake holds."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat.kafka_scripts import Tools
from compat.uis.programs import await_page, free_port
from compat.uis.visits import Visitor
from support.kafka_programs import JavaProgram
from support.waiting import eventually


@contextmanager
def running(command: Sequence[str | Path], tools: Tools) -> Iterator[str]:
    """Start it over the brokers; its address."""
    port = free_port()
    settings = {"bootstrap.servers": tools.address, **tools.settings}
    configuration = {
        "micronaut": {"server": {"port": port, "host": "127.0.0.1"}},
        # Logging in may take longer than its own limit of a second.
        "akhq": {"connections": {"own": {"properties": settings}}, "topic-data": {"poll-timeout": 20_000}},
    }
    file = tools.file("akhq.json", json.dumps(configuration))
    with JavaProgram(command, tools.folder / "akhq.log", {"MICRONAUT_CONFIG_FILES": str(file)}):
        url = f"http://127.0.0.1:{port}"
        await_page(f"{url}/api/cluster")
        yield url


def _shows(page: Visitor, path: str, *texts: str) -> None:
    """Open a page, and wait until it shows these texts: it asks for them after it is there."""
    page.go(path)
    eventually(lambda: all(text in page.text() for text in texts), f"{texts} at {path}")


def _shows_cells(page: Visitor, path: str, cells: set[str]) -> None:
    page.go(path)
    eventually(lambda: cells <= {cell for row in page.rows() for cell in row}, f"{sorted(cells)} at {path}")


def _topics(page: Visitor, tools: Tools) -> None:
    _shows(page, "/ui/own/topic", "ui-orders")


def _records(page: Visitor, tools: Tools) -> None:
    _shows_cells(page, "/ui/own/topic/ui-orders/data?sort=OLDEST&partition=All", {str(n) for n in range(30)})


def _partitions(page: Visitor, tools: Tools) -> None:
    _shows_cells(page, "/ui/own/topic/ui-orders/partitions", {"0", "1", "2"})


def _topic_groups(page: Visitor, tools: Tools) -> None:
    _shows(page, "/ui/own/topic/ui-orders/groups", "ui-group")


def _topic_configs(page: Visitor, tools: Tools) -> None:
    page.go("/ui/own/topic/ui-orders/configs")
    eventually(lambda: page.page.locator("input[value='77000000']").count() == 1, "its configuration")


def _topic_logs(page: Visitor, tools: Tools) -> None:
    _shows_cells(page, "/ui/own/topic/ui-orders/logs", {"0", "1", "2"})


def _nodes(page: Visitor, tools: Tools) -> None:
    _shows(page, "/ui/own/node", *tools.address.split(","))


def _node(page: Visitor, tools: Tools) -> None:
    _shows(page, "/ui/own/node/1/configs", "auto.create.topics.enable")
    page.go("/ui/own/node/1/logs")


def _groups(page: Visitor, tools: Tools) -> None:
    _shows(page, "/ui/own/group", "ui-group")
    _shows(page, "/ui/own/group/ui-group/topics", "ui-orders")


def _acls(page: Visitor, tools: Tools) -> None:
    _shows(page, "/ui/own/acls", "User:ui-dora")


PAGES = {
    "topics": _topics,
    "records": _records,
    "partitions": _partitions,
    "a topic's groups": _topic_groups,
    "a topic's configuration": _topic_configs,
    "a topic's logs": _topic_logs,
    "brokers": _nodes,
    "a broker": _node,
    "groups": _groups,
    "ACLs": _acls,
}
