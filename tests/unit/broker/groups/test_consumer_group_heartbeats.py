"""What a broker looks up for the heartbeats of a group of the type consumer, at times that are made up."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from support.broker_requests import Requests
from support.logs import FakeClock
from support.waiting import eventually_async

from tidelog.broker.base.group_configs import GroupConfigs
from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.groups.consumer_groups import ConsumerGroupHandlers
from tidelog.broker.groups.coordinated_group import CoordinatedGroup
from tidelog.broker.groups.heartbeating import REFRESH_S, AnswerTimes, decided, interval_ms
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.consumer_protocol import Subscription, encode_subscription
from tidelog.groups.model import ConsumerGroup, GroupView
from tidelog.groups.rules.modern import drafts
from tidelog.groups.rules.modern.heartbeat import Heartbeat, HeartbeatAnswer
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.clock import SystemIds
from tidelog.log.lake import Lake
from tidelog.operations.groups import configure_group

JOINS = 0


class LookedUp:
    """Subscriptions of which the topics are these; `asked`: by whom a regular expression was looked up."""

    def __init__(self, *topics: str) -> None:
        self.topics = set(topics)
        self.asked: list[str] = []

    async def facts(self, names: Iterable[str]) -> dict[str, AssignableTopic | None]:
        ids = {"t": f"{1:032x}", "u": f"{2:032x}"}
        return {name: AssignableTopic(ids[name], 1) if name in self.topics else None for name in names}

    async def matching(self, peer: Any, regex: str) -> frozenset[str]:
        self.asked.append(peer.host)
        return frozenset(name for name in self.topics if name == regex)


class Coordinator:
    """One group, and a log that takes everything."""

    times = AnswerTimes()

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.of = CoordinatedGroup("g", GroupSettings(), GroupConfigs(GroupSettings()))

    async def group(self, group_id: str) -> CoordinatedGroup:
        return self.of

    async def change(self, group: CoordinatedGroup, rule: Any, taken: Any = None) -> Any:
        if taken is not None:
            taken()
        decision = rule(GroupView(group.state))
        group.seen(decision.response[1], self.clock.elapsed_s())
        return decision.response[0]


def test_each_member_has_its_regular_expression_looked_up() -> None:
    """Also where another one's heartbeat always comes first: each has topics and rights of its own."""
    clock = FakeClock()
    coordinator, looked_up = Coordinator(clock), LookedUp("t")
    context: Any = SimpleNamespace(
        settings=SimpleNamespace(groups=GroupSettings()), lake=SimpleNamespace(ids=SystemIds()), clock=clock
    )
    handlers = ConsumerGroupHandlers(context, coordinator)  # type: ignore[arg-type]
    handlers._subscriptions = looked_up  # type: ignore[assignment]
    epochs = {"a": JOINS, "b": JOINS}

    async def beat(name: str) -> Any:
        joins = epochs[name] == JOINS
        body = SimpleNamespace(
            group_id="g", member_id=name, member_epoch=epochs[name], instance_id=None, rack_id=None,
            rebalance_timeout=timedelta(seconds=10 if joins else -1), subscribed_topic_names=None,
            subscribed_topic_regex={"a": "t", "b": "u"}[name] if joins else None, server_assignor=None,
            topic_partitions=[] if joins else None,
        )  # fmt: skip
        call: Any = SimpleNamespace(body=body, version=1, client_id="", peer=SimpleNamespace(host=name))
        answer: Any = await handlers.heartbeat(call)
        assert not answer.get("error_code"), answer
        epochs[name] = answer["member_epoch"]
        return answer["assignment"]

    async def run() -> None:
        await beat("a")
        await beat("b")
        looked_up.topics.add("u")
        looked_up.asked.clear()
        clock.sleep(REFRESH_S)
        await beat("a")  # which has the group's topics looked at
        given = await beat("b")
        await beat("b")
        assert looked_up.asked == ["a", "b"]
        assert [one["partitions"] for one in given["topic_partitions"]] == [[0]]

    asyncio.run(run())


JOIN = {
    "group_id": "g", "member_id": "a", "member_epoch": JOINS, "rebalance_timeout": 10_000, "topic_partitions": [],
    "subscribed_topic_names": ["t"],
}  # fmt: skip
JOIN_AS_CLASSIC = {
    "group_id": "g", "member_id": "", "session_timeout": 10_000, "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": encode_subscription(Subscription(frozenset({"t"})))}],
}  # fmt: skip


def test_a_group_of_the_type_consumer_has_room_for_classic_members_as_it_has_for_others(tmp_path) -> None:
    settings = GroupSettings(max_size=1, consumer_max_size=2)
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake, groups=settings) as requests:
        lake.create_topic("t", 2)
        assert requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, JOIN).error_code is ErrorCode.none
        second = requests.ask(ApiKey.JOIN_GROUP, 3, JOIN_AS_CLASSIC)
        assert second.error_code is ErrorCode.none
        third = requests.ask(ApiKey.JOIN_GROUP, 3, JOIN_AS_CLASSIC)
        assert third.error_code is ErrorCode.group_max_size_reached


@pytest.mark.parametrize(("names", "regex"), [([], None), (None, ""), ([], "")])
def test_a_member_may_join_without_topics_and_find_some_later(tmp_path, names, regex) -> None:
    """As Java's consumer does whose pattern matches no topic that it knows yet."""
    nothing = {"member_id": "b", "subscribed_topic_names": names, "subscribed_topic_regex": regex}
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake) as requests:
        lake.create_topic("t", 2)
        first = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, JOIN)
        joined = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, JOIN | nothing)
        assert (joined.error_code, joined.assignment.topic_partitions) == (ErrorCode.none, ())
        assert joined.member_epoch == first.member_epoch, "the others' shares stay"
        goes_on = {"group_id": "g", "member_id": "b", "member_epoch": joined.member_epoch}
        stays = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, goes_on)
        assert (stays.error_code, stays.member_epoch) == (ErrorCode.none, joined.member_epoch)
        subscribed = requests.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, goes_on | {"subscribed_topic_names": ["t"], "topic_partitions": []}
        )
        assert (subscribed.error_code, len(GroupLog(lake).group("g").target("b"))) == (ErrorCode.none, 1)


def test_a_member_that_joins_says_what_it_subscribes_to(tmp_path) -> None:
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake) as requests:
        refused = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, JOIN | {"subscribed_topic_names": None})
        assert refused.error_code is ErrorCode.invalid_request
        assert refused.error_message.startswith("Either SubscribedTopicNames or SubscribedTopicRegex")


def test_a_session_is_as_long_as_the_group_is_configured_just_then(tmp_path) -> None:
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake) as requests:
        lake.create_topic("t", 2)
        log = GroupLog(lake)
        for name, session_ms in (("a", 45_000), ("b", 50_000)):
            configure_group(log, "g", {"consumer.session.timeout.ms": str(session_ms)})
            joined = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, JOIN | {"member_id": name})
            assert joined.error_code is ErrorCode.none
            assert log.group("g").members[name].session_timeout_ms == session_ms


@pytest.mark.parametrize(("epoch", "changes", "asked"), [(JOINS, True, 1), (1, True, 2), (1, False, 1)])
def test_an_assignment_is_not_computed_twice_for_one_that_joins(epoch: int, changes: bool, asked: int) -> None:
    """Its heartbeat changes the group nearly always, so that it is not decided by the group as it was seen."""
    group, places = Coordinator(FakeClock()).of, list[str]()
    answer = HeartbeatAnswer(ConsumerGroup("g"), 5)

    def by_memory(_: Heartbeat) -> HeartbeatAnswer | None:
        places.append("memory")
        return None if changes else answer

    async def over_the_log(_: Heartbeat) -> HeartbeatAnswer:
        places.append("log")
        return answer

    request = Heartbeat(group_id="g", member_id="a", epoch=epoch)
    assert asyncio.run(decided(group, request, ConsumerGroup, FakeClock(), by_memory, over_the_log)) == answer
    assert len(places) == asked


def together(requests: Requests, members: int) -> list[Any]:
    """The answers of members that join together."""

    async def run() -> list[Any]:
        joins = (JOIN | {"member_id": f"m{number}"} for number in range(members))
        return await asyncio.gather(*(requests.answer(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, one) for one in joins))

    return requests.loop.run_until_complete(run())


def test_members_that_join_together_share_entries_and_assignments(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many of either as heartbeats would keep a broker busy for minutes."""
    assignments: list[int] = []
    real = drafts.assigned

    def counted(group: ConsumerGroup, *rest: Any) -> ConsumerGroup:
        assignments.append(len(group.members))
        return real(group, *rest)

    monkeypatch.setattr(drafts, "assigned", counted)
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake) as requests:
        lake.create_topic("t", 200)
        answers = together(requests, 200)
        assert {answer.error_code for answer in answers} == {ErrorCode.none}
        log = GroupLog(lake)
        group = log.group("g")
        assert len(group.members) == 200
        assert len(assignments) <= 8
        assert assignments[-1] == 200
        assert log.version("g") <= 12  # that of the table's creation, and those of its columns, among them


def test_a_group_has_no_more_members_than_its_most_when_many_join_together(tmp_path) -> None:
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake, groups=GroupSettings(consumer_max_size=3)) as requests:
        lake.create_topic("t", 2)
        codes = [answer.error_code for answer in together(requests, 10)]
        assert codes.count(ErrorCode.none) == 3
        assert codes.count(ErrorCode.group_max_size_reached) == 7


def test_a_classic_group_has_no_more_members_than_its_most_when_many_join_together(tmp_path) -> None:
    settings = GroupSettings(max_size=3, initial_rebalance_delay_ms=0)
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake, groups=settings) as requests:
        joins = {
            "group_id": "g", "session_timeout": 6_000, "member_id": "", "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}], "rebalance_timeout": 6_000,
        }  # fmt: skip

        async def run() -> list[Any]:
            asked = [asyncio.ensure_future(requests.answer(ApiKey.JOIN_GROUP, 3, joins)) for _ in range(10)]
            # Seven are refused, and the round of the first one ends.
            await eventually_async(lambda: sum(one.done() for one in asked) >= 8, "answers", 60)
            for one in asked:
                one.cancel()
            return [one.result() for one in asked if not one.cancelled() and one.done()]

        codes = [one.error_code for one in requests.loop.run_until_complete(run())]
        assert codes.count(ErrorCode.group_max_size_reached) == 7
        assert len(GroupLog(lake).group("g").members) <= 3


@pytest.mark.parametrize(
    ("members", "entry_s", "late_s", "waits", "interval"),
    [
        (1, 0.001, 0.0, False, 500),
        (1, 0.001, 0.0, True, 500),
        (1_000, 0.001, 0.0, False, 2_000),  # heartbeats cost the broker time, too
        (1_000, 0.001, 0.0, True, 2_000),
        (100, 0.25, 0.0, False, 2_500),
        (100, 0.25, 0.0, True, 1_250),  # it gets what others gave up soon after that
        (100, 2.0, 0.0, False, 5_000),  # as long as the group's configuration allows
        (100, 0.001, 0.02, False, 500),
        (100, 0.001, 0.2, False, 1_600),  # an answer needs some turns of a loop that is late
        (100, 0.001, 0.2, True, 1_600),
        (100, 0.001, 1.0, False, 5_000),
    ],
)
def test_the_interval_between_heartbeats_follows_what_an_answer_needs(
    members: int, entry_s: float, late_s: float, waits: bool, interval: int
) -> None:
    assert interval_ms(members, AnswerTimes(entry_s, late_s), 5_000, waits=waits) == interval


def test_a_loop_that_was_late_is_remembered_for_a_while() -> None:
    times = AnswerTimes()
    times.ticked(0.11, 0.1)
    assert times.late_s == pytest.approx(0.01)
    times.ticked(0.6, 0.1)
    assert times.late_s == 0.5
    for _ in range(100):
        times.ticked(0.1, 0.1)
    assert times.late_s == pytest.approx(0.25)
    for _ in range(900):
        times.ticked(0.1, 0.1)
    assert times.late_s < 0.001
    times.ticked(3600.0, 0.1)  # the machine was paused
    assert times.late_s == 1.0


def test_an_assignment_is_repeated_until_the_member_says_that_it_owns_it(tmp_path) -> None:
    """An answer may have been lost, and clients may repeat a request as it was."""
    with Lake(str(tmp_path / "lake")) as lake, Requests(lake) as requests:
        topic_id = lake.create_topic("t", 2).id
        joined = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, JOIN)
        stays = {"group_id": "g", "member_id": "a", "member_epoch": joined.member_epoch, "rebalance_timeout": -1}
        owns = stays | {"topic_partitions": [{"topic_id": UUID(topic_id), "partitions": [0, 1]}]}
        told = [
            requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body | {"subscribed_topic_names": None}).assignment
            for body in (stays | {"topic_partitions": None}, owns, stays | {"topic_partitions": None})
        ]
        assert told[0] == joined.assignment
        assert told[1:] == [None, None]
