"""OffsetCommit, OffsetFetch and OffsetDelete: where groups go on.

Source: `OffsetMetadataManager`, `OffsetCommitRequest.json`, `OffsetFetchRequest.json` (kafka 4.2), KIP-211, KIP-447,
KIP-709, KIP-848.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.base.topics import BrokerTopic
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.errors import code_of
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, UnsupportedVersionError
from tidelog.groups.model import CommittedOffset, Decision, EpochGroup, GroupView, TopicPartition
from tidelog.groups.rules.members import check_group_id
from tidelog.groups.rules.offsets import check_member_epoch, decide_commit, delete_offsets
from tidelog.groups.store.offset_checks import check_values, placed
from tidelog.log.base.errors import TidelogError, UnknownPartitionError, UnstableOffsetError
from tidelog.transactions.ports import GroupIdentity

_NO_OFFSET: Final = -1
# The version of OffsetCommit, and of OffsetFetch, since which members of groups of the type consumer say their epochs.
_EPOCHS_SINCE: Final = 9

# {(topic's number in the request, partition): error code}
Codes: TypeAlias = dict[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A topic of a request, by its name or its id; `code`: why it can't be had."""

    name: str
    id: UUID | None
    topic: BrokerTopic | None
    code: int


class OffsetHandlers:
    """Groups' offsets."""

    def __init__(self, context: Context, coordinator: GroupCoordinator) -> None:
        self._blocking = context.blocking
        self._cluster = context.cluster
        self._topics = context.topics
        self._clock = context.clock
        self._coordinator = coordinator

    def handlers(self) -> Handlers:
        """By API."""
        return {
            ApiKey.OFFSET_COMMIT: self.commit,
            ApiKey.OFFSET_FETCH: self.fetch,
            ApiKey.OFFSET_DELETE: self.delete,
        }

    # --- committing ----------------------------------------------------------------------------------------

    async def commit(self, call: Call) -> Reply:
        """OffsetCommit: what can be committed is, all at once; a time of retention is not looked at (KIP-211)."""
        body, cluster_epoch = call.body, self._cluster().epoch
        topics = [await self._asked(one) for one in body.topics]
        codes = await self._committed(call, topics, cluster_epoch)
        return {
            "topics": [
                {
                    "name": asked.name,
                    "topic_id": asked.id,
                    "partitions": [
                        {"partition_index": p.partition_index, "error_code": codes.get((number, p.partition_index), 0)}
                        for p in topic.partitions
                    ],
                }
                for number, (topic, asked) in enumerate(zip(body.topics, topics, strict=True))
            ]
        }

    async def _committed(self, call: Call, topics: list[_Asked], cluster_epoch: int) -> Codes:
        body = call.body
        codes: Codes = {}
        wanted: dict[TopicPartition, CommittedOffset] = {}
        for number, (topic, asked) in enumerate(zip(body.topics, topics, strict=True)):
            for p in topic.partitions:
                epoch = getattr(p, "committed_leader_epoch", -1)
                offset = CommittedOffset(p.committed_offset, p.committed_metadata or "", epoch)
                if asked.topic is None:
                    codes[number, p.partition_index] = asked.code
                    continue
                place = asked.name, p.partition_index
                try:
                    wanted[place] = await self.placed(asked.topic, place, offset)
                except TidelogError as e:
                    codes[number, p.partition_index] = code_of(e)
        try:
            self._coordinator.require(body.group_id)
            if wanted:
                await self._commit(call, wanted, cluster_epoch)
        except TidelogError as e:
            for number, topic in enumerate(body.topics):
                codes |= {(number, p.partition_index): code_of(e) for p in topic.partitions}
        return codes

    async def _commit(self, call: Call, wanted: Mapping[TopicPartition, CommittedOffset], cluster_epoch: int) -> None:
        body = call.body
        group_id, member_id = body.group_id, body.member_id
        instance_id = getattr(body, "group_instance_id", None)
        committer = GroupIdentity(group_id, member_id, body.generation_id_or_member_epoch, instance_id)

        def rule(view: GroupView) -> Decision[None]:
            members = view.group.members if isinstance(view.group, EpochGroup) else {}
            member = members.get(member_id)
            says_epochs = member is not None and not member.is_classic and committer.generation >= 0
            if says_epochs and call.version < _EPOCHS_SINCE:
                raise UnsupportedVersionError(
                    f"A member of a group of the type consumer commits by version {_EPOCHS_SINCE} or later."
                )
            return decide_commit(view, committer, wanted)

        await self._coordinator.decisions.decide(group_id, rule, cluster_epoch)
        group = self._coordinator.groups().get(group_id)
        if member_id and group is not None:
            group.heard(member_id, self._clock.elapsed_s())

    async def placed(self, topic: BrokerTopic, place: TopicPartition, offset: CommittedOffset) -> CommittedOffset:
        """The offset, of the topic that has the name now. Raises why it can't be committed at all.

        Kafka takes any offset from 0: one past the end is for the consumer's `auto.offset.reset` to judge.
        """
        check_values({place: offset})
        try:
            return placed({place: offset}, lambda _: topic.state, past_end=True)[place]
        except UnknownPartitionError:  # it may have come by another broker a moment ago
            await topic.look()
            return placed({place: offset}, lambda _: topic.state, past_end=True)[place]

    async def _asked(self, topic: Any) -> _Asked:
        """A topic of a request."""
        topic_id = getattr(topic, "topic_id", None)
        name = getattr(topic, "name", None)
        try:
            facts = await self._topics.find(name if name is not None else topic_id or UUID(int=0))
        except TidelogError:  # there is none, or it can't be read
            missing = UNKNOWN_TOPIC_ID if name is None else UNKNOWN_TOPIC_OR_PARTITION
            return _Asked(name or "", topic_id, None, missing)
        return _Asked(facts.name, facts.id, facts, 0)

    # --- fetching ------------------------------------------------------------------------------------------

    async def fetch(self, call: Call) -> Reply:
        """OffsetFetch: of one group, or of several from version 8 on."""
        body = call.body
        stable = getattr(body, "require_stable", False)
        if call.version >= 8:
            return {"groups": [await self._fetched(one.group_id, one.topics, stable, one) for one in body.groups]}
        answer = await self._fetched(body.group_id, body.topics, stable)
        code = answer["error_code"]
        if code and call.version < 2:  # there is no field but the partitions' for it
            topics = [
                {"name": one.name, "partitions": [_unknown(p, code) for p in one.partition_indexes]}
                for one in body.topics
            ]
            return {"topics": topics}
        topics = [{name: value for name, value in one.items() if name != "topic_id"} for one in answer["topics"]]
        return {"topics": topics, "error_code": code}

    async def _fetched(
        self, group_id: str, topics: Iterable[Any] | None, stable: bool, asker: Any = None
    ) -> Mapping[str, Any]:
        try:
            self._coordinator.require(group_id)
            member = getattr(asker, "member_id", None), getattr(asker, "member_epoch", -1)
            view = await self._blocking(self._view, group_id, stable, *member)
            answered = await (self._all(view) if topics is None else self._some(view, topics, stable))
        except TidelogError as e:
            return {"group_id": group_id, "topics": [], "error_code": code_of(e)}
        return {"group_id": group_id, "topics": answered, "error_code": 0}

    def _check_asker(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Refuse a member of a group of the type consumer that is in another epoch: its partitions may be others'."""
        if member_id is None and epoch < 0:
            return
        group = self._coordinator.log.group(group_id)
        if isinstance(group, EpochGroup):
            check_member_epoch(group, member_id or "", epoch)

    def _view(self, group_id: str, stable: bool, member_id: str | None, epoch: int) -> GroupView:
        """The group's offsets, for a member where one asks. In a thread.

        Where only stable ones are wanted, transactions that had their time are ended before.
        """
        check_group_id(group_id)
        self._check_asker(group_id, member_id, epoch)
        log = self._coordinator.log
        if stable:
            try:
                return GroupView(offsets=log.stable_offsets(group_id))
            except UnstableOffsetError:  # those that wait are answered so, one by one
                pass
        return log.view(group_id)

    async def _all(self, view: GroupView) -> list[Mapping[str, Any]]:
        by_topic: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for (topic, partition), committed in sorted(view.offsets.items()):
            by_topic[topic].append(_known(partition, committed))
        answered: list[Mapping[str, Any]] = []
        for name, partitions in by_topic.items():
            found = await self._topics.get(name)
            if found is not None:
                answered.append({"name": name, "topic_id": found.id, "partitions": partitions})
        return answered

    async def _some(self, view: GroupView, topics: Iterable[Any], stable: bool) -> list[Mapping[str, Any]]:
        waiting = {place for _, place in view.pending} if stable else set()
        answered: list[Mapping[str, Any]] = []
        for topic in topics:
            asked = await self._asked(topic)
            code = asked.code if asked.code == UNKNOWN_TOPIC_ID else 0
            partitions = []
            for p in topic.partition_indexes:
                committed = view.offsets.get((asked.name, p))
                if (asked.name, p) in waiting:
                    partitions.append(_unknown(p, UnstableOffsetError.kafka_code))
                else:
                    partitions.append(_unknown(p, code) if committed is None else _known(p, committed))
            answered.append({"name": asked.name, "topic_id": asked.id, "partitions": partitions})
        return answered

    # --- deleting ------------------------------------------------------------------------------------------

    async def delete(self, call: Call) -> Reply:
        """OffsetDelete: of topics that no member subscribes to."""
        body = call.body
        wanted = [(one.name, p.partition_index) for one in body.topics for p in one.partitions]
        missing: set[TopicPartition] = set()
        for topic in body.topics:
            asked = await self._asked(topic)
            state = None if asked.topic is None else asked.topic.state
            known = range(0 if state is None else state.partitions)
            missing |= {(topic.name, p.partition_index) for p in topic.partitions if p.partition_index not in known}
        there = [place for place in wanted if place not in missing]
        try:
            self._coordinator.require(body.group_id)
            refused = await self._coordinator.decisions.decide(
                body.group_id, lambda view: delete_offsets(view, body.group_id, there)
            )
        except TidelogError as e:
            return {"error_code": code_of(e), "topics": []}

        def code(place: TopicPartition) -> int:
            if place in missing:
                return UNKNOWN_TOPIC_OR_PARTITION
            why = refused.get(place)
            return 0 if why is None else code_of(why)

        return {
            "error_code": 0,
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {"partition_index": p.partition_index, "error_code": code((topic.name, p.partition_index))}
                        for p in topic.partitions
                    ],
                }
                for topic in body.topics
            ],
        }


def _known(partition: int, committed: CommittedOffset) -> Mapping[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": committed.offset,
        "committed_leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
        "error_code": 0,
    }


def _unknown(partition: int, code: int) -> Mapping[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": _NO_OFFSET,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": code,
    }
