"""What processes do: produce, and consume as members of the group, as a careful at-least-once program does."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from groups_sim_history import Consumer, Place
from groups_sim_world import GROUP, HEARTBEAT_MS, PATIENCE_MS, SESSION_MS, TOPIC, Program

from tidelog.groups.member.events import Assigned, Event, Failed, Lost, MemberConfig, ModernConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.member.modern import ModernMembership
from tidelog.groups.model import CommittedOffset
from tidelog.groups.rules.modern.topics import AssignableTopic, assignable
from tidelog.log.base.errors import (
    ContendedLogError,
    FencedInstanceError,
    IllegalGenerationError,
    OutcomeUnknownError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    StorageUnavailableError,
    UnknownMemberError,
)

TROUBLED = (StorageUnavailableError, OutcomeUnknownError, ContendedLogError)
FENCED = (UnknownMemberError, IllegalGenerationError, FencedInstanceError, RebalanceInProgressError)
FENCED = (*FENCED, StaleMemberEpochError)


def producer(program: Program) -> None:
    """Appends records now and then; half way it gives the topic one more partition."""
    world = program.world
    topic = program.until_it_answers(lambda: program.lake.topic(TOPIC))
    grown = False
    while not world.ending:
        program.pause(world.rng.uniform(3, 9))
        if not grown and world.scheduler.now > world.plan.duration_s / 2 and world.rng.random() < 0.5:
            count = world.partitions + 1
            with suppress(*TROUBLED):
                program.lake.alter_topic(TOPIC, partitions=count)
                world.partitions, grown = count, True
        with suppress(*TROUBLED):
            topic.append(world.records(world.rng.choice([1, 2, 3])))


def consumer(program: Program) -> None:
    """Consumes until the world ends, or it is replaced, or it has had enough and leaves."""
    _Consuming(program).run()


class _Consuming:
    def __init__(self, program: Program) -> None:
        world = program.world
        self._program = program
        self._world = world
        self._history = world.history
        self._me = Consumer(program.process, program.instance_id)
        self._history.consumers.append(self._me)
        self._positions: dict[Place, int] = {}
        self._unread: set[Place] = set()  # assigned, and the committed offset not fetched yet
        self._topic = program.until_it_answers(lambda: program.lake.topic(TOPIC))
        self._membership = self._modern() if program.modern else self._classic()
        self._me.membership = self._membership

    def _classic(self) -> Membership:
        program, plan = self._program, self._world.plan
        return Membership(
            program.log, Leases(program.storage), self._partition_counts,
            MemberConfig(
                group_id=GROUP, client_id=program.name, instance_id=program.instance_id,
                strategies=(plan.strategy,), session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=HEARTBEAT_MS, max_poll_interval_ms=PATIENCE_MS,
            ),
            clock=program.clock, ids=program.ids, assignable=self._assignable,
        )  # fmt: skip

    def _modern(self) -> ModernMembership:
        program = self._program
        return ModernMembership(
            program.log, Leases(program.storage), self._assignable,
            ModernConfig(
                group_id=GROUP, client_id=program.name, instance_id=program.instance_id,
                max_poll_interval_ms=PATIENCE_MS,
            ),
            clock=program.clock, ids=program.ids,
        )  # fmt: skip

    def run(self) -> None:
        world, membership = self._world, self._membership
        membership.subscribe([TOPIC])
        leaves_at = world.scheduler.now + world.rng.uniform(5, 150)
        poll_at = world.scheduler.now
        while not (self._me.failed or self._done()):
            for event in membership.step():
                self._hear(event)
            if world.scheduler.now >= poll_at:
                poll_at = world.scheduler.now + world.rng.uniform(0.2, 1.8) * world.plan.pause_s
                self._poll()
            if world.scheduler.now > leaves_at and not world.settling:
                self._leave()
                return
            wait_s = min(membership.due_s(), max(0.0, poll_at - world.scheduler.now))
            self._program.pause(max(0.001, wait_s))

    def _partition_counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        return {topic: self._program.lake.topic(topic).target().partitions for topic in topics}

    def _assignable(self, topics: Iterable[str]) -> Mapping[str, AssignableTopic | None]:
        return assignable({topic: self._program.lake.peek(topic) for topic in topics})

    def _done(self) -> bool:
        """Everything is read and committed, and the group is at rest."""
        ends = {} if not self._world.ending else self._world.ends
        return bool(ends) and all(self._history.committed.get(place, 0) >= end for place, end in ends.items())

    def _poll(self) -> None:
        """Do some work on what is owned, and mostly commit it."""
        self._membership.polled()
        with suppress(*TROUBLED):
            self._fetch_positions()
            for place in sorted(self._positions):
                self._work(place)
            if self._world.rng.random() < 0.7 or self._world.ending:
                self._commit()

    def _hear(self, event: Event) -> None:
        history, me = self._history, self._me
        match event:
            case Assigned(partitions, owned):
                self._positions = {place: at for place, at in self._positions.items() if place in owned}
                self._unread = {place for place in self._unread if place in owned} | partitions
                history.assigned(me, self._membership.member_id, self._membership.generation, owned)
            case Revoke(partitions):
                with suppress(*TROUBLED):
                    self._commit()
                if self._world.rng.random() < 0.1:
                    self._program.pause(self._world.rng.uniform(0, 10))  # a slow callback
                self._give_up(partitions)
                self._membership.revoked()
            case Lost(partitions):
                history.counts["lost"] += 1
                self._give_up(partitions)
            case Failed(_, fatal):
                history.counts["failed"] += 1
                me.failed = fatal

    def _give_up(self, partitions: frozenset[Place]) -> None:
        for place in partitions:
            self._positions.pop(place, None)
        self._unread -= partitions
        self._history.gave_up(self._me, partitions)

    def _fetch_positions(self) -> None:
        if self._unread:
            committed = self._program.log.offsets(GROUP)
            found = {place: committed[place].offset if place in committed else 0 for place in sorted(self._unread)}
            self._positions.update(found)
            self._unread.clear()

    def _work(self, place: Place) -> None:
        at = self._positions[place]
        start, end = self._topic.offsets()[place[1]]
        if place not in self._positions or at >= end:
            return
        for batch in self._topic.read(place[1], max(at, start), min(end, at + 5)):
            for offset, value in zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True):
                self._history.process_record(place, offset, value.decode())
                self._positions[place] = offset + 1

    def _commit(self) -> None:
        """Commit what is processed; a refusal means that others have it, or that the next assignment tells."""
        if not self._positions:
            return
        offsets = {place: CommittedOffset(at) for place, at in self._positions.items()}
        try:
            who = self._membership.identity()
            self._program.log.commit_offsets(GROUP, offsets, who.member_id, who.generation, who.instance_id)
        except FENCED as e:
            self._history.counts[f"commit refused: {type(e).__name__}"] += 1

    def _leave(self) -> None:
        self._history.counts["left"] += 1
        with suppress(*TROUBLED):
            self._commit()
        self._history.gave_up(self._me, self._me.owned)
        self._me.left = True
        with suppress(*TROUBLED):
            self._membership.leave()
