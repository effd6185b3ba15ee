"""Members of groups of the type consumer as their clients see them, over the pure rule: for tables and random runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tidelog.broker.groups.acknowledgements import Acknowledgements
from tidelog.groups.model import AssignedPartition, ConsumerGroup, GroupView
from tidelog.groups.rules.members import evict_silent
from tidelog.groups.rules.migration import Migration
from tidelog.groups.rules.modern import heartbeat as rule
from tidelog.groups.rules.modern.heartbeat import Heartbeat, HeartbeatAnswer
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.groups.rules.offsets import decide_commit
from tidelog.log.base.errors import TidelogError
from tidelog.transactions.ports import GroupIdentity

JOINS, LEAVES, AWAY = 0, -1, -2
# Rounds of heartbeats after which a group is at rest in which nothing was written, and all own what they did.
_QUIET = 5


def topics(**partitions: int) -> dict[str, AssignableTopic | None]:
    """Topics of these names; each one's id is its name with `id-` before it."""
    return {name: AssignableTopic(f"id-{name}", count) for name, count in partitions.items()}


def request_of(member_id: str, epoch: int, says: dict[str, Any]) -> Heartbeat:
    """What a member says; a newcomer says all that it has to."""
    if epoch == JOINS:
        says = {"topics": {"t"}, "rebalance_timeout_ms": 1000, "owned": ()} | says
    for name in ("topics", "owned", "matched"):
        if says.get(name) is not None:
            says = {**says, name: frozenset(says[name])}
    return Heartbeat(group_id="g", member_id=member_id, epoch=epoch, **says)


@dataclass
class Heard:
    """A group, and what is decided over it in turn."""

    topics: dict[str, AssignableTopic | None]
    view: GroupView = field(default_factory=GroupView)
    writes: int = 0

    @property
    def group(self) -> ConsumerGroup:
        assert isinstance(self.view.group, ConsumerGroup)
        return self.view.group

    def beat(
        self, member_id: str, epoch: int, migration: Migration = Migration.BIDIRECTIONAL, **says: Any
    ) -> HeartbeatAnswer:
        """One heartbeat; a newcomer says all that it has to."""
        return self.ask(request_of(member_id, epoch, says), migration)

    def ask(self, request: Heartbeat, migration: Migration = Migration.BIDIRECTIONAL) -> HeartbeatAnswer:
        """One heartbeat."""
        answer: HeartbeatAnswer = self.decide(
            lambda view: rule.heartbeat(view, self.topics, request, now_ms=7, migration=migration)
        )
        return answer

    def beat_together(self, said: Iterable[tuple[str, int, dict[str, Any]]]) -> list[HeartbeatAnswer | TidelogError]:
        """Heartbeats of members, (id, epoch, what it says), that are decided together."""
        return self.ask_together([request_of(*one) for one in said])

    def ask_together(self, requests: Sequence[Heartbeat]) -> list[HeartbeatAnswer | TidelogError]:
        """Heartbeats that are decided together."""
        answers: list[HeartbeatAnswer | TidelogError] = self.decide(
            lambda view: rule.heartbeats(view, self.topics, requests, now_ms=7)
        )
        return answers

    def decide(self, decision: Any) -> Any:
        made = decision(self.view)
        if made.group is not None:
            self.writes += 1
            self.view = GroupView(made.group, self.view.offsets, self.view.pending)
        return made.response

    def commits(self, member_id: str, epoch: int) -> bool:
        """Whether a member could commit in an epoch now."""
        try:
            decide_commit(self.view, GroupIdentity("g", member_id, epoch), {})
        except TidelogError:
            return False
        return True


@dataclass
class Client:
    """A consumer by KIP-848: what it owns, in which epoch, and what it was given last.

    `reticent`: it says what it owns only once it has done as it was bidden, and repeats a request word for word that it
    had no answer to, as librdkafka does; another one then says all.
    """

    member_id: str
    subscription: frozenset[str]
    instance_id: str | None = None
    reticent: bool = False
    epoch: int = JOINS
    owned: frozenset[AssignedPartition] = frozenset()
    told: frozenset[AssignedPartition] | None = None
    unsure: bool = True  # whether its next heartbeat says all
    said: frozenset[AssignedPartition] = frozenset()
    subscribed: frozenset[str] = frozenset()
    again: tuple[int, dict[str, Any]] | None = None  # what it repeats

    def request(self) -> tuple[int, dict[str, Any]]:
        """Its epoch, and what it says."""
        if self.again is not None:
            return self.again
        says: dict[str, Any] = {"instance_id": self.instance_id}
        full = self.epoch == JOINS or self.unsure or self.subscription != self.subscribed
        if full:
            says |= {"topics": self.subscription, "rebalance_timeout_ms": 1000}
            self.subscribed = self.subscription
        if full or not self.reticent or (self.owned == self.told and self.owned != self.said):
            says["owned"] = [(one.topic_id, one.partition) for one in self.owned]
            self.said = self.owned
        if self.reticent:
            self.again = self.epoch, says
        return self.epoch, says

    def hear(self, answer: HeartbeatAnswer) -> None:
        self.epoch, self.unsure, self.again = answer.epoch, False, None
        if answer.assigned is not None:
            self.told = answer.assigned

    def revoke(self) -> None:
        """Give up what it has to; only then take what is new."""
        if self.told is None:
            return
        gone = self.owned - self.told
        self.owned = self.owned - gone if gone else self.told

    def lose(self) -> None:
        self.epoch, self.owned, self.told, self.unsure = JOINS, frozenset(), None, True
        self.said, self.again = frozenset(), None


class RandomGroup:
    """A run of clients that join, leave, are frozen, lose answers and repeat requests, from a seed.

    `joint`: heartbeats are decided together now and then.
    """

    def __init__(self, seed: int, static: bool = False, joint: bool = False) -> None:
        self.random = Random(seed)
        self.heard = Heard(topics(t=5, u=3, v=1))
        self.clients: dict[str, Client] = {}
        self.frozen: list[Client] = []
        self.late: list[tuple[str, int, dict[str, Any]]] = []
        self.static = static
        self.joint = joint
        self._number = 0
        self.acknowledgements = Acknowledgements()

    def run(self, steps: int = 60) -> None:
        for _ in range(steps):
            self.step()
            self.check()
        self.settle()

    def step(self) -> None:
        draw = self.random.random()
        if not self.clients or draw < 0.12:
            self.begin()
        elif draw < 0.17:
            self.resubscribe()
        elif draw < 0.21:
            self.leave()
        elif draw < 0.26:
            self.freeze()
        elif draw < 0.30:
            self.grow()
        elif draw < 0.36 and self.late:
            member_id, epoch, says = self.late.pop(self.random.randrange(len(self.late)))
            self.send(member_id, epoch, says)  # it was under way for long; no client hears the answer
        elif draw < 0.42 and self.frozen:
            self.wake()
        elif draw < 0.52 and self.joint:
            self.beat_together()
        elif draw < 0.53 and self.joint:
            self.fail_over()
        else:
            client = self.random.choice(list(self.clients.values()))
            self.beat(client, loses=draw > (0.8 if getattr(client, "reticent", False) else 0.92))

    def begin(self) -> None:
        self._number += 1
        name = f"m{self._number}"
        instance = f"i{self._number % 3}" if self.static and self.random.random() < 0.5 else None
        reticent = self.joint and self.random.random() < 0.5
        self.clients[name] = Client(name, self.subscription(), instance, reticent)

    def subscription(self) -> frozenset[str]:
        names = ["t", "u", "v"]
        return frozenset(self.random.sample(names, self.random.randint(1, 3)))

    def resubscribe(self) -> None:
        client = self.random.choice(list(self.clients.values()))
        client.subscription = self.subscription()

    def leave(self) -> None:
        client = self.clients.pop(self.random.choice(list(self.clients)))
        if client.epoch != JOINS:
            epoch = AWAY if client.instance_id and self.random.random() < 0.7 else LEAVES
            self.send(client.member_id, epoch, {"instance_id": client.instance_id})

    def freeze(self) -> None:
        client = self.clients.pop(self.random.choice(list(self.clients)))
        self.frozen.append(client)
        self.evict([client.member_id])

    def evict(self, names: Iterable[str]) -> None:
        group = self.heard.view.group
        if group is None:
            return
        turns = {name: group.members[name].turn for name in names if name in group.members}
        self.heard.decide(lambda view: evict_silent(view, "g", turns, now_ms=8))

    def wake(self) -> None:
        client = self.frozen.pop()
        self.clients[client.member_id] = client

    def grow(self) -> None:
        name = self.random.choice(["t", "u", "v"])
        facts = self.heard.topics[name]
        if facts is not None and self.random.random() < 0.8:
            self.heard.topics[name] = AssignableTopic(facts.topic_id, facts.partitions + 1)
        else:  # deleted and created again
            self.heard.topics[name] = AssignableTopic(f"id-{name}-{self.random.random()}", self.random.randint(1, 4))

    def beat_together(self) -> None:
        """Some clients' heartbeats are decided together, with some that were under way for long, and some leave."""
        modern = sorted(name for name, client in self.clients.items() if isinstance(client, Client))
        clients = self.random.sample(modern, self.random.randint(0, len(modern)))
        said = [(name, *self.says(self.clients[name])) for name in clients]
        hears: list[str | None] = list(clients)
        late = [self.late.pop() for _ in range(min(len(self.late), self.random.randint(0, 2)))]
        places = sorted(self.random.sample(range(len(said) + 1), 1) * len(late))
        for place, one in zip(places, late, strict=True):
            said.insert(place, one)
            hears.insert(place, None)
        requests = [request_of(*one) for one in said]
        heard = [self.hear(request) for request in requests]
        told = map(self.answered, requests, heard, self.heard.ask_together(heard))
        for name, answer in zip(hears, told, strict=True):
            if name is None:
                continue
            if isinstance(answer, TidelogError):
                self.clients[name].lose()
            else:
                self.clients[name].hear(answer)

    def fail_over(self) -> None:
        """Another coordinator goes on, which knows what the log says; clients say all to it."""
        self.acknowledgements = Acknowledgements()
        for client in self.clients.values():
            if isinstance(client, Client):
                client.unsure, client.again = True, None

    def says(self, client: Client) -> tuple[int, dict[str, Any]]:
        """A client's epoch, and what it says in its next heartbeat: a copy may arrive later than that."""
        if self.random.random() < 0.7:
            client.revoke()
        epoch, says = client.request()
        if self.random.random() < 0.2 and not client.reticent:
            self.late.append((client.member_id, epoch, says))
        return epoch, {**says, "refresh": True}

    def beat(self, client: Client, *, loses: bool = False) -> None:
        epoch, says = self.says(client)
        answer = self.send(client.member_id, epoch, says)
        if loses:
            client.unsure = not client.reticent
        elif answer is None:
            client.lose()
        else:
            client.hear(answer)

    def send(self, member_id: str, epoch: int, says: dict[str, Any]) -> HeartbeatAnswer | None:
        request = request_of(member_id, epoch, says)
        heard = self.hear(request)
        try:
            answer = self.heard.ask(heard)
        except TidelogError:
            return None
        return self.answered(request, heard, answer)

    def hear(self, request: Heartbeat) -> Heartbeat:
        """What a coordinator takes a member's heartbeat to say."""
        group = self.heard.view.group
        return request if group is None else self.acknowledgements.heard(request, group)

    def answered(self, request: Heartbeat, heard: Heartbeat, answer: Any) -> Any:
        """The answer as a coordinator gives it."""
        if isinstance(answer, TidelogError):
            return answer
        self.acknowledgements.keep(answer.group.members)
        return self.acknowledgements.answered(request, answer, believed=heard is request)

    def check(self) -> None:
        """Of clients that could commit, no two own one partition."""
        check_owners(self.heard, [(one, one.owned) for one in [*self.clients.values(), *self.frozen]])

    def end_trouble(self) -> None:
        """What was under way for long is gone. Its connections are, too, so that its clients say all once more."""
        self.late.clear()
        for client in self.clients.values():
            if isinstance(client, Client):
                client.unsure = client.unsure or not client.reticent

    def rest(self, rounds: int) -> None:
        """All clients beat in turn, until for some rounds nothing has changed."""
        seen: list[Any] = []
        for _ in range(rounds):
            for client in self.clients.values():
                if isinstance(client, Client):
                    client.revoke()
                self.beat(client)
                self.check()
            seen.append((self.heard.writes, [client.owned for client in self.clients.values()]))
            if len(seen) > _QUIET and seen[-1] == seen[-1 - _QUIET]:
                return

    def settle(self) -> None:
        """In quiet times all partitions find one owner each, and nothing is written any more."""
        self.end_trouble()
        group = self.heard.view.group
        gone = [] if group is None else [name for name in group.members if name not in self.clients]
        self.evict(gone)
        if not self.clients:
            return
        self.rest(30)
        before = self.heard.writes
        for client in self.clients.values():
            client.revoke()
            self.beat(client)
        assert self.heard.writes == before
        assert self.heard.group.phase == "Stable"
        # Of two that live with one static id the later one can't join.
        members = [client for name, client in self.clients.items() if name in self.heard.group.members]
        assert self.static or len(members) == len(self.clients)
        owned = sorted(one for client in members for one in client.owned)
        wanted = frozenset().union(*(client.subscription for client in members))
        every = sorted(
            AssignedPartition(facts.topic_id, name, number)
            for name, facts in self.heard.topics.items()
            if facts is not None and name in wanted
            for number in range(facts.partitions)
        )
        assert owned == every


def check_owners(heard: Heard, owners: Iterable[tuple[Any, Iterable[Any]]]) -> None:
    """Of clients, each with what it owns, that could commit now, no two own the same."""
    first: dict[Any, Any] = {}
    for client, owned in owners:
        for one in owned:
            other = first.setdefault(one, client)
            if other is client or not heard.commits(client.member_id, client.epoch):
                continue
            first[one] = client
            assert not heard.commits(other.member_id, other.epoch), (one, other.member_id, client.member_id)
