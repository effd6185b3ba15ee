"""Groups whose members are of both protocols, over the pure rules: random runs in which groups turn to and fro."""

from dataclasses import dataclass
from typing import Any

from support.heartbeating import Client, Heard, RandomGroup, check_owners, topics

from tidelog.groups.consumer_protocol import Subscription, decode_assignment, encode_subscription
from tidelog.groups.member.leader import share_out, topics_of
from tidelog.groups.model import ConsumerGroup, Group, GroupPhase, Member, TopicPartition
from tidelog.groups.rules.members import check_generation, check_member, join, leave, sync
from tidelog.groups.rules.migration import seen_by
from tidelog.groups.rules.modern.joining import join_among_modern
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.log.base.errors import TidelogError


@dataclass
class Classic:
    """A consumer by the classic protocol: what it owns, in which generation, and whether it is to join."""

    member_id: str
    subscription: frozenset[str]
    cooperative: bool
    generation: int = -1
    owned: frozenset[TopicPartition] = frozenset()
    known: bool = False
    joins: bool = True
    waits: int | None = None  # for its share, in this generation
    among_modern: bool = False  # whether it joined so

    @property
    def epoch(self) -> int:
        """What it commits with."""
        return self.generation

    def as_member(self) -> Member:
        """What it says when it joins."""
        said = Subscription(tuple(sorted(self.subscription)), None, tuple(sorted(self.owned)), self.generation)
        assignor = "cooperative-sticky" if self.cooperative else "range"
        return Member(self.member_id, "", "", 1000, 1000, ((assignor, encode_subscription(said)),))

    def lose(self) -> None:
        """It is no member, and owns nothing."""
        self.generation, self.owned, self.known, self.joins, self.waits = -1, frozenset(), False, True, None

    def take(self, share: frozenset[TopicPartition], generation: int) -> None:
        """It has its share; after it gave something up, it joins again where others get that by a round."""
        gone = self.owned - share
        self.owned, self.generation, self.waits = share, generation, None
        self.joins = self.cooperative and bool(gone)


class MixedGroup(RandomGroup):
    """A run of clients of both protocols. `downs` and `ups`: how often the group has changed its type with members."""

    def __init__(self, seed: int, joint: bool = False) -> None:
        super().__init__(seed, joint=joint)
        self.heard = Heard(topics(t=5, u=3, v=1))
        self.cooperative = self.random.random() < 0.5
        self.ups = self.downs = 0
        self.joined: Classic | None = None

    # --- what happens --------------------------------------------------------------------------------------

    def step(self) -> None:
        before = self.heard.view.group
        able = [
            one for one in self._classic() if one.generation >= 0 and self.heard.commits(one.member_id, one.generation)
        ]
        said = {one.member_id: one.generation for one in able}
        self.joined = None
        super().step()
        after = self.heard.view.group
        if type(before) is not type(after):  # turning fences no member but the one that joined in that step
            for client in able:
                stays = client.member_id in self.clients and client is not self.joined
                if stays and client.generation == said[client.member_id]:
                    assert self.heard.commits(client.member_id, client.generation), client
        if before is not None and after is not None and before.members and after.members:
            self.ups += isinstance(before, Group) and isinstance(after, ConsumerGroup)
            self.downs += isinstance(before, ConsumerGroup) and isinstance(after, Group)

    def _classic(self) -> list[Classic]:
        every: list[Any] = list(self.clients.values())
        return [client for client in every if isinstance(client, Classic)]

    def begin(self) -> None:
        if self.random.random() < 0.5:
            super().begin()
            return
        self._number += 1
        name = f"m{self._number}"
        self.clients[name] = Classic(name, self.subscription(), self.cooperative)  # type: ignore[assignment]

    def resubscribe(self) -> None:
        client: Any = self.random.choice(list(self.clients.values()))
        client.subscription = self.subscription()
        if isinstance(client, Classic):
            client.joins = True

    def leave(self) -> None:
        name = self.random.choice(list(self.clients))
        if isinstance(self.clients[name], Classic):
            client = self.clients.pop(name)
            self._decided(lambda view: leave(view, "g", client.member_id, now_ms=9))
            return
        # One of the consumer protocol, which `super` picks.
        others = {other: one for other, one in self.clients.items() if isinstance(one, Client)}
        kept, self.clients = {k: v for k, v in self.clients.items() if k not in others}, others
        super().leave()
        self.clients |= kept

    def grow(self) -> None:
        name = self.random.choice(["t", "u", "v"])
        facts = self.heard.topics[name]
        assert facts is not None
        self.heard.topics[name] = AssignableTopic(facts.topic_id, facts.partitions + 1)

    def beat(self, client: Any, *, loses: bool = False) -> None:
        if isinstance(client, Classic):
            self._beat_classic(client, loses)
        else:
            super().beat(client, loses=loses)

    def _beat_classic(self, client: Classic, loses: bool) -> None:
        try:
            if client.joins:
                self._join(client, loses)
            elif client.waits is not None:
                self._sync(client)
            else:
                self._heartbeat(client)
        except TidelogError:
            client.lose()

    def _decided(self, rule: Any) -> Any:
        try:
            return self.heard.decide(rule)
        except TidelogError:
            return None

    def _join(self, client: Classic, loses: bool) -> None:
        self.joined = client
        kept = client.owned if client.cooperative else frozenset()
        client.owned = frozenset(place for place in kept if place[0] in client.subscription)
        among = self._is_modern
        if among:
            group = self.heard.decide(
                lambda view: join_among_modern(view, self.heard.topics, "g", client.as_member(), rejoins=client.known)
            )
        else:
            group = self.heard.decide(lambda view: join(view, "g", client.as_member(), rejoins=client.known, now_ms=9))
        if loses:
            return
        client.known, client.joins, client.among_modern = True, False, among
        client.waits = group.generation + (group.phase is GroupPhase.PREPARING)
        if among:
            client.generation = group.generation

    @property
    def _is_modern(self) -> bool:
        group = self.heard.view.group
        return isinstance(group, ConsumerGroup) and bool(group.members)

    def _seen(self, client: Classic, *, joined: bool = False) -> Group:
        group = self.heard.view.group or Group("g")
        check_member(group, client.member_id)
        if isinstance(group, Group):
            return group
        member = group.members[client.member_id]
        assert member.is_classic
        return seen_by(group, member, joined=joined)

    def _sync(self, client: Classic) -> None:
        group = self._seen(client, joined=client.among_modern)
        if client.among_modern is not self._is_modern or group.generation < (client.waits or 0):
            in_round = not self._is_modern and group.phase is GroupPhase.PREPARING
            client.joins = not (in_round and group.members[client.member_id].joined)
            return
        check_generation(group, client.waits or 0)
        client.generation = group.generation
        if group.phase is GroupPhase.PREPARING:
            client.joins = True
        elif group.phase is GroupPhase.STABLE:
            self._take(client, group)
        elif group.leader == client.member_id:
            counts = {name: self.heard.topics[name].partitions for name in topics_of(group)}  # type: ignore[union-attr]
            shares = share_out(group, counts)
            self.heard.decide(lambda view: sync(view, "g", client.member_id, group.generation, assignments=shares))
            self._take(client, self._seen(client))

    def _take(self, client: Classic, group: Group) -> None:
        share = frozenset(decode_assignment(group.members[client.member_id].assignment).partitions)
        client.take(frozenset(place for place in share if place[0] in client.subscription), group.generation)

    def _heartbeat(self, client: Classic) -> None:
        group = self._seen(client)
        check_generation(group, client.generation)
        counts = {name: facts.partitions for name, facts in self.heard.topics.items() if facts is not None}
        grown = not self._is_modern and group.leader == client.member_id and self._grown(group, counts)
        client.joins = group.phase is GroupPhase.PREPARING or grown

    def _grown(self, group: Group, counts: dict[str, int]) -> bool:
        if group.phase is not GroupPhase.STABLE:
            return False
        shared = {place for one in group.members.values() for place in decode_assignment(one.assignment).partitions}
        return shared != {(name, number) for name in topics_of(group) for number in range(counts[name])}

    # --- what must hold ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Of clients that could commit, no two own one partition."""
        check_owners(self.heard, [(one, owned(one)) for one in [*self.clients.values(), *self.frozen]])

    def settle(self) -> None:
        """In quiet times all partitions find one owner each, in a group of the type that its members make it."""
        self.end_trouble()
        group = self.heard.view.group
        self.evict([] if group is None else [name for name in group.members if name not in self.clients])
        if not self.clients:
            return
        self.rest(60)
        found = self.heard.view.group
        assert found is not None
        assert found.phase == "Stable"
        assert set(found.members) == set(self.clients)
        modern = any(isinstance(client, Client) for client in self.clients.values())
        assert found.type == ("consumer" if modern else "classic")
        wanted = frozenset().union(*(client.subscription for client in self.clients.values()))
        every = {
            (name, number)
            for name, facts in self.heard.topics.items()
            if facts is not None and name in wanted
            for number in range(facts.partitions)
        }
        places = [place for client in self.clients.values() for place in owned(client)]
        assert sorted(places) == sorted(every)


def owned(client: Any) -> set[TopicPartition]:
    """The partitions that a client of any protocol owns."""
    if isinstance(client, Classic):
        return set(client.owned)
    return {(one.topic, one.partition) for one in client.owned}
