"""Brokers in processes of their own, to be killed and frozen, and requests to them over sockets."""

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from kio.index import load_response_schema
from kio.serial import entity_reader
from support.broker_requests import request_of
from support.brokers import GROUPS
from support.nursery import ForkedPython

from tidelog.broker.base.load import TopicShares
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.broker import Broker
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.messages import is_flexible
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ListenerSettings

LISTENER = "PLAINTEXT"


class BrokerProcess:
    """One broker's process. A context manager that leaves none behind.

    `settings`: of `BrokerSettings`, `port`, and `cores`, what topics are said to take of it: {name: share of a core}.
    """

    def __init__(self, lake: Path, **settings: Any) -> None:
        told = json.dumps({"lake": str(lake), **settings})
        env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        self._process = ForkedPython(
            [sys.executable, "-m", "support.cluster_processes", told], stdout=subprocess.PIPE, text=True, env=env
        )
        self.id = self.port = -1

    def ready(self) -> "BrokerProcess":
        """Wait for its line, which says where it listens. Raises `RuntimeError` with its reason to end."""
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        said = json.loads(line) if line else {"error": f"it ended with {self._process.wait()}"}
        if "error" in said:
            raise RuntimeError(said["error"])
        self.id, self.port = said["id"], said["port"]
        return self

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        """SIGTERM, and wait; its exit code."""
        self._process.terminate()
        return self._process.wait(60)

    def __enter__(self) -> "BrokerProcess":
        return self.ready()

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self.kill()
        self._process.stdout.close()  # type: ignore[union-attr]


def ask(port: int, key: ApiKey, version: int, body: dict[str, Any] | bytes, client_id: str = "") -> Any:
    """A request over a connection of its own; the answer as kio's entity. `body`: bytes are its encoded ones."""
    payload = body if isinstance(body, bytes) else request_of(key, version, body)
    name = client_id.encode()
    header = struct.pack(">hhih", key, version, 7, len(name)) + name + (b"\0" if is_flexible(key, version) else b"")
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(struct.pack(">i", len(header) + len(payload)) + header + payload)
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        answer = memoryview(stream.read(size))
    skipped = 5 if is_flexible(key, version) else 4
    entity, _ = entity_reader(load_response_schema(key, version))(answer[skipped:], 0)
    return entity


def metadata(port: int, *topics: str, client_id: str = "") -> Any:
    """What a broker answers to Metadata for these topics."""
    body = {"topics": [{"name": name, "topic_id": None} for name in topics]}
    return ask(port, ApiKey.METADATA, 12, body, client_id)


def named(broker: BrokerProcess) -> list[int]:
    """The ids of the brokers that serve, as a broker says. Metadata lists some that went a moment ago, too."""
    answer = ask(broker.port, ApiKey.DESCRIBE_CLUSTER, 0, {"include_cluster_authorized_operations": False})
    return sorted(node.broker_id for node in answer.brokers)


class MadeUpShares(TopicShares):
    """What topics are said to take of a process."""

    def __init__(self, shares: dict[str, float]) -> None:
        self.made_up = shares
        self.cores = sum(shares.values())

    def look(self, now_s: float) -> dict[str, float]:
        del now_s
        return self.made_up


def _serve(told: dict[str, Any]) -> None:
    lake, port, cores = Lake(told.pop("lake")), told.pop("port", 0), told.pop("cores", None)
    settings = BrokerSettings({LISTENER: ListenerSettings("127.0.0.1", port)}, groups=GROUPS, **told)
    asyncio.run(_until_ended(lake, settings, None if cores is None else MadeUpShares(cores)))
    lake.close()


async def _until_ended(lake: Lake, settings: BrokerSettings, shares: TopicShares | None) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    broker = Broker(lake, settings, shares=shares)
    try:
        await broker.start()
    except TidelogError as e:
        print(json.dumps({"error": str(e)}), flush=True)
    else:
        said = {"id": broker.id, "port": broker.addresses[LISTENER][1]}
        print(json.dumps(said), flush=True)
        await ended.wait()
    await broker.close()


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
