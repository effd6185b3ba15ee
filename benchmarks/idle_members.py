"""Members of a group of the consumer protocol (KIP-848) that do nothing but send heartbeats, many in one process.

Each has a connection of its own. It says what it owns when that has changed, and else that it is there, as often as the
broker asks for it, by version 1 of ConsumerGroupHeartbeat.
"""

import asyncio
import io
import struct
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kafka_frames import AnswerError
from kio.schema.consumer_group_heartbeat.v1 import request as requests
from kio.schema.consumer_group_heartbeat.v1 import response as responses
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32, i32Timedelta

_JOINS, _LEAVES = i32(0), i32(-1)
_REBALANCE_TIMEOUT: Any = i32Timedelta.parse(timedelta(minutes=1))
_AS_IT_WAS: Any = i32Timedelta.parse(timedelta(milliseconds=-1))
_SHARED_WITHIN_S, _LOOK_S = 300.0, 0.2
# As clients do, a member asks again of a broker that is not sure of the group just then.
_LATER = (ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_not_available)
_AGAIN_S = 0.5
_SIZE = struct.Struct(">i")
# An answer begins with the number of its request and no tags.
_HEAD_BYTES = 5
_write_header, _write = entity_writer(RequestHeader), entity_writer(requests.ConsumerGroupHeartbeatRequest)
_read = entity_reader(responses.ConsumerGroupHeartbeatResponse)
_HEADER = RequestHeader(
    request_api_key=requests.ConsumerGroupHeartbeatRequest.__api_key__,
    request_api_version=requests.ConsumerGroupHeartbeatRequest.__version__,
    correlation_id=i32(0),
    client_id="bench",
)


def frame(request: requests.ConsumerGroupHeartbeatRequest) -> bytes:
    """A heartbeat as a connection has it."""
    out = io.BytesIO()
    _write_header(out, _HEADER)
    _write(out, request)
    return _SIZE.pack(out.tell()) + out.getvalue()


@dataclass(eq=False)
class IdleMember:
    """A member, what it owns, and whether the broker does not know that yet, or has refused the newest heartbeat."""

    group: str
    topic: str
    name: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: i32 = _JOINS
    owned: dict[uuid.UUID, tuple[i32, ...]] = field(default_factory=dict)
    changed: bool = True
    refused: bool = False

    async def live(self, address: str) -> None:
        """Join, and send heartbeats until cancelled; then leave. Raises `AnswerError` for a refusal."""
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            while True:
                writer.write(self._says())
                (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                wait_s = self._hears(await reader.readexactly(size))
                if self.refused or not self.changed:
                    await asyncio.sleep(wait_s)
        finally:
            self.epoch = _LEAVES
            with suppress(OSError):
                writer.write(self._says())
                writer.close()

    def _says(self) -> bytes:
        joins = self.epoch == _JOINS
        places = (requests.TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in self.owned.items())
        return frame(
            requests.ConsumerGroupHeartbeatRequest(
                group_id=self.group,  # type: ignore[arg-type]
                member_id=self.name,
                member_epoch=self.epoch,
                rebalance_timeout=_REBALANCE_TIMEOUT if joins else _AS_IT_WAS,
                subscribed_topic_names=(self.topic,) if joins else None,  # type: ignore[arg-type]
                subscribed_topic_regex=None,
                topic_partitions=tuple(places) if self.changed else None,
            )
        )

    def _hears(self, payload: bytes) -> float:
        """Take an answer; in how many seconds the next heartbeat is due."""
        answer, _ = _read(payload, _HEAD_BYTES)
        if answer.error_code in _LATER:
            self.refused = True
            return _AGAIN_S
        self.refused = False
        if answer.error_code.value:
            raise AnswerError(f"a heartbeat was refused: {answer.error_code.name}, {answer.error_message}")
        self.epoch, before = answer.member_epoch, self.owned
        if answer.assignment is not None:
            self.owned = {
                one.topic_id: tuple(one.partitions)
                for one in answer.assignment.topic_partitions
                if one.topic_id is not None
            }
        self.changed = self.owned != before
        return answer.heartbeat_interval.total_seconds()


@asynccontextmanager
async def idle_group(address: str, group: str, topic: str, members: int, partitions: int) -> AsyncIterator[None]:
    """A group whose members have shared out all partitions of a topic, as evenly as can be."""
    all_of_it = [IdleMember(group, topic) for _ in range(members)]
    share = (partitions // members, -(-partitions // members))

    def shared() -> bool:
        counts = [sum(map(len, one.owned.values())) for one in all_of_it]
        return (
            sum(counts) == partitions and not any(one.changed for one in all_of_it) and all(c in share for c in counts)
        )

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one.live(address)) for one in all_of_it]
        async with asyncio.timeout(_SHARED_WITHIN_S):
            while not shared():
                await asyncio.sleep(_LOOK_S)
        yield
        for task in running:
            task.cancel()
