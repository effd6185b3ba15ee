"""Fetch: records to consumers, from memory where they are there, else from segments; or a wait until there are some."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.batch_runs import BatchRun, Place
from tidelog.broker.base.calls import Call, Encoded, Peer, Reply
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.base.topics import BrokerTopic
from tidelog.broker.fetch.cold_reads import ColdReads
from tidelog.broker.fetch.filed_reads import FiledReads, FromFiles
from tidelog.broker.fetch.filling import Wanted, fill
from tidelog.broker.fetch.plain_fetch import plain_fetch
from tidelog.broker.fetch.requested import RequestedTopic, epoch_problem
from tidelog.broker.fetch.requests import FINAL_EPOCH, Asked, FetchRequest, Key, request_of, size_of
from tidelog.broker.fetch.sessions import INVALID_SESSION_EPOCH, MOST_PARTITIONS, Fetch, Sessions, Told, change, tell
from tidelog.broker.records.batches import NONE, ZSTD, of_epoch
from tidelog.broker.records.topic_codec import codec_of_topic
from tidelog.broker.wire.errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE
from tidelog.broker.wire.fetch_answer import FetchAnswer, PartitionAnswer, Piece, encode_fetch
from tidelog.log.base.errors import TidelogError
from tidelog.operations.rights import Right
from tidelog.server.base.blocking import AT_ONCE, here, in_turns, turn

P = ParamSpec("P")
R = TypeVar("R")

# Partitions of a request that the loop goes through without a pause, where that takes little for each.
_FEW = 4 * AT_ONCE
# Records of segments are packed by Zstandard only for topics that ask for it, and from this version on, as not every
# client knows it: Rust's rdkafka is built without it, and KafkaJS and old Python clients, which use older versions,
# don't have it.
PACKED_SINCE = 12
# Partitions that are read from segments at once for one request.
READS_AT_ONCE = 8
# Versions of Fetch.
_LEADER_HINTS_SINCE = 12
_NODES_SINCE = 16
_MOST_BYTES = 55 * 1024 * 1024  # Kafka's fetch.max.bytes of a broker


class _Partition:
    """A partition of a request, while it is answered."""

    __slots__ = ("_cache", "answer", "asked", "chunk", "failed", "key", "place", "topic", "wanted", "was_filed")

    def __init__(self, key: Key, asked: Asked, topic: RequestedTopic, cache: BatchCache, codec: int) -> None:
        self._cache = cache
        self.key = key
        self.asked = asked
        self.topic = topic
        self.place: Place = (topic.id, key[1], codec)
        # What was read for this request, should the cache not have kept it.
        self.chunk: BatchRun | None = None
        self.was_filed = False  # whether files were asked for it
        self.failed: TidelogError | None = None
        self.wanted: Wanted | None = None
        self.answer = PartitionAnswer(key[1])

    def find(self, offset: int) -> BatchRun | None:
        """The chunk that covers the offset: in the cache, or what was read for this request."""
        cached, chunk, topic = self._cache.find(self.place, offset), self.chunk, self.topic.topic
        if chunk is not None and (topic is None or topic.is_stale(chunk)):
            chunk = self.chunk = None
        if cached is None and chunk is not None and chunk.first <= offset < chunk.end:
            return chunk
        return cached


class Fetching:
    """The handler of Fetch."""

    def __init__(self, context: Context, reads: ColdReads) -> None:
        self._context = context
        self._reads = reads
        self._filed = FiledReads(context)
        self._ids = context.lake.ids
        self._sessions = Sessions(lambda: 1 + int(self._ids.fraction() * (2**31 - 1)))
        self._asked = 0  # partitions of the requests that wait
        self._waiting: dict[Callable[[], None], None] = {}
        self._closed = False
        context.at_close.append(self._close)
        context.at_disconnect.append(lambda peer: self._sessions.forget(_connection(peer)))

    async def __call__(self, call: Call) -> Encoded:
        """Answer a request."""
        clock, owner = self._context.clock, _connection(call.peer)
        request = await self._beside(size_of(call.body), request_of, call)
        fetch = self._sessions.admit(request, clock.elapsed_s(), owner)
        if fetch.session is not None:
            size = len(fetch.session.partitions) + len(request.asked)
            fetch = self._sessions.changed(await self._beside(size, change, fetch, request))
        if fetch.error_code:
            refused = encode_fetch(request.version, FetchAnswer(error_code=fetch.error_code))
            return Encoded(refused, {fetch.error_code: 1}, throttle_at=0)
        partitions, topics = await self._partitions(request, fetch.asked)
        if fetch.session is None and partitions:
            partitions = self._turned(partitions)
        self._asked += len(partitions)
        try:
            # No more partitions are waited for than sessions may have.
            wait_s = request.max_wait_s if self._asked <= MOST_PARTITIONS else 0.0
            await self._serve(call, request, partitions, topics, call.received_s + wait_s)
        finally:
            self._asked -= len(partitions)
        await self._count(partitions)
        if not self._sessions.tells(fetch):
            refused = encode_fetch(request.version, FetchAnswer(error_code=INVALID_SESSION_EPOCH))
            return Encoded(refused, {INVALID_SESSION_EPOCH: 1}, throttle_at=0)
        told, answer, leaders = await self._beside(len(partitions), _told, fetch, partitions)
        answer = self._answered(call, request, fetch, told, answer, leaders)
        pieces, errors = await self._beside(len(partitions), _encoded, request.version, answer)
        return Encoded(pieces, errors, throttle_at=0)

    def begin(self, call: Call, done: Callable[[], object]) -> Callable[[], Reply] | None:
        """As `ShortWay.begin`: for plain requests that memory has an answer to now."""
        request = plain_fetch(call.version, call.body)
        answer = None if request is None or self._closed else self._at_once(call, request)
        if answer is None:
            return None
        done()
        return lambda: answer

    def _at_once(self, call: Call, request: FetchRequest) -> Encoded | None:
        """The answer, as the general way gives it; None where that needs anything but memory, or has to wait."""
        asked = self._sessions.asked(request)
        if not asked or len(asked) > AT_ONCE:
            return None
        topics: dict[str | UUID, RequestedTopic] = {}
        partitions: list[_Partition] = []
        for key, wanted in asked.items():
            topic = topics.get(key[0])
            if topic is None:
                followed = self._context.topics.followed(key[0])
                if followed is None:
                    return None
                topic = topics[key[0]] = RequestedTopic(followed)
            if _is_past_the_end(topic, key[1], wanted.offset):
                return None
            partitions.append(_Partition(key, wanted, topic, self._context.cache, _codec(topic, request.version)))
        if request.epoch == FINAL_EPOCH:
            partitions = self._turned(partitions)
        self._ask_each(call, partitions)
        size, at_once, missing = self._fill_some(request, partitions, 0)
        filed = self._in_files(missing)
        if filed:
            chunks = self._filed.read_at_once(self._from_files(filed), request.max_bytes)
            if chunks is None or not self._have(filed, chunks):
                return None
            size, at_once, missing = self._fill_some(request, partitions, 0)
        if (missing and not size) or not (at_once or size >= request.min_bytes):
            return None
        if self._reads.is_ahead:
            self._read_ahead(partitions)
        fetch = self._sessions.begin(request, self._context.clock.elapsed_s(), _connection(call.peer))
        if fetch.error_code:
            return None
        self._count_each(partitions, set())
        told, answer, leaders = _told(fetch, partitions)
        pieces, errors = _encoded(request.version, self._answered(call, request, fetch, told, answer, leaders))
        return Encoded(pieces, errors, throttle_at=0)

    def _turned(self, partitions: list[_Partition]) -> list[_Partition]:
        """The first one is served first, and without a session it is not known which one that was last time."""
        turn = int(self._ids.fraction() * len(partitions))
        return partitions[turn:] + partitions[:turn]

    def _answered(
        self, call: Call, request: FetchRequest, fetch: Fetch, told: Told, answer: FetchAnswer, leaders: set[int]
    ) -> FetchAnswer:
        """The whole answer, of one that has its partitions."""
        answer.session_id, _ = self._sessions.told(fetch, told, self._context.clock.elapsed_s())
        answer.read_committed = request.read_committed
        if request.version >= _NODES_SINCE:
            answer.nodes = self._context.cluster().endpoints(leaders, call.peer.listener)
        return answer

    def _beside(self, size: int, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call it, in a thread where it goes through many partitions."""
        return (here if size <= _FEW else self._context.blocking)(call, *args, **kwargs)

    async def _close(self) -> None:
        """The broker stops: what waits is answered with what there is."""
        self._closed = True
        for wake in list(self._waiting):
            wake()
        self._reads.close()

    async def _count(self, partitions: Sequence[_Partition]) -> None:
        """Count what clients took of each topic."""
        counted: set[str] = set()
        async for p in in_turns(partitions):
            self._count_each((p,), counted)

    def _count_each(self, partitions: Iterable[_Partition], counted: set[str]) -> None:
        """Count what was taken of partitions. `counted`: the topics of which the request is counted."""
        for p in partitions:
            if p.topic.topic is not None:
                meter = self._context.meter.topic(p.topic.topic.name)
                meter.bytes_out += p.answer.size
                meter.failed_fetch_requests += p.answer.error_code != 0
                if p.topic.topic.name not in counted:
                    counted.add(p.topic.topic.name)
                    meter.fetch_requests += 1

    async def _partitions(
        self, request: FetchRequest, asked: Mapping[Key, Asked]
    ) -> tuple[list[_Partition], Mapping[BrokerTopic, Collection[int] | None]]:
        """The partitions of a request, and what is watched of which topic while it waits, None: all."""
        topics: dict[str | UUID, RequestedTopic] = {}
        partitions = []
        async for key in in_turns(tuple(asked)):
            wanted = asked[key]
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = await RequestedTopic.of(self._context.topics, key[0])
            if _is_past_the_end(topic, key[1], wanted.offset):  # as far as is known: its last leader knew more, perhaps
                topic = topics[key[0]] = await RequestedTopic.fresh(self._context.topics, key[0])
            partitions.append(_Partition(key, wanted, topic, self._context.cache, _codec(topic, request.version)))
        numbers: dict[BrokerTopic, list[int]] = {}
        if len(partitions) > AT_ONCE:  # to note them all would hold up others
            return partitions, dict.fromkeys(one.topic for one in topics.values() if one.topic is not None)
        for p in partitions:
            if p.topic.topic is not None:
                numbers.setdefault(p.topic.topic, []).append(p.key[1])
        return partitions, numbers

    async def _serve(
        self,
        call: Call,
        request: FetchRequest,
        partitions: Sequence[_Partition],
        topics: Mapping[BrokerTopic, Collection[int] | None],
        deadline_s: float,
    ) -> None:
        """Answer each partition, as soon as there is enough to answer with, or time is up."""
        clock, loop = self._context.clock, asyncio.get_running_loop()
        changed, late = asyncio.Event(), asyncio.Event()
        for topic, numbers in topics.items():
            topic.on_change(changed.set, numbers)
        self._waiting[changed.set] = None
        timer: asyncio.TimerHandle | None = None
        try:
            while True:
                changed.clear()
                await self._ask(call, partitions)
                size, at_once, missing = await self._fill(request, partitions)
                if missing and await self._read_files(request, missing):
                    continue
                if missing and not size:  # there are records, so that the answer has some, however long that takes
                    await self._read(missing)
                    continue
                if at_once or size >= request.min_bytes or not partitions or late.is_set() or self._closed:
                    break
                left_s = deadline_s - clock.elapsed_s()
                if left_s <= 0:
                    break
                if timer is None:
                    timer = loop.call_later(left_s, _both, late, changed)
                await (self._read(missing, changed) if missing else changed.wait())
        finally:
            self._waiting.pop(changed.set, None)
            for topic in topics:
                topic.forget(changed.set)
            if timer is not None:
                timer.cancel()
        if not request.is_throttled and self._reads.is_ahead:
            self._read_ahead(partitions)

    async def _ask(self, call: Call, partitions: Sequence[_Partition]) -> None:
        """Ask whether the client may read: each topic once, and again where ACLs have changed while it waits."""
        if not self._context.access.is_open:
            async for p in in_turns(partitions):
                self._ask_each(call, (p,))

    def _ask_each(self, call: Call, partitions: Iterable[_Partition]) -> None:
        access = self._context.access
        if access.is_open:
            return
        for p in partitions:
            topic = p.topic
            name = topic.topic.name if topic.topic is not None else p.key[0]
            if isinstance(name, str) and topic.asked_of is not access.authorizer:
                topic.asked_of = access.authorizer
                topic.is_denied = not access.allows(call, Right.READ_RECORDS, topic=name)

    # --- what there is -------------------------------------------------------------------------------------

    async def _fill(
        self, request: FetchRequest, partitions: Sequence[_Partition]
    ) -> tuple[int, bool, Sequence[_Partition]]:
        """Answer with what is in memory.

        How many bytes that is, whether there is something to be said at once, and what must be read for more.
        """
        at_once, size, missing = False, 0, []
        for start in range(0, len(partitions), AT_ONCE):
            if start:
                await turn()
            size, now, more = self._fill_some(request, partitions[start : start + AT_ONCE], size)
            at_once |= now
            missing += more
        return size, at_once or request.is_throttled, missing

    def _fill_some(
        self, request: FetchRequest, partitions: Sequence[_Partition], size: int
    ) -> tuple[int, bool, list[_Partition]]:
        """The same of some partitions, where those before them took `size` bytes."""
        at_once, missing = request.is_throttled, []
        view = self._context.cluster()
        wanted = []
        for p in partitions:
            p.wanted = self._look(request, view, p)
            if p.wanted is not None:
                wanted.append(p.wanted)
            elif p.answer.error_code or p.answer.preferred_read_replica >= 0:
                at_once = True
        if not request.is_throttled:
            size = fill(wanted, min(max(request.max_bytes, 0), _MOST_BYTES), size)
        for p in partitions:
            if p.wanted is not None:
                p.answer.records, p.answer.size = of_epoch(p.wanted.batches, view.epoch), p.wanted.size
                if p.wanted.missing >= 0:
                    missing.append(p)
        return size, at_once, missing

    def _look(self, request: FetchRequest, view: ClusterView, p: _Partition) -> Wanted | None:
        """What to take of a partition; None if nothing: then its answer is complete."""
        p.answer = answer = PartitionAnswer(p.key[1])
        answer.error_code = self._problem(request, view, p)
        if answer.error_code:
            if (
                answer.error_code in (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH)
                and request.version >= _LEADER_HINTS_SINCE
            ):
                answer.current_leader = (view.leader(p.topic.id, p.key[1]).id, view.epoch)
            return None
        assert p.topic.topic is not None
        state = p.topic.topic.state
        start, end = state.start(p.key[1]), state.end(p.key[1])
        answer.high_watermark = answer.last_stable_offset = end
        answer.log_start_offset = start
        if not start <= p.asked.offset <= end:
            answer.error_code = OFFSET_OUT_OF_RANGE
            answer.high_watermark = answer.last_stable_offset = answer.log_start_offset = -1
            return None
        answer.preferred_read_replica = view.preferred_read_replica(p.topic.id, p.key[1], request.rack, view.node_id)
        if answer.preferred_read_replica >= 0:
            return None
        if p.failed is not None:
            answer.error_code = p.failed.kafka_code
            return None
        return Wanted(p.asked.offset, end, p.asked.max_bytes, p.find)

    def _problem(self, request: FetchRequest, view: ClusterView, p: _Partition) -> int:
        problem = p.topic.problem(p.key[1], by_id=request.by_ids)
        if problem:
            return problem
        if not view.serves:
            return NOT_LEADER_OR_FOLLOWER
        return epoch_problem(view, p.asked.leader_epoch)

    # --- what must be read ---------------------------------------------------------------------------------

    def _in_files(self, partitions: Iterable[_Partition]) -> list[_Partition]:
        """Those whose missing batches are in files, as far as is known."""
        has = self._filed.has
        return [p for p in partitions if p.wanted and not p.was_filed and has(p.place, p.wanted.missing)]

    async def _read_files(self, request: FetchRequest, missing: Iterable[_Partition]) -> bool:
        """Read what files have of partitions; whether there is something of it."""
        partitions = self._in_files(missing)
        return self._have(partitions, await self._filed.read(self._from_files(partitions), request.max_bytes))

    def _from_files(self, partitions: Iterable[_Partition]) -> list[FromFiles]:
        asked = []
        for p in partitions:
            assert p.topic.topic is not None
            assert p.wanted is not None
            p.was_filed = True
            asked.append(FromFiles(p.topic.topic, p.place, p.wanted.missing, p.asked.max_bytes - p.wanted.size))
        return asked

    def _have(self, partitions: Iterable[_Partition], chunks: Sequence[BatchRun | None]) -> bool:
        """Note what was read of partitions; whether there is any."""
        for p, chunk in zip(partitions, chunks, strict=True):
            p.chunk = chunk
        return any(chunks)

    async def _read(self, partitions: Sequence[_Partition], changed: asyncio.Event | None = None) -> None:
        """Read what partitions are missing, until there is something of it, or until `changed`."""
        tasks: dict[asyncio.Task[BatchRun], list[_Partition]] = {}
        for p in partitions[:READS_AT_ONCE]:
            assert p.topic.topic is not None
            assert p.wanted is not None
            tasks.setdefault(self._reads.read(p.topic.topic, p.place, p.wanted.missing), []).append(p)
        waits: set[asyncio.Future[Any]] = set(tasks)
        bell = None
        if changed is not None:
            bell = asyncio.get_running_loop().create_task(changed.wait())
            waits.add(bell)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if bell is not None:
                bell.cancel()
        for task, waiting in tasks.items():
            if not task.done():
                continue
            try:
                chunk, failed = task.result(), None
            except TidelogError as e:
                chunk, failed = None, e
            for p in waiting:
                p.chunk, p.failed = chunk, failed

    def _read_ahead(self, partitions: Sequence[_Partition]) -> None:
        """Have read what consumers will ask for next, where that is not in memory: one chunk of a partition."""
        begun = 0
        for p in partitions:
            wanted = p.wanted
            if wanted is None or p.topic.topic is None or wanted.behind >= wanted.end:
                continue
            chunk = p.find(wanted.behind)
            following = wanted.behind if chunk is None else chunk.end
            if following < wanted.end and p.find(following) is None and not self._filed.has(p.place, following):
                self._reads.read(p.topic.topic, p.place, following)
                begun += 1
            if begun == READS_AT_ONCE:
                break


def _connection(peer: Peer) -> Hashable:
    """What the sessions of a connection are known by; None in a simulation, which has no ports."""
    return (peer.host, peer.port) if peer.port else None


def _told(fetch: Fetch, partitions: Sequence[_Partition]) -> tuple[Told, FetchAnswer, set[int]]:
    """(what the client gets, the answer that says so, the leaders that its partitions name)."""
    answers = {p.key: p.answer for p in partitions}
    told = tell(fetch, answers)
    topics: dict[str | UUID, list[PartitionAnswer]] = {}
    for topic, number in told.keys:
        topics.setdefault(topic, []).append(answers[topic, number])
    leaders = {one.current_leader[0] for one in answers.values() if one.current_leader is not None}
    return told, FetchAnswer(list(topics.items())), leaders


def _encoded(version: int, answer: FetchAnswer) -> tuple[list[Piece], Counter[int]]:
    """The answer in bytes, and {error code: how often}."""
    return encode_fetch(version, answer), Counter(one.error_code for _, told in answer.topics for one in told)


def _both(first: asyncio.Event, second: asyncio.Event) -> None:
    first.set()
    second.set()


def _is_past_the_end(topic: RequestedTopic, partition: int, offset: int) -> bool:
    state = None if topic.topic is None else topic.topic.log.state
    return state is not None and 0 <= partition < state.partitions and offset > state.end(partition)


def _codec(topic: RequestedTopic, version: int) -> int:
    """The codec for what is read from segments: the topic's own, which consumers then must know, as with Kafka."""
    if topic.topic is None or topic.topic.log.state is None:
        return NONE
    codec = codec_of_topic(topic.topic.log.state) or NONE
    return NONE if codec == ZSTD and version < PACKED_SINCE else codec
