"""What is left of an answer where a client may not have all of it: the rest goes on, and nothing else is revealed."""

import asyncio
from uuid import UUID, uuid4

import pytest
from support.admin_groups import stable_group
from support.broker_connections import settle
from support.broker_fetches import append, fetch, whole
from support.broker_requests import LISTENER, Requests
from support.logs import memory_lake
from support.produce_requests import batch, encoded_produce, read_back

from tidelog.access.model import CLUSTER_NAME, Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.state import AccessState
from tidelog.broker.access import guard
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.calls import Call, Peer
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import UnacknowledgedError
from tidelog.broker.wire.hand_over import decode_answer
from tidelog.groups.model import CommittedOffset, Decision
from tidelog.log.rules.appends import CommitOutcome
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol

ALICE, ROOT = "User:alice", "User:root"
TOPIC, GROUP, CLUSTER = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER
NEWEST_FETCH, NEWEST_PRODUCE = 18, 13
DENIED, UNKNOWN = 29, 3


def right(operation, resource, name=CLUSTER_NAME, permission=AclPermission.ALLOW, pattern=AclPattern.LITERAL):
    return Acl(resource, pattern, name, ALICE, "*", AclOperation[operation], permission)


class Guarded(Requests):
    """A broker that knows ACLs; `ask` is as alice."""

    def __init__(self, lake, *acls, **settings):
        access = settings.pop("access", AccessSettings(frozenset({ROOT}), everyone=False))
        super().__init__(lake, access=access, **settings)
        self.lake = lake
        self.allow(*acls)

    def allow(self, *acls):
        self.broker._context.access.take(AccessState(acls=frozenset(acls)))

    def ask(self, key, version, body=None, principal=ALICE, **sender):
        return super().ask(key, version, body, principal=principal, **sender)

    def produce(self, topics, version=9, **more):
        """{topic: [codes]}."""
        answer = self.ask(ApiKey.PRODUCE, version, encoded_produce(version, topics, **more))
        return {
            (one.name if version < 13 else one.topic_id): [int(p.error_code) for p in one.partition_responses]
            for one in answer.responses
        }


@pytest.fixture
def lake():
    lake = memory_lake()[0]
    lake.create_topic("t")
    lake.create_topic("u")
    return lake


@pytest.fixture
def requests(lake):
    with Guarded(lake) as requests:
        yield requests


# --- records -----------------------------------------------------------------------------------------------


def test_records_of_other_topics_are_appended(lake, requests):
    requests.allow(right("WRITE", TOPIC, "t"))
    assert requests.produce({"t": {0: batch(b"a")}, "u": {0: batch(b"b")}}) == {"t": [0], "u": [DENIED]}
    assert (read_back(lake), read_back(lake, "u")) == ({0: [b"a"]}, {0: []})


def test_a_topic_named_by_its_id_is_asked_for_by_its_name(lake, requests):
    requests.allow(right("WRITE", TOPIC, "t"))
    t, u, unknown = UUID(lake.topic("t").id), UUID(lake.topic("u").id), uuid4()
    topics = {t: {0: batch(b"a")}, u: {0: batch(b"b")}, unknown: {0: batch(b"c")}}
    assert requests.produce(topics, NEWEST_PRODUCE) == {t: [0], u: [DENIED], unknown: [100]}
    assert read_back(lake, "u") == {0: []}


def test_a_producer_that_wants_no_answer_loses_its_connection(lake, requests):
    with pytest.raises(UnacknowledgedError):
        requests.ask(ApiKey.PRODUCE, 9, encoded_produce(9, {"t": {0: batch(b"a")}}, acks=0))
    assert read_back(lake) == {0: []}


def test_a_topic_is_made_on_the_way_by_those_that_may_create_it(lake, requests):
    def make():
        body = {"topics": [{"name": "new"}], "allow_auto_topic_creation": True}
        (found,) = requests.ask(ApiKey.METADATA, 9, body).topics
        return int(found.error_code)

    requests.allow(right("WRITE", TOPIC, "new"))
    assert make() == DENIED
    assert requests.produce({"new": {0: batch(b"a")}}) == {"new": [UNKNOWN]}
    assert "new" not in lake.topics()
    requests.allow(right("WRITE", TOPIC, "new"), right("CREATE", CLUSTER))
    assert requests.produce({"new": {0: batch(b"a")}}) == {"new": [UNKNOWN]}
    assert make() == 0
    assert requests.produce({"new": {0: batch(b"a")}}) == {"new": [0]}


def test_a_transactional_id_is_asked_for(requests):
    records = batch(b"a", producer=(1, 0, 0), transactional=True)
    requests.allow(right("WRITE", TOPIC, "t"))
    assert requests.produce({"t": {0: records}}, transactional_id="x") == {"t": [53]}
    requests.allow(right("WRITE", TOPIC, "t"), right("WRITE", AclResource.TRANSACTIONAL_ID, "x"))
    assert requests.produce({"t": {0: records}}, transactional_id="x") != {"t": [53]}


@pytest.mark.parametrize("version", [4, 12, NEWEST_FETCH])
def test_records_of_other_topics_are_fetched(lake, requests, version):
    requests.allow(right("READ", TOPIC, "t"))
    append(lake, "t", b"a")
    append(lake, "u", b"b")
    t, u = (UUID(lake.topic(name).id) if version >= 13 else name for name in "tu")
    found = fetch(requests, {t: {0: 0}, u: {0: 0}}, version)
    assert [int(found[name, 0].error_code) for name in (t, u)] == [0, DENIED]
    assert found[t, 0].records
    assert not found[u, 0].records
    assert found[u, 0].high_watermark == -1


def test_a_topic_that_a_client_may_not_read_may_as_well_not_be_there(requests):
    assert {int(one.error_code) for one in fetch(requests, {"u": {0: 0}, "none": {0: 0}}, 12).values()} == {DENIED}


def test_a_session_ends_where_the_right_to_read_ends(lake, requests):
    requests.allow(right("READ", TOPIC, "t"))
    append(lake, "t", b"a")
    first = whole(requests, {"t": {0: 0}}, 12, session_epoch=0)
    requests.allow()
    follow_up = {"session_id": first.session_id, "session_epoch": 1}
    (answer,) = whole(requests, {}, 12, **follow_up).responses
    assert [int(p.error_code) for p in answer.partitions] == [DENIED]


def test_a_fetch_that_waits_gives_nothing_once_the_client_may_not_read(lake, requests):
    requests.allow(right("READ", TOPIC, "t"))
    asked = [{"topic": "t", "partitions": [{"partition": 0, "partition_max_bytes": 1 << 20, "fetch_offset": 0}]}]
    body = {"max_bytes": 1 << 25, "min_bytes": 1, "max_wait": 60_000, "session_epoch": -1, "topics": asked}

    async def run():
        task = asyncio.ensure_future(requests.answer(ApiKey.FETCH, 11, body, principal=ALICE))
        await settle()
        assert not task.done()
        requests.allow()
        append(lake, "t", b"secret")
        requests.broker._context.topics.committed("t")
        return await asyncio.wait_for(task, 10)

    (topic,) = requests.loop.run_until_complete(run()).responses
    assert [(int(p.error_code), bytes(p.records or b"")) for p in topic.partitions] == [(DENIED, b"")]


# --- metadata ----------------------------------------------------------------------------------------------


def metadata(requests, topics=None, version=12, **more):
    answer = requests.ask(ApiKey.METADATA, version, {"topics": topics, **more})
    return [(one.name, int(one.error_code)) for one in answer.topics]


def test_all_topics_are_those_that_a_client_may_see(requests):
    assert metadata(requests) == []
    requests.allow(right("DESCRIBE", TOPIC, "u"))
    assert metadata(requests) == [("u", 0)]
    requests.allow(right("READ", TOPIC, "", pattern=AclPattern.PREFIXED))
    assert metadata(requests) == [("t", 0), ("u", 0)]


def test_a_topic_named_is_denied_whether_it_is_there_or_not(requests):
    requests.allow(right("DESCRIBE", TOPIC, "t"), right("CREATE", TOPIC, "none"))
    topics = [{"name": name} for name in ("t", "u", "none")]
    found = metadata(requests, topics, allow_auto_topic_creation=True)
    assert found == [("t", 0), ("u", DENIED), ("none", DENIED)]


def test_an_id_does_not_give_a_name(lake, requests):
    requests.allow(right("DESCRIBE", TOPIC, "t"))
    ids = [UUID(lake.topic("t").id), UUID(lake.topic("u").id), uuid4()]
    assert metadata(requests, [{"topic_id": one, "name": None} for one in ids]) == [
        ("t", 0),
        (None, DENIED),
        (None, 100),
    ]


def test_pages_of_partitions_are_of_topics_that_a_client_may_see(requests):
    requests.allow(right("DESCRIBE", TOPIC, "u"))
    answer = requests.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"response_partition_limit": 10})
    assert [one.name for one in answer.topics] == ["u"]
    named = {"topics": [{"name": "t"}, {"name": "u"}], "response_partition_limit": 10}
    answer = requests.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, named)
    assert [(one.name, int(one.error_code), len(one.partitions)) for one in answer.topics] == [
        ("t", DENIED, 0),
        ("u", 0, 1),
    ]


def bits(*operations):
    return sum(1 << AclOperation[one] for one in operations)


def test_answers_say_which_operations_a_client_may_do(lake, requests):
    stable_group(lake, "g", {"m": [("t", 0)]})
    requests.allow(right("WRITE", TOPIC, "t"), right("DELETE", GROUP, "g"), right("ALTER", CLUSTER))
    told = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    answer = requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "t"}], **told})
    assert answer.topics[0].topic_authorized_operations == bits("WRITE", "DESCRIBE")
    assert answer.cluster_authorized_operations == bits("ALTER", "DESCRIBE")
    asked = {"include_cluster_authorized_operations": True, "endpoint_type": 1}
    answer = requests.ask(ApiKey.DESCRIBE_CLUSTER, 1, asked)
    assert answer.cluster_authorized_operations == bits("ALTER", "DESCRIBE")
    answer = requests.ask(ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["g"], "include_authorized_operations": True})
    assert answer.groups[0].authorized_operations == bits("DELETE", "DESCRIBE")
    requests.allow(right("CREATE", CLUSTER))  # which is no right to see the cluster
    assert requests.ask(ApiKey.DESCRIBE_CLUSTER, 1, asked).cluster_authorized_operations == 0


# --- topics ------------------------------------------------------------------------------------------------


def test_a_new_topics_configuration_is_hidden_from_those_that_may_not_describe_it(requests):
    requests.allow(right("CREATE", TOPIC, "a"), right("CREATE", TOPIC, "b"), right("DESCRIBE_CONFIGS", TOPIC, "b"))
    wanted = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in "abc"]
    found = {one.name: one for one in requests.ask(ApiKey.CREATE_TOPICS, 7, {"topics": wanted}).topics}
    assert {name: int(one.error_code) for name, one in found.items()} == {"a": 0, "b": 0, "c": DENIED}
    assert (found["a"].configs, found["a"].num_partitions, found["a"].topic_config_error_code) == (None, -1, DENIED)
    assert found["b"].configs
    assert found["b"].num_partitions == 2


def test_topics_are_deleted_by_id_and_names_are_kept_from_those_that_may_not_see_them(lake, requests):
    lake.create_topic("v")
    t, u, v, unknown = UUID(lake.topic("t").id), UUID(lake.topic("u").id), UUID(lake.topic("v").id), uuid4()
    requests.allow(right("DELETE", TOPIC, "t"), right("DESCRIBE", TOPIC, "u"))
    asked = [{"name": None, "topic_id": one} for one in (t, u, v, unknown)]
    answer = requests.ask(ApiKey.DELETE_TOPICS, 6, {"topics": asked, "timeout": 1000})
    found = {one.topic_id: (one.name, int(one.error_code)) for one in answer.responses}
    assert found[t] == ("t", 0)
    assert found[u] == ("u", DENIED)
    assert found[v] == (None, DENIED)
    assert found[unknown][1] == 100
    assert "v" not in "".join(one.error_message or "" for one in answer.responses if one.topic_id == v).split("'")
    assert lake.topics() == ["u", "v"]


def test_no_topic_is_deleted_by_an_id_that_is_known_only_after_the_guard_has_looked(lake, requests, monkeypatch):
    topics = requests.broker._context.topics
    look, looks = topics.by_id, []

    async def late(topic_id):
        looks.append(topic_id)
        return None if len(looks) == 1 else await look(topic_id)

    monkeypatch.setattr(topics, "by_id", late)
    u = UUID(lake.topic("u").id)
    (told,) = requests.ask(ApiKey.DELETE_TOPICS, 6, {"topics": [{"topic_id": u}], "timeout": 1000}).responses
    assert (told.name, told.topic_id, int(told.error_code)) == (None, u, 100)
    assert lake.topics() == ["t", "u"]


def test_configurations_are_described_one_by_one(requests):
    requests.allow(right("DESCRIBE_CONFIGS", TOPIC, "t"))
    asked = [(2, "t"), (2, "u"), (4, "1"), (32, "g")]
    body = {"resources": [{"resource_type": kind, "resource_name": name} for kind, name in asked]}
    answer = requests.ask(ApiKey.DESCRIBE_CONFIGS, 4, body)
    assert {(one.resource_type, one.resource_name): int(one.error_code) for one in answer.results} == {
        (2, "t"): 0, (2, "u"): 29, (4, "1"): 31, (32, "g"): 30,
    }  # fmt: skip


# --- groups ------------------------------------------------------------------------------------------------


def test_groups_are_listed_that_a_client_may_see(lake, requests):
    for name in ("g", "h"):
        stable_group(lake, name, {"m": [("t", 0)]})

    def listed():
        answer = requests.ask(ApiKey.LIST_GROUPS, 4)
        return int(answer.error_code), [one.group_id for one in answer.groups]

    assert listed() == (0, [])
    requests.allow(right("DESCRIBE", GROUP, "h"))
    assert listed() == (0, ["h"])
    requests.allow(right("DESCRIBE", CLUSTER))
    assert listed() == (0, ["g", "h"])


def committed(lake):
    offsets = {("t", 0): CommittedOffset(1, "", -1), ("u", 0): CommittedOffset(2, "", -1)}
    log = stable_group(lake, "g", {"m": [("t", 0)]})
    log.decide("g", lambda view: Decision(response=None, offsets=offsets))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("version", [5, 9, 10])
def test_offsets_are_fetched_of_topics_that_a_client_may_see(lake, requests, version, named):
    committed(lake)
    requests.allow(right("READ", GROUP, "g"), right("DESCRIBE", TOPIC, "t"))
    keys = {name: {"topic_id": UUID(lake.topic(name).id)} if version >= 10 else {"name": name} for name in "tu"}
    topics = [{**keys[name], "partition_indexes": [0]} for name in "tu"] if named else None
    body = {"groups": [{"group_id": "g", "topics": topics}]} if version >= 8 else {"group_id": "g", "topics": topics}
    answer = requests.ask(ApiKey.OFFSET_FETCH, version, body)
    of_group = answer.groups[0] if version >= 8 else answer
    found = [
        (getattr(one, "topic_id", None) or one.name, p.committed_offset, int(p.error_code))
        for one in of_group.topics
        for p in one.partitions
    ]
    t, u = (next(iter(keys[name].values())) for name in "tu")
    assert found == [(t, 1, 0), *([(u, -1, DENIED)] if named else [])]


def test_offsets_of_other_topics_are_committed(lake, requests):
    committed(lake)
    requests.allow(right("READ", GROUP, "g"), right("READ", TOPIC, "t"))
    topics = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 0}]} for name in "tu"]
    body = {"group_id": "g", "member_id": "other", "generation_id_or_member_epoch": 1, "topics": topics}
    answer = requests.ask(ApiKey.OFFSET_COMMIT, 8, body)
    assert {one.name: int(one.partitions[0].error_code) for one in answer.topics} == {"t": 25, "u": DENIED}


# --- what decides ------------------------------------------------------------------------------------------


def test_a_denial_wins_and_super_users_may_do_everything(requests):
    requests.allow(right("ALL", TOPIC, "*"), right("DESCRIBE", TOPIC, "u", AclPermission.DENY))
    assert metadata(requests) == [("t", 0)]
    answer = requests.ask(ApiKey.METADATA, 12, {"topics": None}, principal=ROOT)
    assert [one.name for one in answer.topics] == ["t", "u"]


def test_a_broker_that_is_open_asks_nothing(lake, monkeypatch):
    asked = []
    with Guarded(lake, access=AccessSettings()) as requests:
        monkeypatch.setattr(type(requests.broker._context.access), "allows", lambda *call: asked.append(call))
        monkeypatch.setattr(guard, "GuardedRequest", lambda *call: asked.append(call))
        assert requests.ask(ApiKey.LIST_OFFSETS, 7, {"replica_id": -1, "topics": []}).topics == ()
        assert requests.produce({"t": {0: batch(b"a")}}) == {"t": [0]}
        assert fetch(requests, {"t": {0: 0}}, 12)["t", 0].records
        assert not asked
        requests.allow(right("READ", TOPIC, "t"))
        with pytest.raises(AttributeError):
            requests.ask(ApiKey.LIST_OFFSETS, 7, {"replica_id": -1, "topics": []})
        assert asked


def test_a_topic_with_many_partitions_is_asked_about_once(lake, monkeypatch):
    lake.create_topic("many", 50)
    with Guarded(lake, right("READ", TOPIC, "many"), right("WRITE", TOPIC, "many")) as requests:
        access, asked = requests.broker._context.access, []
        ask = access.verdict
        monkeypatch.setattr(access, "verdict", lambda peer, *what: asked.append(what) or ask(peer, *what))
        assert requests.produce({"many": {p: batch(b"a") for p in range(50)}}) == {"many": [0] * 50}
        assert len(fetch(requests, {"many": dict.fromkeys(range(50), 0)}, 12)) == 50
        operations = [operation for operation, *_ in asked if operation in (AclOperation.READ, AclOperation.WRITE)]
        assert operations == [AclOperation.WRITE, AclOperation.READ]


def test_a_topics_acls_count_where_none_is_about_the_cluster(lake):
    """What no ACL is about is everyone's here; that is no right to what ACLs are about."""
    hers = Acl(TOPIC, AclPattern.LITERAL, "t", "User:bob", "*", AclOperation.ALL, AclPermission.ALLOW)
    new = Acl(TOPIC, AclPattern.LITERAL, "new", "User:bob", "*", AclOperation.ALL, AclPermission.ALLOW)
    group = Acl(GROUP, AclPattern.LITERAL, "g", "User:bob", "*", AclOperation.ALL, AclPermission.ALLOW)
    stable_group(lake, "g", {"m": [("t", 0)]})
    with Guarded(lake, hers, new, group, access=AccessSettings(everyone=True)) as requests:
        deleted = requests.ask(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["t", "u"]}).responses
        assert {one.name: int(one.error_code) for one in deleted} == {"t": DENIED, "u": 0}
        wanted = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("new", "other")]
        created = requests.ask(ApiKey.CREATE_TOPICS, 7, {"topics": wanted}).topics
        assert {one.name: int(one.error_code) for one in created} == {"new": DENIED, "other": 0}
        assert metadata(requests, [{"name": "new"}], allow_auto_topic_creation=True) == [("new", DENIED)]
        assert requests.ask(ApiKey.LIST_GROUPS, 4).groups == ()


# --- between brokers ---------------------------------------------------------------------------------------


def handed_over(requests, listener, principal):
    handler = requests.broker.handlers[ApiKey.HAND_OVER]
    call = Call(ApiKey.HAND_OVER, 0, None, b"not a hand-over", Peer(listener, "", principal), 0.0)

    async def run():
        reply = await handler(call)
        return decode_answer(b"\0" * 4 + b"".join(reply.pieces))

    return requests.loop.run_until_complete(run())


@pytest.mark.parametrize(
    ("listener", "principal", "goes_on"),
    [("CLIENTS", ALICE, False), ("CLIENTS", "User:ANONYMOUS", False), ("CLIENTS", ROOT, True), (LISTENER, ALICE, True)],
)
def test_brokers_alone_hand_over(lake, listener, principal, goes_on):
    """By their own listener, which shows no credentials here, or with the right to act for the cluster."""
    clients = ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=("SCRAM-SHA-512",))
    listeners = {LISTENER: ListenerSettings("127.0.0.1", 0), "CLIENTS": clients}
    with Guarded(lake, listeners=listeners, inter_broker=LISTENER) as requests:
        if goes_on:
            with pytest.raises(Exception, match="can't be read"):
                handed_over(requests, listener, principal)
        else:
            assert handed_over(requests, listener, principal).outcome is CommitOutcome.REFUSED
