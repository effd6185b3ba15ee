"""Fetch sessions: a consumer of many partitions names what changed since its last request, and gets what did.

Pure rules over values, in the memory of one broker: a session that is lost is begun again by the client.
Source: KIP-227, and `FetchSession` of Kafka 4.2.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tidelog.broker.fetch.requests import FINAL_EPOCH, INITIAL_EPOCH, Asked, FetchRequest, Key
from tidelog.broker.wire.fetch_answer import PartitionAnswer
from tidelog.log.base.kafka_codes import KafkaCode

SESSION_ID_NOT_FOUND: Final[int] = KafkaCode.FETCH_SESSION_ID_NOT_FOUND
INVALID_SESSION_EPOCH: Final[int] = KafkaCode.INVALID_FETCH_SESSION_EPOCH
SESSION_TOPIC_ID_ERROR: Final[int] = KafkaCode.FETCH_SESSION_TOPIC_ID_ERROR
# Kafka's max.incremental.fetch.session.cache.slots, and how long a session is safe from others.
MOST_SESSIONS: Final = 1000
EVICTION_S: Final = 120.0
# In all sessions together: each takes some 200 bytes.
MOST_PARTITIONS: Final = 500_000


@dataclass(slots=True)
class Tracked:
    """A partition of a session: what is asked of it, and what the client knows of it."""

    asked: Asked
    high_watermark: int = -1
    log_start_offset: int = -1

    def is_news(self, answer: PartitionAnswer) -> bool:
        """Whether the answer has news for the client, which knows them from now on."""
        news = (
            bool(answer.records)
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.preferred_read_replica != -1
            or answer.error_code != 0
        )
        # Once an error has passed, the client gets to see the partition again, whatever its state.
        self.high_watermark = answer.high_watermark if answer.error_code == 0 else -1
        self.log_start_offset = answer.log_start_offset
        return news


@dataclass(slots=True, eq=False)
class IncrementalSession:
    """A session; `size`: its partitions, by which it is judged, those that a request adds while it is busy included."""

    id: int
    by_ids: bool
    began_s: float
    partitions: dict[Key, Tracked]
    epoch: int = 1
    used_s: float = 0.0
    size: int = 0
    owner: Hashable = None
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """What a request amounts to. `asked`: in the order in which partitions are served.

    `error_code`: refused as a whole, 0 if not. `epoch`: what its session's must still be when it is answered.
    """

    asked: Mapping[Key, Asked] = field(default_factory=dict)
    error_code: int = 0
    session: IncrementalSession | None = None
    epoch: int = 0
    begins_session: bool = False
    by_ids: bool = False
    owner: Hashable = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a client gets: the answers about these `keys`. `tracked`: the partitions of a session that begins."""

    keys: Iterable[Key]
    tracked: dict[Key, Tracked] = field(default_factory=dict)


class Sessions:
    """The sessions of a broker. `new_id` gives a number from 1 to 2^31 - 1, at random."""

    def __init__(
        self,
        new_id: Callable[[], int],
        most: int = MOST_SESSIONS,
        eviction_s: float = EVICTION_S,
        most_partitions: int = MOST_PARTITIONS,
    ) -> None:
        self._new_id = new_id
        self._most = most
        self._eviction_s = eviction_s
        self._most_partitions = most_partitions
        # By last use, the oldest first.
        self._sessions: dict[int, IncrementalSession] = {}
        self._partitions = 0
        self._owned: dict[Hashable, set[IncrementalSession]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions have together."""
        return self._partitions

    def begin(self, request: FetchRequest, now_s: float, owner: Hashable = None) -> Fetch:
        """Take a request: note what it changes in its session, and say what is to be answered."""
        fetch = self.admit(request, now_s, owner)
        return fetch if fetch.session is None else self.changed(change(fetch, request))

    def asked(self, request: FetchRequest) -> Mapping[Key, Asked] | None:
        """What a request asks for in all, in the order in which partitions are served; nothing is changed by it.

        None for one that begins or ends a session, changes which partitions its session has, or would be refused.
        """
        if request.epoch == FINAL_EPOCH:
            return None if request.session_id else request.asked
        session = self._sessions.get(request.session_id)
        if session is None or request.epoch == INITIAL_EPOCH or session.epoch != request.epoch or session.is_busy:
            return None
        if (
            session.by_ids != request.by_ids
            or request.forgotten
            or not request.asked.keys() <= session.partitions.keys()
        ):
            return None
        asked = {key: tracked.asked for key, tracked in session.partitions.items()}
        asked.update(request.asked)
        return asked

    def admit(self, request: FetchRequest, now_s: float, owner: Hashable = None) -> Fetch:
        """Whether a request may go on, and what it asks for; `change` says that of one in a session.

        The session is busy until `changed`. One that would take all sessions beyond their bound is given up: its client
        begins again by naming all that it wants. `owner`: the connection that the session lasts as long as.
        """
        if request.epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id:
                self._remove(self._sessions.get(request.session_id))
            begins = request.epoch == INITIAL_EPOCH
            return Fetch(request.asked, begins_session=begins, by_ids=request.by_ids, owner=owner)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Fetch(error_code=SESSION_ID_NOT_FOUND)
        if session.epoch != request.epoch or session.is_busy:
            return Fetch(error_code=INVALID_SESSION_EPOCH)
        if session.by_ids != request.by_ids:
            return Fetch(error_code=SESSION_TOPIC_ID_ERROR)
        most = self._most_partitions - self._partitions + session.size
        if len(session.partitions) + _added(session, request, most - len(session.partitions)) > most:
            self._remove(session)
            return Fetch(error_code=SESSION_ID_NOT_FOUND)
        session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
        session.is_busy = True
        self._own(session, owner)
        self._touch(session, now_s, len(session.partitions) + len(request.asked))
        return Fetch(session=session, epoch=session.epoch, by_ids=request.by_ids, owner=owner)

    def changed(self, fetch: Fetch) -> Fetch:
        """The session has its partitions now, and is used by others again."""
        session = fetch.session
        assert session is not None
        session.is_busy = False
        if session.id in self._sessions:
            self._partitions += len(session.partitions) - session.size
            session.size = len(session.partitions)
        if not session.partitions:  # as Kafka does: nothing is left of it
            self._remove(session)
            return Fetch(by_ids=fetch.by_ids)
        return fetch

    def answered(
        self, fetch: Fetch, answers: Mapping[Key, PartitionAnswer], now_s: float
    ) -> tuple[int, int, Iterable[Key]]:
        """(error code, session id, which of the answers the client gets)."""
        if not self.tells(fetch):
            return INVALID_SESSION_EPOCH, 0, ()
        return 0, *self.told(fetch, tell(fetch, answers), now_s)

    def tells(self, fetch: Fetch) -> bool:
        """Whether a request may still be answered; its session is busy until `told`."""
        session = fetch.session
        if session is None:
            return True
        if session.epoch != fetch.epoch or session.is_busy:  # the client has gone on elsewhere
            return False
        session.is_busy = True
        return True

    def told(self, fetch: Fetch, told: Told, now_s: float) -> tuple[int, Iterable[Key]]:
        """(session id, which of the answers the client gets)."""
        if fetch.session is not None:
            fetch.session.is_busy = False
            return fetch.session.id, told.keys
        return (self._create(fetch, told, now_s) if fetch.begins_session else 0), told.keys

    def forget(self, owner: Hashable) -> None:
        """The sessions of a connection end with it."""
        for session in list(self._owned.get(owner, ())):
            self._remove(session)

    def _create(self, fetch: Fetch, told: Told, now_s: float) -> int:
        """A new session's id; 0 where there is no room for one."""
        if not self._has_room(len(told.tracked), now_s):
            return 0
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = session_id % (2**31 - 1) + 1
        session = IncrementalSession(session_id, fetch.by_ids, now_s, told.tracked)
        self._own(session, fetch.owner)
        self._touch(session, now_s, len(told.tracked))
        return session_id

    def _has_room(self, size: int, now_s: float) -> bool:
        """Whether a session of `size` partitions may begin; another one is given up for it where Kafka would do so.

        That is one that was not used for a while, or else the smallest of those that are smaller and not new.
        """
        if self._partitions + size > self._most_partitions:
            return False
        if len(self._sessions) < self._most:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now_s - oldest.used_s > self._eviction_s:
            self._remove(oldest)
            return True
        settled = (s for s in self._sessions.values() if s.size < size and now_s - s.began_s > self._eviction_s)
        smallest = min(settled, key=lambda s: (s.size, s.id), default=None)
        self._remove(smallest)
        return smallest is not None

    def _touch(self, session: IncrementalSession, now_s: float, size: int) -> None:
        owner = session.owner
        self._remove(session)
        session.used_s, session.size = now_s, size
        self._sessions[session.id] = session
        self._partitions += size
        self._own(session, owner)

    def _own(self, session: IncrementalSession, owner: Hashable) -> None:
        self._disown(session)
        session.owner = owner
        if owner is not None:
            self._owned.setdefault(owner, set()).add(session)

    def _disown(self, session: IncrementalSession) -> None:
        of_owner = self._owned.get(session.owner)
        if of_owner is not None:
            of_owner.discard(session)
            if not of_owner:
                del self._owned[session.owner]

    def _remove(self, session: IncrementalSession | None) -> None:
        if session is not None and self._sessions.pop(session.id, None) is not None:
            self._partitions -= session.size
            self._disown(session)


def change(fetch: Fetch, request: FetchRequest) -> Fetch:
    """Note what a request changes in its session, which is busy meanwhile; then what is to be answered."""
    session = fetch.session
    assert session is not None
    for key, asked in request.asked.items():
        partition = session.partitions.get(key)
        if partition is None:
            session.partitions[key] = Tracked(asked)
        else:
            partition.asked = asked
    for key in request.forgotten:
        session.partitions.pop(key, None)
    return replace(fetch, asked={key: tracked.asked for key, tracked in session.partitions.items()})


def tell(fetch: Fetch, answers: Mapping[Key, PartitionAnswer]) -> Told:
    """Which of the answers the client gets; in a session, those that are news."""
    session = fetch.session
    if session is not None:
        news = [key for key, answer in answers.items() if session.partitions[key].is_news(answer)]
        for key in news:  # what was served comes last the next time
            session.partitions[key] = session.partitions.pop(key)
        return Told(news)
    tracked = {}
    if fetch.begins_session:
        tracked = {key: Tracked(fetch.asked[key]) for key in answers}
        for key, answer in answers.items():
            tracked[key].is_news(answer)
    return Told(answers, tracked)


def _added(session: IncrementalSession, request: FetchRequest, most: int) -> int:
    """How many partitions a request adds; it may be no more than it names, which is all that counts below `most`."""
    if len(request.asked) <= most:
        return 0
    return sum(key not in session.partitions for key in request.asked)
