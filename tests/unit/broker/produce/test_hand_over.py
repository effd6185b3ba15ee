"""Hand-over between brokers: whatever becomes of a request or its answer, each record lands once and is answered."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_response_schema
from kio.serial import entity_reader
from support.broker_requests import SETTINGS, request_of
from support.logs import memory_lake, open_lake, read
from support.produce_requests import Produced, batch, told
from support.rewrites import merge

from tidelog.broker.base.calls import Call, Peer
from tidelog.broker.base.channels import NoAnswerError, NotAskedError
from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.broker import Broker
from tidelog.broker.produce.hand_over import AVOIDED_S
from tidelog.broker.server.metrics import HAND_OVER_OUTCOMES, broker_metrics
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import framed, header_of
from tidelog.broker.wire.hand_over import HandOver, decode_answer, encode_hand_over
from tidelog.broker.wire.messages import decode
from tidelog.log.appends.joint import JointAppend
from tidelog.log.rules.appends import AppendAnswer, CommitOutcome, StagedShare, refusal

CLUSTER = "c"


def nodes(*ids: int) -> list[BrokerNode]:
    return [BrokerNode(n, {"PLAINTEXT": (f"b{n}", 9092)}, None, f"registration-{n}") for n in ids]


async def at_once(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return call(*args, **kwargs)


class Channels:
    """Requests to other brokers; `fares` says how the next ones fare: well, where there is nothing left of it."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.fares: list[str] = []
        self.asked: list[tuple[str, int]] = []
        self.late: list[tuple[tuple[str, int], bytes]] = []

    async def ask(self, address: tuple[str, int], request: bytes, within_s: float) -> bytes:
        del within_s
        self.asked.append(address)
        how = self.fares.pop(0) if self.fares else "well"
        if how == "dead":
            raise NotAskedError(how)
        if how == "late":
            self.late.append((address, request))
        if how == "answer lost":
            await self._world.deliver(address, request)
        if how in ("late", "answer lost", "request lost"):
            raise NoAnswerError(how)
        return await self._world.deliver(address, request)

    async def deliver_late(self) -> list[Any]:
        """What was late arrives."""
        late, self.late = self.late, []
        return [decode_answer(await self._world.deliver(address, request)) for address, request in late]

    def keep(self, addresses: Any) -> None:
        del addresses

    def close(self) -> None:
        pass


class World:
    """Brokers over one lake, each with its own view of the log, in the loop that runs. Topic t is committed by 2."""

    def __init__(self, count: int) -> None:
        self.lake, self.storage, self.clock = memory_lake()
        self.ids = list(range(1, count + 1))
        view = ClusterView(CLUSTER, 1, nodes(*self.ids))
        while True:
            topic_id = UUID(self.lake.create_topic("t", 2).id)
            if view.committer(topic_id).id == 2:
                break
            self.lake.delete_topic("t")
        self.brokers: dict[int, Broker] = {}
        self.channels: dict[int, Channels] = {}
        self.views: dict[int, ClusterView] = {}
        for number in self.ids:
            broker = Broker(open_lake(self.storage, self.clock), replace(SETTINGS, id=number), at_once)
            self.views[number] = replace(view, node_id=number)
            self.channels[number] = Channels(self)
            object.__setattr__(broker._context, "cluster", lambda number=number: self.views[number])
            object.__setattr__(broker._context, "channels", self.channels[number])
            self.brokers[number] = broker

    def producing(self, number: int) -> Produced:
        return Produced(self.brokers[number])

    async def deliver(self, address: tuple[str, int], request: bytes) -> bytes:
        """A broker's answer to a request, as its connection would have it."""
        broker = self.brokers[int(address[0].removeprefix("b"))]
        frame = memoryview(request)
        header = header_of(frame)
        body = decode(header.key, header.version, frame[header.end :])
        call = Call(header.key, header.version, None, body, Peer(), self.clock.elapsed_s())
        reply: Any = await broker.handlers[header.key](call)
        return b"".join(framed(header, reply.pieces))[4:]

    @property
    def version(self) -> int:
        return self.lake.topic("t").state().version

    def values(self) -> list[str]:
        return read(self.lake, "t") + read(self.lake, "t", 1)


def with_brokers(act: Callable[[World], Coroutine[Any, Any, None]], count: int = 3) -> None:
    async def run() -> None:
        world = World(count)
        try:
            await asyncio.wait_for(act(world), 30)
        finally:
            for broker in world.brokers.values():
                await broker.close()

    asyncio.run(run())


def test_the_committer_makes_the_entry_and_the_stager_answers() -> None:
    async def act(world: World) -> None:
        before = world.version
        one = await world.producing(1).one(batch(b"a", b"b"))
        assert told(one) == (0, 0)
        assert told(await world.producing(3).one(batch(b"c"))) == (0, 2)
        assert told(await world.producing(2).one(batch(b"d"))) == (0, 3)
        assert told(await world.producing(1).one(batch(b"e"))) == (0, 4)
        assert [world.channels[n].asked for n in world.ids] == [[("b2", 9092)] * 2, [], [("b2", 9092)]]
        assert world.version == before + 4
        assert world.values() == ["a", "b", "c", "d", "e"]
        # The broker that has staged it serves it from memory, and knows of it at once.
        context = world.brokers[1]._context
        topic = await context.topics.get("t")
        assert topic is not None
        assert topic.state.end(0) == 5
        assert context.cache.get(topic.id, 0, 0) is not None

    with_brokers(act)


def test_several_brokers_shares_are_one_entry() -> None:
    async def act(world: World) -> None:
        version, begun = world.version, asyncio.Event()

        async def others() -> Sequence[Any]:
            await begun.wait()
            return await asyncio.gather(*(world.producing(n).one(batch(b"%d" % n)) for n in (1, 2, 3)))

        waiting = asyncio.create_task(others())

        def comes(method: str, path: str, phase: str) -> None:
            if method == "put_if_absent" and phase == "before":
                begun.set()

        world.storage.hook = comes
        # The first entry is written by a thread; meanwhile the others come.
        entries = world.brokers[2].handlers[ApiKey.HAND_OVER].__wrapped__.topic("t", world.lake.topic("t").id).entries  # type: ignore[attr-defined]
        entries._is_busy = True
        first = asyncio.create_task(world.producing(1).one(batch(b"0")))
        begun.set()
        for _ in range(50):
            await asyncio.sleep(0)
        assert not first.done()
        entries._run()
        assert [told(one) for one in (await first, *await waiting)].count((0, 0)) == 1
        assert sorted(world.values()) == ["0", "1", "2", "3"]
        assert world.version <= version + 2

    with_brokers(act)


def test_what_becomes_of_each_hand_over_is_counted() -> None:
    async def act(world: World) -> None:
        def counted() -> dict[str, float]:
            families = broker_metrics(world.brokers[1].meter, world.brokers[1].connections, lambda: True)
            (samples,) = [one.samples for one in families if one.name == "tidelog_broker_handed_over_parts"]
            return {labels["outcome"]: value for labels, value in samples}

        assert counted() == dict.fromkeys(HAND_OVER_OUTCOMES, 0)
        for fares in ("well", "dead", "request lost", "answer lost"):
            world.channels[1].fares = [fares]
            assert told(await world.producing(1).one(batch(b"a")))[0] == 0
            world.clock.pass_s(AVOIDED_S + 0.1)
        world.views[2] = replace(world.views[2], nodes=nodes(1, 3))
        assert told(await world.producing(1).one(batch(b"a")))[0] == 0
        assert counted() == {"committed": 1, "refused": 1, "unknown": 0, "no_answer": 2, "not_asked": 1}
        assert not world.brokers[2].meter.hand_overs

    with_brokers(act)


@pytest.mark.parametrize("fares", ["dead", "request lost", "answer lost", "late"])
@pytest.mark.parametrize("producer", [(-1, -1, -1), (7, 0, 0)])
def test_whatever_becomes_of_a_request_its_records_land_once(fares: str, producer: tuple[int, int, int]) -> None:
    async def act(world: World) -> None:
        world.channels[1].fares = [fares]
        one = await world.producing(1).one(batch(b"a", b"b", producer=producer))
        assert told(one) == (0, 0)
        follows = (*producer[:2], 2) if producer[0] >= 0 else producer
        assert told(await world.producing(1).one(batch(b"c", producer=follows))) == (0, 2)
        for late in await world.channels[1].deliver_late():
            assert (late.outcome, late.ranges) == (CommitOutcome.COMMITTED, {0: (0, 2)})
        assert world.values() == ["a", "b", "c"]
        assert told(await world.producing(2).one(batch(b"d"))) == (0, 3)

    with_brokers(act)


def test_a_committer_that_wakes_up_after_a_merge_finds_the_share_in_the_logs_entries() -> None:
    async def act(world: World) -> None:
        world.channels[1].fares = ["late"]
        assert told(await world.producing(1).one(batch(b"a", b"b"))) == (0, 0)
        assert told(await world.producing(2).one(batch(b"c"))) == (0, 2)
        merge(world.lake, "t")
        (late,) = await world.channels[1].deliver_late()
        assert (late.outcome, late.ranges) == (CommitOutcome.COMMITTED, {0: (0, 2)})
        assert world.values() == ["a", "b", "c"]

    with_brokers(act)


def test_a_committer_that_gave_no_answer_is_not_asked_for_some_time() -> None:
    async def act(world: World) -> None:
        world.channels[1].fares = ["request lost"]
        for at in range(3):
            assert told(await world.producing(1).one(batch(b"a"))) == (0, at)
        assert len(world.channels[1].asked) == 1
        world.clock.pass_s(AVOIDED_S + 0.1)
        assert told(await world.producing(1).one(batch(b"a"))) == (0, 3)
        assert len(world.channels[1].asked) == 2

    with_brokers(act)


def test_a_committer_that_drains_refuses_and_one_that_serves_no_more_asks_none() -> None:
    async def act(world: World) -> None:
        world.views[2] = replace(world.views[2], nodes=nodes(1, 3))
        assert told(await world.producing(1).one(batch(b"a"))) == (0, 0)
        assert len(world.channels[1].asked) == 1
        world.views[1] = replace(world.views[1], nodes=nodes(1, 3))
        asked = world.views[1].committer(UUID(world.lake.topic("t").id)).id != 1
        assert told(await world.producing(1).one(batch(b"b"))) == (0, 1)
        assert len(world.channels[1].asked) == 1 + asked
        # What it still has to write when it drains, it commits itself.
        world.views[1] = replace(world.views[1], nodes=nodes(2, 3))
        hand_overs: Any = world.brokers[1].handlers[ApiKey.HAND_OVER].__wrapped__
        assert hand_overs.committer(UUID(world.lake.topic("t").id)) is None
        assert world.values() == ["a", "b"]

    with_brokers(act)


def test_a_stager_that_dies_after_its_hand_over_leaves_the_records_once() -> None:
    async def act(world: World) -> None:
        world.channels[1].fares = ["late"]
        world.storage.hook = _no_entries_of(world)
        dying = asyncio.create_task(world.producing(1).one(batch(b"a", producer=(7, 0, 0))))
        for _ in range(50):
            await asyncio.sleep(0)
        assert world.channels[1].late
        dying.cancel()
        world.storage.hook = lambda *_: None
        (late,) = await world.channels[1].deliver_late()
        assert late.outcome is CommitOutcome.COMMITTED
        # Its producer asks another broker, with the next batch behind it.
        answers = [
            await world.producing(3).one(batch(b"a", producer=(7, 0, 0))),
            await world.producing(3).one(batch(b"b", producer=(7, 0, 1))),
        ]
        assert answers[0].error_code in (0, 46)
        assert told(answers[1]) == (0, 1)
        assert world.values() == ["a", "b"]

    with_brokers(act)


def _no_entries_of(world: World) -> Callable[[str, str, str], None]:
    def hook(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and phase == "before" and not world.channels[1].late:
            raise AssertionError("nothing is committed yet")

    return hook


@pytest.mark.parametrize(
    ("cluster", "sender"), [("another", "registration-1"), (CLUSTER, "registration-9"), (CLUSTER, ""), ("", "")]
)
def test_only_brokers_of_the_cluster_are_served(cluster: str, sender: str) -> None:
    async def act(world: World) -> None:
        taken: list[HandOver] = []
        channel = world.channels[1]
        asked = channel.ask

        async def spy(address: Any, request: bytes, within_s: float) -> bytes:
            from tidelog.broker.wire.hand_over import decode_hand_over

            frame = memoryview(request)
            taken.append(decode_hand_over(frame[header_of(frame).end :]))
            return await asked(address, request, within_s)

        channel.ask = spy  # type: ignore[method-assign]
        await world.producing(1).one(batch(b"a"))
        (request,) = taken
        assert (request.cluster_id, request.sender) == (CLUSTER, "registration-1")
        before = world.version
        stranger = replace(request, cluster_id=cluster, sender=sender)
        answer = decode_answer(await world.deliver(("b2", 9092), encode_hand_over(stranger)))
        assert (answer.outcome, answer.ranges) == (CommitOutcome.REFUSED, {})
        assert world.version == before

    with_brokers(act)


def test_clients_do_not_hear_of_it() -> None:
    async def act(world: World) -> None:
        client = {"client_software_name": "a", "client_software_version": "1"}
        call = Call(
            ApiKey.API_VERSIONS,
            3,
            None,
            decode(ApiKey.API_VERSIONS, 3, memoryview(request_of(ApiKey.API_VERSIONS, 3, client))),
            Peer(),
            0.0,
        )
        reply: Any = await world.brokers[1].handlers[ApiKey.API_VERSIONS](call)
        read = entity_reader(load_response_schema(ApiKey.API_VERSIONS, 3))
        answer, _ = read(b"".join(reply.pieces), 0)
        listed = {one.api_key for one in answer.api_keys}
        assert ApiKey.PRODUCE in listed
        assert ApiKey.HAND_OVER not in listed

    with_brokers(act)


def test_the_budget_of_files_is_the_committers() -> None:
    async def act(world: World) -> None:
        topic_id = world.lake.topic("t").id
        hand_overs: dict[int, Any] = {n: world.brokers[n].handlers[ApiKey.HAND_OVER].__wrapped__ for n in world.ids}
        budgets = {n: hand_overs[n].topic("t", topic_id).budget for n in world.ids}
        full = budgets[1].left(world.clock.elapsed_s())
        for _ in range(3):
            await world.producing(3).one(batch(b"a"))
        await world.producing(2).one(batch(b"a"))
        assert budgets[2].left(world.clock.elapsed_s()) == pytest.approx(full - 4, abs=0.1)
        assert budgets[1].left(world.clock.elapsed_s()) == full
        await world.producing(1).one(batch(b"a"))
        assert budgets[1].left(world.clock.elapsed_s()) == pytest.approx(full - 5, abs=0.1)

    with_brokers(act)


def test_a_store_that_says_nothing_to_the_committer_leaves_it_to_the_stager(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelog.log.base.errors import OutcomeUnknownError

    commit = JointAppend.commit_all

    async def act(world: World) -> None:
        committers = world.brokers[2]._context.lake.storage

        def silent(self: JointAppend, shares: Sequence[StagedShare], timeout_s: float) -> list[AppendAnswer]:
            found = commit(self, shares, timeout_s)
            if self.topic is world_topic:
                return [refusal(OutcomeUnknownError("no answer", request_id=""))] * len(shares)
            return found

        hand_overs: Any = world.brokers[2].handlers[ApiKey.HAND_OVER].__wrapped__
        world_topic = hand_overs.topic("t", world.lake.topic("t").id).entries._joint_append().topic
        monkeypatch.setattr(JointAppend, "commit_all", silent)
        assert told(await world.producing(1).one(batch(b"a"))) == (0, 0)
        assert world.values() == ["a"]
        assert committers is not world.brokers[1]._context.lake.storage or committers is world.storage

    with_brokers(act)
