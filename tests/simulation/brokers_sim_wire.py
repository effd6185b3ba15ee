"""A Kafka client's part of the protocol in a simulated process: connections, metadata, and where requests go.

It knows no code of brokers: requests are kio's, batches are written and read by aiokafka.
"""

import asyncio
import itertools
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from brokers_sim_world import BrokersWorld, LoopProgram
from history import Place
from kio.index import load_response_schema
from kio.serial import entity_reader
from support.kafka_wire import request_frame

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.messages import is_flexible

Versions = Mapping[ApiKey, int]

PATIENCE_S = 3.0
# Versions by which clients speak: new ones, and old ones.
NEW = {
    ApiKey.METADATA: 12,
    ApiKey.PRODUCE: 13,
    ApiKey.FETCH: 17,
    ApiKey.LIST_OFFSETS: 10,
    ApiKey.FIND_COORDINATOR: 4,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 8,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.END_TXN: 5,
}
OLD = NEW | {
    ApiKey.METADATA: 7,
    ApiKey.PRODUCE: 7,
    ApiKey.FETCH: 11,
    ApiKey.LIST_OFFSETS: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 5,
    ApiKey.SYNC_GROUP: 3,
    ApiKey.HEARTBEAT: 3,
    ApiKey.LEAVE_GROUP: 3,
    ApiKey.OFFSET_COMMIT: 7,
    ApiKey.OFFSET_FETCH: 5,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 0,
    ApiKey.ADD_OFFSETS_TO_TXN: 0,
    ApiKey.TXN_OFFSET_COMMIT: 2,
    ApiKey.END_TXN: 1,
}
# New clients of brokers whose transactions are those before KIP-890.
BEFORE_890 = NEW | {
    ApiKey.PRODUCE: 11,
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.END_TXN: 4,
}


class UnreachableError(Exception):
    """No answer: whether the request was executed is unknown."""


class Connection(asyncio.Protocol):
    """A connection to one broker."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._numbers = itertools.count(1)
        self._pending: dict[int, asyncio.Future[bytes]] = {}
        self._received = b""
        self.transport: Any = None

    @property
    def is_open(self) -> bool:
        """Whether requests may go by it."""
        return self.transport is not None and not self.transport.is_closing()

    @property
    def process(self) -> str:
        """The broker's process at the other end."""
        return str(self.transport.peer.host.process.name)

    @property
    def arrives_s(self) -> float:
        """When what was sent last is at the broker, by the scheduler's clock."""
        return float(self.transport.arrives_s)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            (number,) = struct.unpack_from(">i", frame)
            waiting = self._pending.pop(number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        pending, self._pending = self._pending, {}
        for waiting in pending.values():
            if not waiting.done():
                waiting.set_exception(UnreachableError(str(exc)))

    def send(self, key: ApiKey, version: int, fields: dict[str, Any], patience_s: float) -> "asyncio.Task[Any]":
        """Send a request; its answer comes later. Raises `UnreachableError`."""
        number = next(self._numbers)
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending[number] = waiting
        if self.is_open:
            self.transport.write(request_frame(key, version, number, self._client_id, fields))
        else:
            waiting.set_exception(UnreachableError("the connection is closed"))
        return asyncio.get_running_loop().create_task(self._answer(waiting, key, version, patience_s))

    async def ask(self, key: ApiKey, version: int, fields: dict[str, Any], patience_s: float = PATIENCE_S) -> Any:
        """A request's answer. Raises `UnreachableError`."""
        return await self.send(key, version, fields, patience_s)

    async def _answer(self, waiting: "asyncio.Future[bytes]", key: ApiKey, version: int, patience_s: float) -> Any:
        try:
            frame = await asyncio.wait_for(waiting, patience_s)
        except TimeoutError as e:
            self.transport.close()
            raise UnreachableError("no answer in time") from e
        start = 5 if is_flexible(key, version) and key is not ApiKey.API_VERSIONS else 4
        answer, end = _reader(key, version)(memoryview(frame)[start:], 0)
        assert end == len(frame) - start
        return answer


@cache
def _reader(key: ApiKey, version: int) -> Any:
    return entity_reader(load_response_schema(key, version))


class KafkaClient:
    """What producers and consumers share: connections, and the cluster as brokers describe it."""

    def __init__(self, program: LoopProgram, generations: Sequence[Versions] = (NEW, OLD)) -> None:
        self.program = program
        self.world: BrokersWorld = program.world
        self.history = self.world.history
        self.rng = program.rng
        self.versions = self.rng.choice(generations)
        self.ids: dict[str, UUID] = {}
        self.leaders: dict[Place, tuple[int, int]] = {}  # (leader, epoch)
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], Connection] = {}

    def now_s(self) -> float:
        """By the world's clock."""
        return float(self.world.scheduler.now)

    def by_ids(self, key: ApiKey) -> bool:
        """Whether topics go by their ids."""
        return self.versions[key] >= 13 and key in (ApiKey.PRODUCE, ApiKey.FETCH)

    async def back_off(self) -> None:
        """Wait before a request is repeated."""
        await asyncio.sleep(self.rng.uniform(0.05, 0.4))

    async def at(self, address: tuple[str, int]) -> Connection:
        """A connection to an address. Raises `UnreachableError`."""
        found = self._connections.get(address)
        if found is not None and found.is_open:
            return found
        loop = asyncio.get_running_loop()
        try:
            opening = loop.create_connection(lambda: Connection(self.program.name), *address)
            _, connection = await asyncio.wait_for(opening, PATIENCE_S)
        except (OSError, TimeoutError) as e:
            raise UnreachableError(f"{address}: {e}") from e
        before = self._connections.get(address)
        if before is not None and before.is_open:  # another task was faster
            connection.transport.close()
            return before
        self._connections[address] = connection
        return connection

    async def to(self, node: int) -> Connection:
        """A connection to a broker. Raises `UnreachableError`."""
        if node not in self._addresses:
            raise UnreachableError(f"broker {node} is not known")
        return await self.at(self._addresses[node])

    async def coordinator(self, key: str, key_type: int) -> int:
        """The coordinator of a group (type 0) or of a transactional id (1). Raises `UnreachableError`."""
        version = self.versions[ApiKey.FIND_COORDINATOR]
        connection = await self.at(self.rng.choice(self.world.bootstrap()))
        asked = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
        answer = await connection.ask(ApiKey.FIND_COORDINATOR, version, asked | {"key_type": key_type})
        found = answer.coordinators[0] if version >= 4 else answer
        if found.error_code:
            raise UnreachableError(f"no coordinator: {found.error_code!r}")
        self._addresses[found.node_id] = (found.host, found.port)
        return int(found.node_id)

    async def leader(self, topic: str, partition: int = 0) -> tuple[int, Connection]:
        """A partition's leader. Raises `UnreachableError`."""
        place = (topic, partition)
        if place not in self.leaders:
            await self.refresh()
        if place not in self.leaders:
            raise UnreachableError(f"no leader of {place} is known")
        node, _ = self.leaders[place]
        return node, await self.to(node)

    async def refresh(self) -> None:
        """Ask some broker for the cluster. Raises `UnreachableError`."""
        known = [*self._addresses.values(), *self.world.bootstrap()]
        connection = await self.at(self.rng.choice(known))
        answer = await connection.ask(
            ApiKey.METADATA,
            self.versions[ApiKey.METADATA],
            {
                "topics": [{"name": name, "topic_id": None} for name in self.world.topics],
                "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": False,
            },
        )
        told = {one.node_id: (one.host, one.port) for one in answer.brokers}
        newest = -1
        for topic in answer.topics:
            if topic.error_code or not topic.partitions:
                continue
            if hasattr(topic, "topic_id"):
                self.ids[topic.name] = topic.topic_id
            for one in topic.partitions:
                place, leader, epoch = (topic.name, one.partition_index), one.leader_id, one.leader_epoch
                self.history.led(connection.process, connection, epoch, place, leader)
                # As clients do: what is older than what they know counts not.
                if epoch >= self.leaders.get(place, (0, -1))[1]:
                    self.leaders[place] = (leader, epoch)
                    newest = max(newest, epoch)
        if newest >= 0 or not self._addresses:
            self._addresses |= told

    async def insist(self, call: Any) -> Any:
        """Repeat a call until it is answered."""
        while True:
            try:
                return await call()
            except UnreachableError:
                await self.back_off()
                try:
                    await self.refresh()
                except UnreachableError:
                    continue
