"""StreamsGroupHeartbeat and StreamsGroupDescribe at a broker: topics made, tasks and endpoints given, refusals."""

import asyncio
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode
from support.broker_connections import FakeClock
from support.broker_requests import Requests

from tidelog.access.model import CLUSTER_NAME, Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.state import AccessState
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.groups import inner_topics, streams_groups, streams_requests
from tidelog.broker.groups.heartbeating import REFRESH_S
from tidelog.broker.groups.streams_answers import endpoints
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations.groups import configure_group


@pytest.fixture
def lake(tmp_path):
    """A lake on the disk: a coordinator's decisions look whether they are in time."""
    with Lake(str(tmp_path / "lake")) as lake:
        yield lake


INNER = {"partitions": 0, "replication_factor": -1, "topic_configs": []}
COMPACTED = [{"key": "cleanup.policy", "value": "compact"}]
TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [
        {
            "subtopology_id": "0",
            "source_topics": ["lines"],
            "repartition_sink_topics": ["app-words"],
            "state_changelog_topics": [],
            "repartition_source_topics": [],
            "copartition_groups": [],
        },
        {
            "subtopology_id": "1",
            "source_topics": [],
            "repartition_sink_topics": [],
            "state_changelog_topics": [{**INNER, "name": "app-counts", "topic_configs": COMPACTED}],
            "repartition_source_topics": [{**INNER, "name": "app-words"}],
            "copartition_groups": [],
        },
    ],
}
JOIN = {
    "group_id": "app", "member_id": "m", "member_epoch": 0, "endpoint_information_epoch": -1,
    "rebalance_timeout": 1_000, "topology": TOPOLOGY, "active_tasks": [], "standby_tasks": [], "warmup_tasks": [],
    "process_id": "p", "client_tags": [],
}  # fmt: skip


def beat(requests, **said):
    return requests.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, JOIN | said, client_id="c")


def again(requests, before, **said):
    """A heartbeat after the first one: nothing has changed since."""
    said = {"member_epoch": before.member_epoch, "topology": None, "process_id": None, "client_tags": None} | said
    quiet = {"rebalance_timeout": -1, "active_tasks": None, "standby_tasks": None, "warmup_tasks": None}
    return beat(requests, **quiet | said)


def tasks(listed):
    return {one.subtopology_id: list(one.partitions) for one in listed}


def part(**changed):
    """The topology with one subtopology changed."""
    first, second = TOPOLOGY["subtopologies"]
    return {**TOPOLOGY, "subtopologies": [first | changed, second]}


def running(requests):
    """A member that has its tasks."""
    first = beat(requests)
    return again(requests, first, active_tasks=[], standby_tasks=[], warmup_tasks=[])


def test_a_new_group_waits_for_more_members(tmp_path):
    clock = FakeClock()
    with Lake(str(tmp_path / "lake"), clock=clock) as lake, Requests(lake, groups=GroupSettings()) as requests:
        for topic in ("lines", "app-words", "app-counts"):
            lake.create_topic(topic, 2)
        first = beat(requests)
        assert ([one.status_code for one in first.status], first.active_tasks) == ([5], ())
        other = beat(requests, member_id="other", process_id="q")
        clock.sleep(2.9)
        assert [one.status_code for one in again(requests, first).status] == [5]
        clock.sleep(0.1)
        told = again(requests, first), again(requests, other, member_id="other")
        assert [one.status for one in told] == [(), ()]
        assert [sum(map(len, tasks(one.active_tasks).values())) for one in told] == [2, 2]


def test_inner_topics_are_made_and_tasks_given(lake, requests):
    lake.create_topic("lines", 2)
    first = beat(requests)
    assert (first.error_code, first.member_epoch, first.active_tasks) == (ErrorCode.none, 1, ())
    assert [one.status_code for one in first.status] == [3]
    assert {len(lake.describe_topic(name).partitions) for name in ("app-words", "app-counts")} == {2}
    assert lake.topic_config("app-counts").overrides == {"cleanup.policy": "compact"}
    second = again(requests, first, active_tasks=[], standby_tasks=[], warmup_tasks=[])
    assert (second.error_code, second.status) == (ErrorCode.none, ())
    assert tasks(second.active_tasks) == {"0": [0, 1], "1": [0, 1]}
    assert (second.standby_tasks, second.warmup_tasks) == ((), ())
    again_told = again(requests, second)
    assert tasks(again_told.active_tasks) == tasks(second.active_tasks)  # it has not said yet that it runs them
    runs = [{"subtopology_id": name, "partitions": numbers} for name, numbers in tasks(second.active_tasks).items()]
    third = again(requests, second, active_tasks=runs, standby_tasks=[], warmup_tasks=[])
    for known in (third, again(requests, third)):
        assert (known.active_tasks, known.standby_tasks, known.warmup_tasks) == (None, None, None)


def test_for_a_source_topic_members_wait_as_long_as_at_kafkas_brokers(lake, requests):
    """Kafka Streams ends when it has heard for two intervals that one is missing."""
    configure_group(GroupLog(lake), "app", {"streams.heartbeat.interval.ms": "6000"})
    first = beat(requests)
    assert [one.status_code for one in first.status] == [1]
    assert first.heartbeat_interval == timedelta(seconds=6)
    lake.create_topic("lines", 2)
    assert running(requests).status == ()


def test_a_group_is_described_and_listed(lake, requests):
    lake.create_topic("lines", 2)
    running(requests)
    (group,) = requests.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, {"group_ids": ["app"]}).groups
    assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (
        ErrorCode.none,
        "Stable",
        2,
        2,
    )
    assert [one.subtopology_id for one in group.topology.subtopologies] == ["0", "1"]
    assert group.topology.subtopologies[1].state_changelog_topics[0].topic_configs[0].value == "compact"
    (member,) = group.members
    assert (member.member_id, member.process_id, member.client_id) == ("m", "p", "c")
    assert tasks(member.assignment.active_tasks) == tasks(member.target_assignment.active_tasks)
    (other,) = requests.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, {"group_ids": ["none"]}).groups
    assert other.error_code is ErrorCode.group_id_not_found
    (listed,) = requests.ask(ApiKey.LIST_GROUPS, 5, {"states_filter": [], "types_filter": ["streams"]}).groups
    assert (listed.group_id, listed.group_type, listed.group_state) == ("app", "streams", "Stable")
    (theirs,) = requests.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["app"]}).groups
    assert theirs.error_code is ErrorCode.group_id_not_found
    (classic,) = requests.ask(ApiKey.DESCRIBE_GROUPS, 6, {"groups": ["app"]}).groups
    assert classic.error_code is ErrorCode.group_id_not_found


def test_many_groups_are_described_in_one_go(lake, requests):
    lake.create_topic("lines", 2)
    running(requests)
    context = requests.broker._context
    handlers = requests.broker.handlers[ApiKey.STREAMS_GROUP_DESCRIBE].__wrapped__.__self__
    hops, at_once = [], context.blocking

    async def counted(call, *args):
        hops.append(call)
        return await at_once(call, *args)

    handlers._blocking = counted
    asked = {"group_ids": ["app", "none", "other", ""]}
    groups = requests.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, asked).groups
    none, missing, invalid = ErrorCode.none, ErrorCode.group_id_not_found, ErrorCode.invalid_group_id
    assert [one.error_code for one in groups] == [none, missing, missing, invalid]
    assert len(hops) == 1


def test_members_learn_where_others_answer_queries(lake, requests):
    lake.create_topic("lines", 2)
    first = beat(requests, user_endpoint={"host": "h", "port": 8080})
    second = again(requests, first, active_tasks=[], standby_tasks=[], warmup_tasks=[])
    (told,) = second.partitions_by_user_endpoint
    assert (told.user_endpoint.host, told.user_endpoint.port) == ("h", 8080)
    assert {one.topic: list(one.partitions) for one in told.active_partitions} == {"app-words": [0, 1], "lines": [0, 1]}
    known = again(requests, second, endpoint_information_epoch=second.endpoint_information_epoch)
    assert known.partitions_by_user_endpoint is None


def test_where_members_answer_queries_is_worked_out_once_for_all(tmp_path, monkeypatch):
    clock, worked_out = FakeClock(), []
    monkeypatch.setattr(
        streams_groups, "endpoints", lambda group, *rest: worked_out.append(group) or endpoints(group, *rest)
    )
    with Lake(str(tmp_path / "lake"), clock=clock) as lake, Requests(lake) as requests:
        lake.create_topic("lines", 2)
        first = beat(requests, user_endpoint={"host": "h", "port": 8080})
        second = again(requests, first, active_tasks=[], standby_tasks=[], warmup_tasks=[])
        before = len(worked_out)
        for _ in range(3):
            again(requests, second)
        assert len(worked_out) == before
        clock.sleep(REFRESH_S)  # topics may have grown
        again(requests, second)
        assert len(worked_out) == before + 1
        assert beat(requests, member_id="other", process_id="q").error_code is ErrorCode.none
        assert len(worked_out) == before + 2


def test_missing_sources_are_told(requests):
    (status,) = beat(requests).status
    assert (status.status_code, status.status_detail) == (1, "Source topics lines are missing.")


def test_a_group_has_copies_as_it_is_configured(lake):
    lake.create_topic("lines", 2)
    with Requests(lake) as requests:
        keys = [{"name": "streams.num.standby.replicas", "config_operation": 0, "value": "1"}]
        resource = {"resource_type": 32, "resource_name": "app", "configs": keys}
        asked = {"resources": [resource], "validate_only": False}
        (told,) = requests.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, asked).responses
        assert told.error_code is ErrorCode.none
        running(requests)
        other = beat(requests, member_id="other", process_id="q")
        assert other.error_code is ErrorCode.none
        (group,) = requests.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, {"group_ids": ["app"]}).groups
        copies = [tasks(member.target_assignment.standby_tasks) for member in group.members]
        assert sorted(number for one in copies for number in one.get("1", [])) == [0, 1]


def test_a_coordinator_that_takes_over_knows_what_the_group_is_configured_with(lake):
    lake.create_topic("lines", 2)
    with Requests(lake) as before:
        running(before)
    configure_group(GroupLog(lake), "app", {"streams.num.standby.replicas": "1"})
    with Requests(lake) as requests:
        coordinator = requests.broker.handlers[ApiKey.STREAMS_GROUP_HEARTBEAT].__wrapped__.__self__._coordinator
        requests.loop.run_until_complete(coordinator._member_leases.round())
        assert "app" in coordinator.groups()
        assert beat(requests, member_id="other", process_id="q").error_code is ErrorCode.none
        assert copies(lake) == [0, 1]


def test_a_change_of_configuration_counts_at_the_next_decision(lake, requests):
    lake.create_topic("lines", 2)
    running(requests)
    changes = {"streams.num.standby.replicas": "1", "streams.session.timeout.ms": "50000"}
    configure_group(GroupLog(lake), "app", changes)
    assert beat(requests, member_id="other", process_id="q").error_code is ErrorCode.none
    assert copies(lake) == [0, 1]
    assert GroupLog(lake).group("app").members["other"].session_timeout_ms == 50_000


def copies(lake):
    """The partitions of the second subtopology that have a copy."""
    targets = GroupLog(lake).group("app").targets.values()
    return sorted(task.partition for tasks in targets for task in tasks.standby if task.subtopology == "1")


REFUSED = [
    ({"member_id": ""}, ErrorCode.invalid_request),
    ({"group_id": ""}, ErrorCode.invalid_request),
    ({"rack_id": " "}, ErrorCode.invalid_request),
    ({"instance_id": "i"}, ErrorCode.invalid_request),
    ({"member_epoch": -2}, ErrorCode.invalid_request),
    ({"rebalance_timeout": -1}, ErrorCode.invalid_request),
    ({"topology": None}, ErrorCode.invalid_request),
    ({"active_tasks": [{"subtopology_id": "0", "partitions": [0]}]}, ErrorCode.invalid_request),
    ({"member_epoch": 3}, ErrorCode.invalid_request),
    ({"member_epoch": 3, "topology": None}, ErrorCode.group_id_not_found),
    ({"topology": part(source_topic_regex=["l.*"])}, ErrorCode.invalid_request),
    ({"topology": part(source_topics=["a b"])}, ErrorCode.streams_invalid_topology),
    ({"topology": part(source_topics=["__consumer_offsets"])}, ErrorCode.streams_invalid_topology),
    ({"topology": part(subtopology_id="1")}, ErrorCode.streams_invalid_topology),
    (
        {"topology": part(state_changelog_topics=[{**INNER, "name": "app-log", "partitions": 3}])},
        ErrorCode.streams_invalid_topology,
    ),
    (
        {"topology": part(repartition_source_topics=[{**INNER, "name": "app-in", "partitions": -1}])},
        ErrorCode.streams_invalid_topology,
    ),
    (
        {"topology": part(copartition_groups=[
            {"source_topics": [1], "source_topic_regex": [], "repartition_source_topics": []}
        ])},
        ErrorCode.streams_invalid_topology,
    ),
    ({"client_tags": [{"key": str(n), "value": ""} for n in range(65)]}, ErrorCode.invalid_request),
    ({"client_tags": [{"key": "k" * 1_025, "value": ""}]}, ErrorCode.invalid_request),
    ({"client_tags": [{"key": "k", "value": "v" * 1_025}]}, ErrorCode.invalid_request),
    ({"user_endpoint": {"host": "h" * 1_025, "port": 1}}, ErrorCode.invalid_request),
    ({"rack_id": "r" * 1_025}, ErrorCode.invalid_request),
    ({"process_id": "p" * 1_025}, ErrorCode.invalid_request),
    ({"member_id": "m" * 1_025}, ErrorCode.invalid_request),
]  # fmt: skip


@pytest.mark.parametrize(("said", "error"), REFUSED, ids=range(len(REFUSED)))
def test_what_contradicts_itself_is_refused(requests, said, error):
    refused = beat(requests, **said)
    assert refused.error_code is error
    assert refused.error_message


def test_repartition_topics_that_nothing_writes_are_refused(lake, requests):
    lake.create_topic("lines", 2)
    assert beat(requests, topology=part(repartition_sink_topics=[])).error_code is ErrorCode.streams_invalid_topology


def copartitioned(*sources):
    return {"source_topics": list(sources), "source_topic_regex": [], "repartition_source_topics": []}


def configured(*configs):
    """A subtopology with a changelog that has this configuration."""
    listed = [{"key": key, "value": value} for key, value in configs]
    return part(state_changelog_topics=[{**INNER, "name": "app-log", "topic_configs": listed}])


LARGE = [
    ({"MOST_SUBTOPOLOGIES": 1}, TOPOLOGY),
    ({"MOST_TOPICS": 3}, TOPOLOGY),
    ({"MOST_TOPICS": 4}, part(copartition_groups=[copartitioned(0)] * 5)),
    ({"MOST_TOPICS": 4}, part(copartition_groups=[copartitioned(0, 0, 0, 0, 0)])),
    ({"MOST_TOPICS": 4}, part(copartition_groups=[copartitioned()] * 5)),
    ({"MOST_CONFIGS": 1}, configured(("a", "1"))),
    ({"MOST_CHARACTERS": 32}, configured(("retention.bytes", "1000"))),
    ({}, part(subtopology_id="1" * 250)),
]


@pytest.mark.parametrize(("bounds", "topology"), LARGE, ids=range(len(LARGE)))
def test_the_size_of_a_topology_is_bounded_before_anything_is_made_of_it(requests, monkeypatch, bounds, topology):
    for name, bound in bounds.items():
        monkeypatch.setattr(streams_requests, name, bound)
    monkeypatch.setattr(streams_requests, "_subtopology", lambda _: pytest.fail("it was made"))
    refused = beat(requests, topology=topology)
    assert refused.error_code is ErrorCode.streams_invalid_topology
    assert "at most" in refused.error_message


def test_what_is_named_often_is_kept_once(lake, requests):
    lake.create_topic("lines", 2)
    assert beat(requests, topology=part(copartition_groups=[copartitioned(0, 0)] * 9)).error_code is ErrorCode.none
    group = GroupLog(lake).group("app")
    assert [one.copartitioned for one in group.topology.subtopologies] == [(("lines",),), ()]


def test_a_full_group_takes_no_member(lake):
    lake.create_topic("lines", 2)
    with Requests(lake, groups=GroupSettings(streams_max_size=1)) as requests:
        assert beat(requests).error_code is ErrorCode.none
        assert beat(requests, member_id="other").error_code is ErrorCode.group_max_size_reached


def acl(operation, resource, name):
    return Acl(
        resource, AclPattern.LITERAL, name, "User:ANONYMOUS", "*", AclOperation[operation], AclPermission.ALLOW
    )  # fmt: skip


def test_topics_are_made_with_the_rights_of_the_member(lake):
    lake.create_topic("lines", 2)
    with Requests(lake, access=AccessSettings(everyone=False)) as requests:
        made_with_rights(lake, requests)


def made_with_rights(lake, requests):
    own = [acl("DESCRIBE", AclResource.TOPIC, name) for name in ("lines", "app-words", "app-counts")]
    acls = {acl("READ", AclResource.GROUP, "app"), *own}
    access = requests.broker._context.access
    access.take(AccessState(frozenset(acls - {own[2]})))
    assert beat(requests).error_code is ErrorCode.topic_authorization_failed
    access.take(AccessState(frozenset(acls)))
    (status,) = beat(requests).status
    assert status.status_code == 3
    assert "Unauthorized to CREATE on topics app-counts, app-words." in status.status_detail
    access.take(AccessState(frozenset({*acls, acl("CREATE", AclResource.CLUSTER, CLUSTER_NAME)})))
    beat(requests)
    assert {"app-words", "app-counts"} <= set(lake.topics())


@pytest.fixture
def creations(monkeypatch):
    """The names of topics that were tried to be made."""
    tried, create = [], inner_topics.create_topic
    monkeypatch.setattr(
        inner_topics, "create_topic", lambda lake, name, *rest: tried.append(name) or create(lake, name, *rest)
    )
    return tried


def test_what_can_not_be_made_is_not_tried_at_each_heartbeat(tmp_path, creations, caplog):
    clock = FakeClock()
    with Lake(str(tmp_path / "lake"), clock=clock) as lake, Requests(lake) as requests:
        lake.create_topic("lines", 2)
        nonsense = [{"key": "cleanup.policy", "value": "nonsense"}]
        logs = [{**INNER, "name": f"app-log-{number}", "topic_configs": nonsense} for number in range(5)]
        joined = beat(requests, topology=part(state_changelog_topics=logs))
        names = [one["name"] for one in logs]
        assert sorted(creations) == sorted([*names, "app-counts", "app-words"])
        for _ in range(3):
            joined = again(requests, joined)
            (status,) = joined.status
            assert status.status_code == 3
            assert "Topic app-log-0 could not be made: Invalid value nonsense" in status.status_detail
            assert status.status_detail.endswith("2 more could not be made.")
        assert len(creations) == 7
        assert caplog.text.count("could not be made") == 1
        clock.sleep(16)
        again(requests, joined)
        assert creations[7:] == names
        assert caplog.text.count("could not be made") == 1


def test_topics_are_made_one_after_the_other_while_members_get_answers(lake, requests, creations, monkeypatch):
    """Many topics take longer than a member waits for its answer."""
    lake.create_topic("lines", 2)
    monkeypatch.setattr(inner_topics, "PATIENCE_S", 0.0)
    context = requests.broker._context
    at_once, is_open = context.blocking, asyncio.Event()

    async def slow(call, *args):
        if getattr(call, "__name__", "") == "_create":
            await is_open.wait()
        return await at_once(call, *args)

    object.__setattr__(context, "blocking", slow)
    joined = beat(requests)
    assert [one.status_code for one in joined.status] == [3]
    assert beat(requests, member_id="other", process_id="q").error_code is ErrorCode.none
    assert creations == []

    async def made():
        is_open.set()
        handlers = requests.broker.handlers[ApiKey.STREAMS_GROUP_HEARTBEAT].__wrapped__.__self__
        await asyncio.gather(*handlers._inner_topics._tasks)

    requests.loop.run_until_complete(made())
    assert sorted(creations) == ["app-counts", "app-words"]
    assert again(requests, joined, active_tasks=[], standby_tasks=[], warmup_tasks=[]).status == ()


def test_topics_of_a_broker_that_stops_are_made_no_more(lake, monkeypatch):
    lake.create_topic("lines", 2)
    monkeypatch.setattr(inner_topics, "PATIENCE_S", 0.0)
    with Requests(lake) as requests:
        context = requests.broker._context
        at_once = context.blocking

        async def never(call, *args):
            if getattr(call, "__name__", "") == "_create":
                await asyncio.Event().wait()
            return await at_once(call, *args)

        object.__setattr__(context, "blocking", never)
        assert beat(requests).error_code is ErrorCode.none
    assert lake.topics() == ["lines"]


def test_a_group_has_no_more_members_than_its_most_when_many_join_together(lake):
    lake.create_topic("lines", 2)
    with Requests(lake, groups=GroupSettings(streams_max_size=3)) as requests:

        async def run():
            joins = [JOIN | {"member_id": f"m{number}", "process_id": f"p{number}"} for number in range(10)]
            asked = [requests.answer(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, one, client_id="c") for one in joins]
            return [answer.error_code for answer in await asyncio.gather(*asked)]

        codes = requests.loop.run_until_complete(run())
    assert codes.count(ErrorCode.none) == 3
    assert codes.count(ErrorCode.group_max_size_reached) == 7
