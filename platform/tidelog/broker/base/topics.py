"""The lake's topics as a broker sees them: by name and by id, followed as they grow; requests wait for them here."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from functools import lru_cache, partial
from uuid import UUID

from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.batch_runs import BatchRun
from tidelog.broker.base.topic_waits import TopicWaits, Wake
from tidelog.broker.wire.errors import UnknownTopicIdError
from tidelog.log.base.errors import TidelogError, TopicChangedError, UnknownTopicError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.follow.cursor import FollowedLog
from tidelog.log.follow.tailing import Tailing
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import unknown_topic
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic
from tidelog.server.base.blocking import Blocking
from tidelog.server.base.shared_calls import SharedCall

logger = logging.getLogger(__name__)

# How long an id stays absent that no topic had, and how many of them are kept in mind.
ABSENT_S = 1.0
MOST_ABSENT = 1000


class BrokerTopic:
    """A topic that is followed. For the loop's thread."""

    def __init__(self, log: FollowedLog, look: Callable[["BrokerTopic"], Awaitable[None]]) -> None:
        self.log = log
        # See the log as it is in the store now. What asks together shares a look.
        self.look = SharedCall(partial(look, self))
        self._waits = TopicWaits()
        # The topic's id and version as last seen: what was rewritten since is still to be forgotten.
        self._seen: tuple[UUID, int] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.log.name

    @property
    def topic(self) -> Topic:
        """The handle to append to and read from, of the topic that has the name now."""
        if self.log.topic is None:
            raise ValueError(f"topic '{self.name}' was not looked at yet")
        return self.log.topic

    @property
    def topic_id(self) -> str:
        """The id of the topic that has the name now. Raises `UnknownTopicError` where none has, as after a deletion."""
        topic_id = self.topic.id
        if not topic_id:
            raise unknown_topic(self.name)
        return topic_id

    @property
    def id(self) -> UUID:
        """Its id, as clients see it. Raises as `topic_id`."""
        return UUID(self.topic_id)

    @property
    def state(self) -> TopicState:
        """What is known of it. Not to be changed. Raises why it can't be had."""
        if self.log.error is not None:
            raise self.log.error
        if self.log.state is None:
            raise ValueError(f"topic '{self.name}' was not looked at yet")
        return self.log.state

    def is_rewritten(self, topic: UUID, partition: int, first: int, end: int, version: int | None = None) -> bool:
        """Whether a topic's records of [first, end), as of a version, may be gone from its log by now.

        None: as they were produced. So are those of a topic that is not there any more.
        """
        state = self.log.state
        if state is None or not state.topic_id or _uuid(state.topic_id) != topic:
            return True
        if version is None:
            return state.rewrites.touch_at_all(partition, first, end)
        return state.rewrites.touch(partition, first, end, version)

    def is_stale(self, run: BatchRun) -> bool:
        """Whether records of a run of batches may be gone from the topic's log by now."""
        return self.is_rewritten(*run.place[:2], run.first, run.end, None if run.version < 0 else run.version)

    def forget_rewritten(self, cache: BatchCache) -> None:
        """Have the cache forget what was rewritten since the last call."""
        state, error = self.log.state, self.log.error
        now = None
        if state is not None and state.exists and state.topic_id:
            now = UUID(state.topic_id), state.version
        elif not isinstance(error, UnknownTopicError | TopicChangedError):  # nothing is known of it for the moment
            return
        before, self._seen = self._seen, now
        if before is None or before == now:
            return
        is_same = state is not None and now is not None and now[0] == before[0]
        cache.forget(before[0], state.rewrites.since(before[1]) if is_same and state is not None else None)

    def on_change(self, wake: Wake, partitions: Collection[int] | None) -> None:
        """Call `wake` at each change of these partitions, None: of any, until `forget`."""
        self._waits.add(wake, partitions, self.log.state)

    def forget(self, wake: Wake) -> None:
        """Call it no more."""
        self._waits.forget(wake)

    def committed(self, partitions: Iterable[int] | None) -> None:
        """This process has committed to these partitions, None: to any, and may have seen what others have."""
        self._waits.ring(partitions)
        self.looked()

    def looked(self) -> None:
        """It was looked at: wake the requests for which it has changed."""
        self._waits.look(self.log.state)


@lru_cache(1024)
def _uuid(topic_id: str) -> UUID:
    return UUID(topic_id)


class BrokerTopics:
    """The topics of a lake. A topic is followed from its first use on, by one thread for all of them.

    Its methods are for the loop's thread. What is asked by name or id is looked up in the store where it is not known.
    The `cache` forgets what a rewrite of a topic replaced, as soon as that is seen.
    """

    def __init__(self, lake: Lake, blocking: Blocking, cache: BatchCache) -> None:
        self._lake = lake
        self._cache = cache
        self._blocking = blocking
        self._loop = asyncio.get_running_loop()
        self._tailing = Tailing(lake.storage, lake.clock)
        self._followed: dict[str, BrokerTopic] = {}
        self._names: dict[UUID, str] = {}
        # Ids that no topic had, oldest first, and when that was, on the elapsed clock.
        self._absent: dict[UUID, float] = {}
        self._closing = False
        self._rounds = Rounds(logger, "Following topics")
        self._thread = threading.Thread(target=self._follow, name="tidelog-follow", daemon=True)
        self._thread.start()

    async def get(self, name: str) -> BrokerTopic | None:
        """The topic of that name; None where there is none. Raises `InvalidTopicError`, and why it can't be opened."""
        followed = self._followed.get(name)
        if followed is None:
            followed = BrokerTopic(FollowedLog(self._lake, name), self._look)
        if followed.log.state is None:
            await followed.look()
            if followed.log.error is not None:
                if isinstance(followed.log.error, UnknownTopicError | TopicChangedError):
                    if name not in self._followed:
                        self._lake.drop_absent(name)
                    return None
                raise followed.log.error
            try:
                topic_id = followed.id
            except UnknownTopicError:  # deleted since it was looked at
                return None
            if self._followed.setdefault(name, followed) is followed:
                self._names[topic_id] = name
                followed.forget_rewritten(self._cache)
                self._tailing.add(name)
            followed = self._followed[name]
        return followed

    async def by_id(self, topic_id: UUID) -> BrokerTopic | None:
        """The topic of that id; None where there is none any more."""
        name = self._names.get(topic_id)
        if name is None and not self._is_known_as_absent(topic_id):
            for other in await self.names(internal=True):
                with suppress(TidelogError):  # one that can't be opened hides no other
                    await self.get(other)
            name = self._names.get(topic_id)
            if name is None:
                self._absent[topic_id] = self._lake.clock.elapsed_s()
        found = None if name is None else await self.get(name)
        with suppress(UnknownTopicError):
            return found if found is not None and found.id == topic_id else None
        return None

    def followed(self, wanted: str | UUID) -> BrokerTopic | None:
        """The topic of that name or id, where it is known already: nothing is looked up."""
        name = self._names.get(wanted) if isinstance(wanted, UUID) else wanted
        topic = None if name is None else self._followed.get(name)
        if topic is None or topic.log.state is None:
            return None
        with suppress(UnknownTopicError):
            return topic if isinstance(wanted, str) or topic.id == wanted else None
        return None

    def _is_known_as_absent(self, topic_id: UUID) -> bool:
        """Whether all topics were looked at for the id a moment ago: clients of a topic that is gone ask on and on."""
        now_s = self._lake.clock.elapsed_s()
        while self._absent:
            first, since_s = next(iter(self._absent.items()))
            if now_s - since_s < ABSENT_S and len(self._absent) <= MOST_ABSENT:
                break
            del self._absent[first]
        return topic_id in self._absent

    async def of(self, wanted: str | UUID) -> BrokerTopic | None:
        """The topic of that name or id, as `get` and `by_id`."""
        return await (self.by_id(wanted) if isinstance(wanted, UUID) else self.get(wanted))

    async def find(self, wanted: str | UUID) -> BrokerTopic:
        """The topic of that name or id. Raises `UnknownTopicError`, `UnknownTopicIdError`, and as `get`."""
        topic = await self.of(wanted)
        if topic is None and isinstance(wanted, UUID):
            raise UnknownTopicIdError(f"There is no topic of the id {wanted}.")
        if topic is None:
            raise unknown_topic(str(wanted))
        return topic

    async def names(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted."""
        return await self._blocking(self._lake.topics, internal=internal)

    def known(self, name: str) -> TopicState | None:
        """What is known of a topic that is followed; None where nothing is. For any thread."""
        followed = self._followed.get(name)
        state = None if followed is None else followed.log.state
        return state if state is not None and state.exists else None

    def committed(self, name: str, partitions: Iterable[int] | None = None) -> None:
        """This process has committed to these partitions, None: to any.

        It wakes the requests that wait for them, before the store reports it.
        """
        found = self._followed.get(name)
        if found is not None:
            found.committed(partitions)

    async def look(self, name: str) -> None:
        """See the topic as it is in the store now, before the store reports it."""
        found = self._followed.get(name)
        if found is not None:
            await found.look()

    async def _look(self, topic: BrokerTopic) -> None:
        await self._blocking(topic.log.refresh)
        if self._followed.get(topic.name) is topic:
            self._changed(topic.name)

    def close(self) -> None:
        """Follow nothing any more."""
        self._closing = True
        self._tailing.wake()
        self._thread.join()
        self._tailing.close()

    def _follow(self) -> None:
        while not self._closing:
            for name in sorted(self._tailing.wait(None)):
                with self._rounds.round():
                    self._look_at(name)

    def _look_at(self, name: str) -> None:
        began_s, grew = self._lake.clock.elapsed_s(), True
        try:
            with suppress(TidelogError):  # the log keeps why, for the next request
                grew = self._followed[name].log.refresh()
        finally:
            self._tailing.looked(name, grew=grew, took_s=self._lake.clock.elapsed_s() - began_s)
        if grew:
            self._loop.call_soon_threadsafe(self._changed, name)

    def _changed(self, name: str) -> None:
        topic = self._followed[name]
        topic.forget_rewritten(self._cache)
        if topic.log.error is None:
            with suppress(UnknownTopicError):
                self._names[topic.id] = name
        topic.looked()
