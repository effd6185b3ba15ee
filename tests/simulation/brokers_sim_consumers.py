"""Simulated consumers: fetch sessions, members of a group that commit what they have read, and an observer."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from aiokafka.record.memory_records import MemoryRecords
from brokers_sim_journal import GROUP
from brokers_sim_wire import Connection, KafkaClient, UnreachableError
from brokers_sim_world import IDEMPOTENT, LoopProgram
from groups_sim_history import Consumer
from history import Look, Place, Stretch

from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)

ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING, MEMBER_ID_REQUIRED, FENCED_INSTANCE = 22, 25, 27, 79, 82
# Coordinator loading, not available, elsewhere; timed out, not leader, fenced and unknown epochs.
RETRIABLE = frozenset({3, 5, 6, 7, 14, 15, 16, 56, 74, 75, 76, 78, 100, 103})
NO_SESSION = frozenset({70, 71, 106})


@dataclass(slots=True)
class Session:
    """A fetch session with one broker. `known`: what the broker knows that is asked."""

    connection: Connection
    id: int = 0
    epoch: int = 0
    known: dict[Place, tuple[int, int]] = field(default_factory=dict)


class Fetcher:
    """Fetches from the leaders, by sessions where the client has them."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self._history = client.history
        self._sessions: dict[int, Session] = {}
        # read_uncommitted and read_committed: both are to see the same.
        self._isolation = client.world.started % 2
        self.stretches: dict[Place, Stretch] = {}
        self.positions: dict[Place, int] = {}

    def assign(self, reader: str, group: str, positions: dict[Place, int]) -> None:
        """Read these from now on, and no others."""
        self.positions = dict(positions)
        self.stretches = {place: Stretch(reader, group, place) for place in positions}
        self._history.seen.stretches += self.stretches.values()

    async def fetch(self, max_wait_ms: int) -> list[tuple[Place, int, str]]:
        """What comes next of one leader's partitions. Raises `UnreachableError`."""
        if not self.positions:
            await asyncio.sleep(max_wait_ms / 1000)
            return []
        node, connection = await self._client.leader(*self._client.rng.choice(sorted(self.positions)))
        session = self._sessions.get(node)
        if session is None or session.connection is not connection:
            session = self._sessions[node] = Session(connection)
        version = self._client.versions[ApiKey.FETCH]
        leaders = self._client.leaders
        wanted = {place: at for place, at in self.positions.items() if leaders.get(place, (None, 0))[0] == node}
        whole = session.epoch == 0
        asked = {
            place: at for place, at in wanted.items() if whole or session.known.get(place) != (at, self._epoch(place))
        }
        forgotten = [] if whole else [place for place in session.known if place not in wanted]
        fields = {
            "max_wait": max_wait_ms,
            "min_bytes": 1,
            "max_bytes": self._client.rng.choice([300, 1 << 20]),
            "isolation_level": self._isolation,
            "session_id": session.id,
            "session_epoch": session.epoch,
            "topics": self._asked(asked),
            "forgotten_topics_data": self._named(forgotten, "partitions"),
        }
        told = {place: (at, self._epoch(place)) for place, at in asked.items()}
        generation = self.stretches
        answer = await connection.ask(ApiKey.FETCH, version, fields, max_wait_ms / 1000 + 3.0)
        if int(answer.error_code):
            self._sessions.pop(node, None)
            self._history.counts[f"fetch error {int(answer.error_code)}"] += 1
            if int(answer.error_code) not in NO_SESSION | RETRIABLE:
                self._history.violate(f"a fetch is refused with {answer.error_code!r}")
            return []
        for place in forgotten:
            session.known.pop(place, None)
        if answer.session_id:
            session.id, session.epoch = answer.session_id, session.epoch + 1
            session.known |= told
        else:
            session.id = session.epoch = 0
        if generation is not self.stretches:  # assigned again meanwhile
            return []
        found: list[tuple[Place, int, str]] = []
        moved = False
        for one in answer.responses:
            name = self._name(one)
            for told in one.partitions:
                moved = self._take(name, told, wanted, found) or moved
        if moved:
            await self._client.back_off()
            await _refresh(self._client)
        return found

    def _take(self, topic: str, told: Any, wanted: dict[Place, int], found: list[tuple[Place, int, str]]) -> bool:
        """Take a partition's records; True when its leader is to be looked for."""
        place, code = (topic, told.partition_index), int(told.error_code)
        if code:
            self._history.counts[f"fetch error {code}"] += 1
            if code not in RETRIABLE:
                self._history.violate(f"a fetch of {place} at {wanted.get(place)} is refused with {code}")
            return True
        if place not in wanted or place not in self.positions or wanted[place] != self.positions[place]:
            return False
        records = MemoryRecords(bytes(told.records or b""))
        while (batch := records.next_batch()) is not None:
            if not batch.validate_crc():
                self._history.violate(f"a batch of {place} has a wrong checksum")
            for record in batch:
                if record.offset < self.positions[place]:
                    continue
                if record.offset != self.positions[place]:
                    self._history.violate(f"{place}: {record.offset} came where {self.positions[place]} was due")
                self.positions[place] = record.offset + 1
                value = (record.value or b"").decode()
                self._history.read(self.stretches[place], record.offset, value)
                found.append((place, record.offset, value))
        return False

    def _epoch(self, place: Place) -> int:
        return self._client.leaders[place][1]

    def _asked(self, asked: dict[Place, int]) -> list[dict[str, Any]]:
        by_id = self._client.by_ids(ApiKey.FETCH)
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for (topic, partition), offset in asked.items():
            epoch = self._epoch((topic, partition))
            by_topic.setdefault(topic, []).append(
                {
                    "partition": partition,
                    "current_leader_epoch": epoch,
                    "fetch_offset": offset,
                    "partition_max_bytes": 1 << 20,
                }
            )
        return [
            {"topic_id" if by_id else "topic": self._client.ids[topic] if by_id else topic, "partitions": partitions}
            for topic, partitions in by_topic.items()
        ]

    def _named(self, places: list[Place], numbers: str) -> list[dict[str, Any]]:
        by_id = self._client.by_ids(ApiKey.FETCH)
        return [
            {"topic_id" if by_id else "topic": self._client.ids[topic] if by_id else topic, numbers: [partition]}
            for topic, partition in places
        ]

    def _name(self, one: Any) -> str:
        topic_id: UUID | None = getattr(one, "topic_id", None)
        if topic_id is None:
            return str(one.topic)
        return next(name for name, known in self._client.ids.items() if known == topic_id)


class SimConsumer:
    """A member of the group."""

    def __init__(self, program: LoopProgram, instance_id: str | None) -> None:
        self._client = KafkaClient(program)
        self._world = self._client.world
        self._rng = program.rng
        self._history = self._client.history
        self._fetcher = Fetcher(self._client)
        self._me = Consumer(program.process, instance_id)
        self._history.consumers.append(self._me)
        self._coordinator: int | None = None
        self._member_id = ""
        self._generation = -1
        self._joins = True
        self._fenced = False

    async def run(self) -> None:
        """Read and commit until the run is over; join again whenever that is asked for."""
        while not self._world.ending and not self._fenced:
            try:
                if self._joins:
                    await self._join()
                else:
                    await self._read_on()
            except UnreachableError:
                self._coordinator = None
                await self._client.back_off()
                await _refresh(self._client)
        if not self._fenced:
            await self._leave()

    # --- the group -----------------------------------------------------------------------------------------

    async def _ask(self, key: ApiKey, patience_s: float = 3.0, **fields: Any) -> Any:
        """Ask the coordinator. Raises `UnreachableError`, also where it is another one."""
        if self._coordinator is None:
            await self._find()
        assert self._coordinator is not None
        connection = await self._client.to(self._coordinator)
        common = {
            "group_id": GROUP,
            "member_id": self._member_id,
            "generation_id": self._generation,
            "generation_id_or_member_epoch": self._generation,
            "group_instance_id": self._me.instance_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
        }
        answering = connection.send(key, self._client.versions[key], common | fields, patience_s)
        if key is ApiKey.OFFSET_COMMIT:
            self._history.commits(
                connection.process, self._member_id, self._generation, self._fetcher.positions, connection.arrives_s
            )
        answer = await answering
        code = int(getattr(answer, "error_code", 0) or 0)
        if code in RETRIABLE:
            self._history.counts[f"group error {code}"] += 1
            raise UnreachableError(f"{key.name}: {code}")
        return answer

    async def _find(self) -> None:
        self._coordinator = await self._client.coordinator(GROUP, 0)

    async def _join(self) -> None:
        self._give_up()
        joined = await self._ask(
            ApiKey.JOIN_GROUP,
            12.0,
            session_timeout=self._world.plan.session_ms,
            rebalance_timeout=self._world.plan.session_ms,
            protocols=[{"name": "range", "metadata": encode_subscription(Subscription(self._world.topics))}],
        )
        code = int(joined.error_code)
        if code in (MEMBER_ID_REQUIRED, UNKNOWN_MEMBER, FENCED_INSTANCE, REBALANCING):
            self._member_id = joined.member_id if code == MEMBER_ID_REQUIRED else self._member_id
            self._forget(code)
            return
        if code:
            self._history.violate(f"joining is refused with {code}")
            raise UnreachableError(str(code))
        self._member_id, self._generation = joined.member_id, joined.generation_id
        shares = {}
        if joined.leader == self._member_id and not getattr(joined, "skip_assignment", False):
            shares = self._shares([member.member_id for member in joined.members])
        synced = await self._ask(
            ApiKey.SYNC_GROUP,
            12.0,
            assignments=[{"member_id": name, "assignment": share} for name, share in shares.items()],
        )
        if int(synced.error_code):
            self._forget(int(synced.error_code))
            return
        owned = frozenset(decode_assignment(synced.assignment).partitions)
        positions = await self._committed(sorted(owned))
        self._joins = False
        self._history.assigned(self._me, self._member_id, self._generation, owned)
        self._fetcher.assign(self._client.program.process.name, GROUP, positions)

    def _shares(self, members: list[str]) -> dict[str, bytes]:
        shares: dict[str, list[Place]] = {name: [] for name in sorted(members)}
        for at, place in enumerate(self._world.places):
            shares[sorted(members)[at % len(members)]].append(place)
        return {name: encode_assignment(Assignment(tuple(share))) for name, share in shares.items()}

    def _forget(self, code: int) -> None:
        """The group goes on without this membership, or in another generation: join again."""
        self._history.counts[f"group error {code}"] += 1
        self._joins = True
        if code == FENCED_INSTANCE:
            self._fenced = True
        elif code == UNKNOWN_MEMBER:
            self._member_id, self._generation = "", -1
        elif code not in (REBALANCING, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED):
            self._history.violate(f"a member is refused with {code}")

    def _give_up(self) -> None:
        self._history.gave_up(self._me, self._me.owned)
        self._fetcher.assign("", GROUP, {})

    async def _leave(self) -> None:
        self._give_up()
        self._history.leaving.add(self._member_id)
        self._me.left = True
        try:
            one = {"member_id": self._member_id, "group_instance_id": self._me.instance_id}
            await self._ask(ApiKey.LEAVE_GROUP, members=[one])
        except UnreachableError:
            return

    # --- records -------------------------------------------------------------------------------------------

    async def _read_on(self) -> None:
        """Read for a heartbeat's time, commit, and show life."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._rng.uniform(0.2, 1.0) * self._world.plan.session_ms / 6_000
        generation = self._generation
        while loop.time() < until_s and self._generation == generation and not self._world.ending:
            try:
                for place, offset, value in await self._fetcher.fetch(self._rng.choice([0, 200, 500])):
                    self._history.process_record(place, offset, value)
            except UnreachableError:
                await self._client.back_off()
                await _refresh(self._client)
        if self._rng.random() < 0.7:
            await self._commit()
        if not self._joins:
            await self._beat()

    async def _beat(self) -> None:
        answer = await self._ask(ApiKey.HEARTBEAT)
        code = int(answer.error_code)
        if code == REBALANCING and self._rng.random() < 0.7:
            await self._commit()
        if code:
            self._forget(code)
        else:
            self._history.vouch(self._member_id, self._coordinator)

    async def _commit(self) -> None:
        topics: dict[str, list[dict[str, Any]]] = {}
        for (topic, partition), offset in self._fetcher.positions.items():
            one = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "m"}
            topics.setdefault(topic, []).append(one)
        if not topics:
            return
        answer = await self._ask(
            ApiKey.OFFSET_COMMIT,
            self._rng.choice([0.7, 3.0]),
            topics=[{"name": name, "partitions": of} for name, of in topics.items()],
        )
        codes = {int(p.error_code) for topic in answer.topics for p in topic.partitions} - {0}
        for code in codes:
            self._history.counts[f"commit error {code}"] += 1
            if code in RETRIABLE:
                raise UnreachableError(f"commit: {code}")
            if code != REBALANCING:
                self._forget(code)

    async def _committed(self, owned: list[Place]) -> dict[Place, int]:
        """Where to begin. Raises `UnreachableError`."""
        found = await committed(self._client, self._ask, GROUP, owned)
        return {place: max(0, offset) for place, offset in found.items()}


async def committed(client: KafkaClient, ask: Any, group: str, places: list[Place]) -> dict[Place, int]:
    """A group's offsets, -1 where there is none. Raises `UnreachableError`, also while some wait for a transaction."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    asked = [{"name": name, "partition_indexes": numbers} for name, numbers in topics.items()]
    grouped = client.versions[ApiKey.OFFSET_FETCH] >= 8
    fields = {"groups": [{"group_id": group, "topics": asked}]} if grouped else {"group_id": group, "topics": asked}
    answer = await ask(ApiKey.OFFSET_FETCH, **fields, require_stable=True)
    if grouped:
        answer = answer.groups[0]
    code = int(answer.error_code)
    if code:
        raise UnreachableError(f"offsets: {code}")
    if any(int(p.error_code) for topic in answer.topics for p in topic.partitions):
        raise UnreachableError("offsets")
    return {(topic.name, p.partition_index): p.committed_offset for topic in answer.topics for p in topic.partitions}


def consumer(instance_id: str | None) -> Any:
    """The role of a member of the group."""

    async def consume(program: LoopProgram) -> None:
        await SimConsumer(program, instance_id).run()

    return consume


async def read_all(program: LoopProgram) -> None:
    """A reader without a group, of all partitions, from the start to their ends."""
    client = KafkaClient(program)
    fetcher = Fetcher(client)
    fetcher.assign(program.process.name, "", dict.fromkeys(client.world.places, 0))
    while not client.world.is_read(fetcher.positions):
        try:
            await fetcher.fetch(client.rng.choice([0, 100, 500]))
        except UnreachableError:
            await client.back_off()
            await _refresh(client)


async def observe(program: LoopProgram) -> None:
    """Looks at the bounds of all partitions, by ListOffsets at their leader."""
    client = KafkaClient(program)
    while not client.world.settling:
        try:
            bounds = await _bounds(client, IDEMPOTENT)
            client.history.seen.looks.append(Look(program.process.name, bounds))
        except UnreachableError:
            await _refresh(client)
        await asyncio.sleep(client.rng.uniform(0.1, 1.0))


async def _bounds(client: KafkaClient, topic: str) -> dict[Place, tuple[int, int]]:
    _, connection = await client.leader(topic)
    found: dict[int, list[int]] = {}
    for timestamp in (-2, -1):
        partitions = [
            {"partition_index": p, "current_leader_epoch": client.leaders[topic, p][1], "timestamp": timestamp}
            for p in range(client.world.plan.partitions)
        ]
        fields = {
            "replica_id": -1,
            "isolation_level": 0,
            "timeout": 3_000,
            "topics": [{"name": topic, "partitions": partitions}],
        }
        answer = await connection.ask(ApiKey.LIST_OFFSETS, client.versions[ApiKey.LIST_OFFSETS], fields)
        for one in answer.topics[0].partitions:
            if int(one.error_code):
                raise UnreachableError(f"offsets: {one.error_code!r}")
            found.setdefault(one.partition_index, []).append(one.offset)
    return {(topic, p): (start, end) for p, (start, end) in found.items()}


async def _refresh(client: KafkaClient) -> None:
    try:
        await client.refresh()
    except UnreachableError:
        return
