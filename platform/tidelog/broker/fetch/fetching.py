"""Fetch: records to consumers, from memory where they are there, else from segments; or a wait until there are some."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from tidelog.access.model import AclOperation, AclResource
from tidelog.broker.base.batch_cache import BatchCache, BatchRun, Place
from tidelog.broker.base.calls import Call, Encoded
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.fetch.cold_reads import ColdReads
from tidelog.broker.fetch.filling import Wanted, fill
from tidelog.broker.fetch.requested import RequestedTopic, epoch_problem
from tidelog.broker.fetch.requests import Asked, FetchRequest, Key, request_of
from tidelog.broker.fetch.sessions import Sessions
from tidelog.broker.records.batches import NONE, ZSTD, of_epoch
from tidelog.broker.records.topic_codec import codec_of_topic
from tidelog.broker.wire.errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE
from tidelog.broker.wire.fetch_answer import FetchAnswer, PartitionAnswer, encode_fetch
from tidelog.log.base.errors import TidelogError

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

    __slots__ = ("_cache", "answer", "asked", "chunk", "failed", "key", "place", "topic", "wanted")

    def __init__(self, key: Key, asked: Asked, topic: RequestedTopic, cache: BatchCache, codec: int) -> None:
        self._cache = cache
        self.key = key
        self.asked = asked
        self.topic = topic
        self.place: Place = (topic.id, key[1], codec)
        # What was read for this request, should the cache not have kept it.
        self.chunk: BatchRun | None = None
        self.failed: TidelogError | None = None
        self.wanted: Wanted | None = None
        self.answer = PartitionAnswer(key[1])

    def find(self, offset: int) -> BatchRun | None:
        """The chunk that covers the offset: in the cache, or what was read for this request."""
        found, chunk, topic = self._cache.find(self.place, offset), self.chunk, self.topic.topic
        if chunk is not None and (
            topic is None or topic.is_rewritten(*self.place[:2], chunk.first, chunk.end, chunk.version)
        ):
            chunk = self.chunk = None
        if found is None and chunk is not None and chunk.first <= offset < chunk.end:
            return chunk
        return found


class Fetching:
    """The handler of Fetch."""

    def __init__(self, context: Context, reads: ColdReads) -> None:
        self._context = context
        self._reads = reads
        self._ids = context.lake.ids
        self._sessions = Sessions(lambda: 1 + int(self._ids.fraction() * (2**31 - 1)))
        self._waiting: dict[Callable[[], None], None] = {}
        self._closed = False
        context.at_close.append(self._close)

    async def __call__(self, call: Call) -> Encoded:
        """Answer a request."""
        request = request_of(call)
        clock = self._context.clock
        fetch = self._sessions.begin(request, clock.elapsed_s())
        if fetch.error_code:
            refused = encode_fetch(request.version, FetchAnswer(error_code=fetch.error_code))
            return Encoded(refused, {fetch.error_code: 1}, throttle_at=0)
        partitions = await self._partitions(request, fetch.asked)
        if fetch.session is None and partitions:
            # The first one is served first, and without a session it is not known which one that was last time.
            turn = int(self._ids.fraction() * len(partitions))
            partitions = partitions[turn:] + partitions[:turn]
        await self._serve(call, request, partitions, call.received_s + request.max_wait_s)
        self._count(partitions)
        answers = {p.key: p.answer for p in partitions}
        error, session_id, keys = self._sessions.answered(fetch, answers, clock.elapsed_s())
        topics: dict[str | UUID, list[PartitionAnswer]] = {}
        for topic, number in keys:
            topics.setdefault(topic, []).append(answers[topic, number])
        answer = FetchAnswer(list(topics.items()), error, session_id, read_committed=request.read_committed)
        if request.version >= _NODES_SINCE:
            leaders = {one.current_leader[0] for one in answers.values() if one.current_leader is not None}
            answer.nodes = self._context.cluster().endpoints(leaders, call.peer.listener)
        errors = Counter(one.error_code for _, told in answer.topics for one in told)
        return Encoded(encode_fetch(request.version, answer), errors, throttle_at=0)

    async def _close(self) -> None:
        """The broker stops: what waits is answered with what there is."""
        self._closed = True
        for wake in list(self._waiting):
            wake()
        self._reads.close()

    def _count(self, partitions: Sequence[_Partition]) -> None:
        """Count what clients took of each topic."""
        counted: set[str] = set()
        for p in partitions:
            if p.topic.topic is not None:
                meter = self._context.meter.topic(p.topic.topic.name)
                meter.bytes_out += p.answer.size
                meter.failed_fetch_requests += p.answer.error_code != 0
                if p.topic.topic.name not in counted:
                    counted.add(p.topic.topic.name)
                    meter.fetch_requests += 1

    async def _partitions(self, request: FetchRequest, asked: Mapping[Key, Asked]) -> list[_Partition]:
        topics: dict[str | UUID, RequestedTopic] = {}
        found = []
        for key, one in asked.items():
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = await RequestedTopic.of(self._context.topics, key[0])
            if _is_past_the_end(topic, key[1], one.offset):  # as far as is known: its last leader knew more, perhaps
                topic = topics[key[0]] = await RequestedTopic.fresh(self._context.topics, key[0])
            found.append(_Partition(key, one, topic, self._context.cache, _codec(topic, request.version)))
        return found

    async def _serve(
        self, call: Call, request: FetchRequest, partitions: Sequence[_Partition], deadline_s: float
    ) -> None:
        """Answer each partition, as soon as there is enough to answer with, or time is up."""
        clock, loop = self._context.clock, asyncio.get_running_loop()
        changed, late = asyncio.Event(), asyncio.Event()
        topics = {id(p.topic.topic): p.topic.topic for p in partitions if p.topic.topic is not None}
        for topic in topics.values():
            topic.on_change(changed.set)
        self._waiting[changed.set] = None
        timer: asyncio.TimerHandle | None = None
        try:
            while True:
                changed.clear()
                self._ask(call, partitions)
                size, at_once = self._fill(request, partitions)
                missing = [p for p in partitions if p.wanted is not None and p.wanted.missing >= 0]
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
            for topic in topics.values():
                topic.forget(changed.set)
            if timer is not None:
                timer.cancel()
        if not request.is_throttled:
            self._read_ahead(partitions)

    def _ask(self, call: Call, partitions: Sequence[_Partition]) -> None:
        """Ask whether the client may read: each topic once, and again where ACLs have changed while it waits."""
        access = self._context.access
        if access.is_open:
            return
        for p in partitions:
            topic = p.topic
            name = topic.topic.name if topic.topic is not None else p.key[0]
            if isinstance(name, str) and topic.asked_of is not access.authorizer:
                topic.asked_of = access.authorizer
                topic.is_denied = not access.allows(call, AclOperation.READ, AclResource.TOPIC, name)

    # --- what there is -------------------------------------------------------------------------------------

    def _fill(self, request: FetchRequest, partitions: Sequence[_Partition]) -> tuple[int, bool]:
        """Answer with what is in memory; how many bytes that is, and whether there is something to be said at once."""
        view = self._context.cluster()
        at_once = request.is_throttled
        wanted = []
        for p in partitions:
            p.wanted = self._look(request, view, p)
            if p.wanted is not None:
                wanted.append(p.wanted)
            elif p.answer.error_code or p.answer.preferred_read_replica >= 0:
                at_once = True
        size = 0 if request.is_throttled else fill(wanted, min(max(request.max_bytes, 0), _MOST_BYTES))
        for p in partitions:
            if p.wanted is not None:
                p.answer.records, p.answer.size = of_epoch(p.wanted.batches, view.epoch), p.wanted.size
        return size, at_once

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
            if following < wanted.end and p.find(following) is None:
                self._reads.read(p.topic.topic, p.place, following)
                begun += 1
            if begun == READS_AT_ONCE:
                break


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
