"""The group side of a consumer: a thread of its own keeps the membership alive and commits in the background."""

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from tidelog.clients.consumer.assignment import TopicPartitionKey
from tidelog.clients.consumer.commits import Committer, Offsets, as_partitions, commit_failed, no_offset
from tidelog.clients.consumer.group_wakeup import GroupWakeup
from tidelog.clients.consumer.shared import ConsumerShared
from tidelog.clients.consumer.subscription import Topics, TopicSelection
from tidelog.clients.open_lake import LOGGER
from tidelog.clients.settings import ConsumerSettings
from tidelog.clients.values.errors import KafkaError, KafkaException, kafka_error
from tidelog.clients.values.partitions import ConsumerGroupMetadata, TopicPartition
from tidelog.groups.member.events import Assigned, Failed, Lost, MemberConfig, ModernConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.member.modern import ModernMembership
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import MaxPollExceededError, TidelogError
from tidelog.transactions.ports import GroupIdentity


@dataclass(frozen=True, slots=True)
class CommitDone:
    """A commit in the background is over: what `on_commit` gets."""

    error: KafkaError | None
    partitions: list[TopicPartition]


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error of no partition: `error_cb`'s, or (`deliver`) a message of its own."""

    error: KafkaError
    deliver: bool


def _not_available(topic: str, error: KafkaError) -> Trouble:
    """That a topic of the subscription can't be read, in librdkafka's words and ours."""
    text = f"Subscribed topic not available: {topic}: {error.str()}"
    return Trouble(KafkaError(error.code(), text, retriable=error.retriable()), deliver=True)


@dataclass(frozen=True, slots=True)
class Joined:
    """The next event assigns partitions to this consumer as this member."""

    metadata: ConsumerGroupMetadata


@dataclass(frozen=True, slots=True)
class StatisticsDue:
    """It is time to call `stats_cb`."""


GroupEvent: TypeAlias = Joined | Revoke | Assigned | Lost | CommitDone | Trouble | StatisticsDue


class GroupSide:
    """One consumer's part in its group. Events go to `report`, in order; the thread starts with the first need of it.

    Methods may be called from any thread; the membership is touched by the thread alone.
    """

    def __init__(self, shared: ConsumerShared, report: Callable[[GroupEvent], None]) -> None:
        self._lake, self._settings = shared.lake, shared.settings
        self._report = report
        self.log = GroupLog(shared.lake)
        self.committer = Committer(shared, self.log, self.identity, self.owned)
        self._membership: Membership | ModernMembership | None = None
        self._told_generation = -1
        self._topics: Topics | None = None
        self._commands: deque[Callable[[], None]] = deque()
        # The member that the application reads as, by the events that it got: by the time it learns of a loss, the
        # thread may be a member again, and what was read before must not pass for that member's.
        self.reads_as: ConsumerGroupMetadata | None = None
        self._wakeup = GroupWakeup(shared.lake.storage, shared.lake.clock)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopping = False
        self._polled = False
        self.is_polling = False
        self._wants_poll = False
        self._reported_trouble = ""
        self._commit_s = float("inf")
        self._fatal: KafkaError | None = None

    # --- what the consumer asks ----------------------------------------------------------------------------

    @property
    def member_id(self) -> str | None:
        """The member's id in the group, None outside."""
        return (self._membership.member_id or None) if self._membership is not None else None

    def metadata(self) -> ConsumerGroupMetadata:
        """The member that the application reads as: as of the last assignment that a poll gave it."""
        return self.reads_as or ConsumerGroupMetadata(
            self._settings.group_id, group_instance_id=self._settings.group_instance_id
        )

    @property
    def fatal(self) -> KafkaError | None:
        """Why the consumer can't go on, for good; None while it can."""
        membership = self._membership
        if membership is not None and membership.fenced is not None:
            self._fatal = kafka_error(membership.fenced)
        return self._fatal

    def require_able(self) -> None:
        """Refuse what a consumer that can't go on is asked for. Raises KafkaException, fatal."""
        if self.fatal is not None:
            raise KafkaException(self.fatal)

    def identity(self) -> GroupIdentity | None:
        """The member to commit as; None for a consumer without a subscription.

        Raises `UnknownMemberError`, `FencedInstanceError`.
        """
        return None if self._membership is None else self._membership.identity()

    def owned(self) -> frozenset[TopicPartitionKey] | None:
        """What the group gave this consumer; None for one without a subscription."""
        return None if self._membership is None else self._membership.owned

    def polled(self) -> None:
        """The application polls."""
        self._polled = True
        if self._wants_poll:
            self._wants_poll = False
            self._wakeup.wake()

    def subscribe(self, subscription: TopicSelection) -> None:
        """Be a member with this subscription. Raises tidelog's errors."""
        config = member_config(self._settings)
        interval_ms = self._settings.topic_metadata_refresh_interval_ms
        topics = Topics(
            self._lake,
            subscription,
            -1.0 if interval_ms < 0 else interval_ms / 1000,
            self._settings.allow_auto_create_topics,
        )

        def begin() -> None:
            self._topics = topics
            if self._membership is None:
                self._membership = self._as_configured(config)

        self._do(begin)

    def _as_configured(self, config: MemberConfig | ModernConfig) -> Membership | ModernMembership:
        log, leases, clock, ids = self.log, Leases(self._lake.storage), self._lake.clock, self._lake.ids

        def counts(names: Iterable[str]) -> Mapping[str, int]:
            return {} if self._topics is None else self._topics.counts(names)

        def assignable(names: Iterable[str]) -> Mapping[str, AssignableTopic | None]:
            return dict.fromkeys(names) if self._topics is None else self._topics.assignable(names)

        if isinstance(config, ModernConfig):
            return ModernMembership(log, leases, assignable, config, clock=clock, ids=ids)
        return Membership(log, leases, counts, config, clock=clock, ids=ids, assignable=assignable)

    def revoked(self) -> None:
        """The application gave up what a `Revoke` named."""

        def go_on() -> None:
            if self._membership is not None:
                self._membership.revoked()

        self._do(go_on)

    def leave(self) -> None:
        """Be no member any more; returns when the group knows."""
        done: Future[None] = Future()
        self.reads_as = None

        def go() -> None:
            membership, self._membership, self._topics = self._membership, None, None
            self._wakeup.follow(None)
            try:
                if membership is not None:
                    membership.leave()
            except TidelogError as e:
                self._warn(e)  # it is out of the group when its session is over
            finally:
                done.set_result(None)

        if self._thread is not None:
            self._do(go)
            done.result()

    def commit_regularly(self) -> None:
        """Commit what is stored every `auto.commit.interval.ms`, if the settings say so."""
        if self._settings.enable_auto_commit and self._settings.auto_commit_interval_ms and self._thread is None:
            self._do(lambda: None)

    def halt(self) -> None:
        """Have the thread end, once it has executed its commands."""
        self._stopping = True
        self._wakeup.wake()

    def join(self) -> None:
        """Wait for the thread's end and give back what it held."""
        if self._thread is not None:
            self._thread.join()
        self._wakeup.close()

    # --- the thread ----------------------------------------------------------------------------------------

    def _do(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        self._wakeup.wake()
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tidelog-group", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            self._go_on()
        except Exception as e:
            self._report(
                Trouble(KafkaError(KafkaError._CRIT_SYS_RESOURCE, f"The consumer broke: {e!r}", fatal=True), True)
            )
            raise

    def _go_on(self) -> None:
        interval_s = self._settings.auto_commit_interval_ms / 1000
        regular = self._settings.enable_auto_commit and interval_s > 0
        self._commit_s = self._now_s() + interval_s if regular else float("inf")
        while True:
            while self._commands:
                self._commands.popleft()()
            if self._stopping:
                return
            try:
                self._step()
            except TidelogError as e:
                self._trouble(e)
                self._wakeup.wait(1.0)
            if self._now_s() >= self._commit_s:
                self._commit_s = self._now_s() + interval_s
                self.commit_and_report(None)
            self._wait()

    def _wait(self) -> None:
        """Wait until something is due, and wake the membership when its group's log has grown meanwhile."""
        grown = self._wakeup.wait(self._due_s())
        if self._membership is not None:
            self._membership.watched = self._wakeup.is_notified
            if grown:
                self._membership.wake()

    def _now_s(self) -> float:
        return self._lake.clock.elapsed_s()

    def _due_s(self) -> float | None:
        now_s = self._now_s()
        due_s = self._commit_s - now_s
        if self._membership is not None and self._topics is not None:
            due_s = min(due_s, self._membership.due_s(), self._topics.due_s(now_s))
        if self._commands or due_s <= 0:
            return 0.0
        return None if due_s == float("inf") else due_s

    def _step(self) -> None:
        membership, topics = self._membership, self._topics
        if membership is None or topics is None:
            return
        now_s = self._now_s()
        if not topics.due_s(now_s):
            missing, broken = topics.missing, topics.broken
            membership.subscribe(topics.look(now_s))
            for name in sorted(topics.missing - missing):
                self._report(_not_available(name, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
            for name in sorted(topics.broken.keys() - broken.keys()):
                self._report(_not_available(name, kafka_error(topics.broken[name])))
        if self._polled or self.is_polling:
            self._polled = False
            membership.polled()
        for event in membership.step():
            if isinstance(event, Failed):
                self._report(Trouble(kafka_error(event.error, fatal=event.fatal), deliver=True))
                continue
            if isinstance(event, Lost):
                self._lost(event)
            if isinstance(event, Assigned) and membership.generation >= 0:
                self._joined(membership)
            self._report(event)
        if isinstance(membership, ModernMembership) and membership.generation not in (-1, self._told_generation):
            self._joined(membership)  # in another epoch with the same partitions
        if membership.member_id:
            self._wakeup.follow(self.log.table(self._settings.group_id))
        if membership.trouble is None:
            self._reported_trouble = ""
        else:
            self._trouble(membership.trouble)

    def _joined(self, membership: Membership | ModernMembership) -> None:
        self._told_generation = membership.generation
        self._report(Joined(self._as_member(membership)))

    def _as_member(self, membership: Membership | ModernMembership) -> ConsumerGroupMetadata:
        settings = self._settings
        return ConsumerGroupMetadata(
            settings.group_id, membership.generation, membership.member_id, settings.group_instance_id
        )

    def _lost(self, event: Lost) -> None:
        """See that nothing of these partitions is committed, also not as a member of a later generation."""
        self.committer.forfeit(event.partitions)
        if isinstance(event.error, MaxPollExceededError):
            self._wants_poll = True
            self._report(Trouble(KafkaError(KafkaError._MAX_POLL_EXCEEDED, str(event.error)), deliver=True))

    def _trouble(self, error: TidelogError) -> None:
        """Report an error that the membership goes on after, once."""
        if str(error) != self._reported_trouble:
            self._reported_trouble = str(error)
            self._report(Trouble(kafka_error(error), deliver=not error.retriable))

    # --- commits -------------------------------------------------------------------------------------------

    def commit(self, wanted: Offsets | None, *, asynchronous: bool) -> list[TopicPartition] | None:
        """Commit offsets, or (None) what is stored: in the background, or returning what was committed.

        Raises tidelog's errors and KafkaException.
        """
        self.require_able()
        if wanted is not None:
            self.committer.require_assigned(wanted)
        if asynchronous:
            taken = self.committer.stored() if wanted is None else wanted
            if taken:
                self._do(lambda: self.commit_and_report(taken))
                return None
        elif done := self.committer.commit(wanted):
            return as_partitions(done)
        self.require_able()
        if not asynchronous:
            raise KafkaException(no_offset())
        self._report(CommitDone(no_offset(), []))
        return None

    def commit_and_report(self, offsets: Offsets | None, places: Iterable[TopicPartitionKey] | None = None) -> None:
        """Commit now, what is stored (of some places) where `offsets` is None, and report how it went: never raises."""
        wanted = self.committer.stored(places) if offsets is None else offsets
        if not wanted:
            return
        try:
            self._report(CommitDone(None, as_partitions(self.committer.commit(offsets, places))))
        except TidelogError as e:
            error = commit_failed(e)
            partitions = as_partitions(wanted)
            for one in partitions:
                one.error = error
            self._report(CommitDone(error, partitions))
            if self._settings.on_commit is None:
                self._warn(e)

    def _warn(self, error: TidelogError) -> None:
        (self._settings.logger or LOGGER).warning("Group %s: %s", self._settings.group_id, error)


def member_config(settings: ConsumerSettings) -> MemberConfig | ModernConfig:
    """A consumer's part in its group, by the protocol that it is configured with. Raises tidelog's errors."""
    host = socket.gethostname()
    if settings.group_protocol == "consumer":
        return ModernConfig(
            group_id=settings.group_id,
            client_id=settings.client_id,
            host=host,
            instance_id=settings.group_instance_id,
            assignor=settings.group_remote_assignor,
            max_poll_interval_ms=settings.max_poll_interval_ms,
        )
    return MemberConfig(
        group_id=settings.group_id,
        client_id=settings.client_id,
        host=host,
        instance_id=settings.group_instance_id,
        strategies=settings.assignment_strategy,
        session_timeout_ms=settings.session_timeout_ms,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        max_poll_interval_ms=settings.max_poll_interval_ms,
    )
