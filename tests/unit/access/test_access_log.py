"""The table `__access`: written, read, checked, kept elsewhere, and in the way of no topic."""

import pytest
from support.logs import memory_lake, open_lake

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.model import Acl, AclFilter, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import Entity, Quota
from tidelog.access.state import AccessState, Tenant, UnknownCredentialError
from tidelog.check.lake import check_lake
from tidelog.log.base.errors import InvalidConfigError, InvalidTopicError, LakeNotFoundError
from tidelog.log.lake import Lake
from tidelog.log.storage import memory_storage

PASSWORD = "pa55-w0rd-planted"
SCRAM = credential(ScramMechanism.SHA_512, PASSWORD, b"salt" * 4)
ALICE = Entity("alice")


def acl(name: str) -> Acl:
    return Acl(AclResource.TOPIC, AclPattern.LITERAL, name, "User:alice", "*", AclOperation.READ, AclPermission.ALLOW)


@pytest.fixture
def lake() -> Lake:
    made, _, _ = memory_lake()
    return made


def again(lake: Lake) -> AccessLog:
    return AccessLog(open_lake(lake.storage, lake.clock))


def test_nothing_is_known_before_the_first_write(lake):
    log = AccessLog(lake)
    assert (log.seen(), log.tables()) == ((-1, AccessState()), [])
    assert log.add_acls([]) == []
    assert "__access" not in lake.storage.list_folders("")


def test_other_processes_see_what_is_decided(lake):
    one, other = AccessLog(lake), again(lake)
    assert one.add_acls([acl("a"), acl("b")]) == [acl("a"), acl("b")]
    assert other.delete_acls([AclFilter(name="a")]) == [[acl("a")]]
    one.upsert_scram("alice", SCRAM)
    other.upsert_scram("bob", SCRAM)
    other.delete_scram("alice", ScramMechanism.SHA_512)
    with pytest.raises(UnknownCredentialError):
        one.delete_scram("alice", ScramMechanism.SHA_512)
    assert one.delete_user("bob") == [ScramMechanism.SHA_512]
    assert other.alter_quotas({ALICE: {Quota.REQUEST_PERCENTAGE: 50.0}}) == {ALICE: {Quota.REQUEST_PERCENTAGE: 50.0}}
    secret = other.ensure_secret()
    assert len(secret) == 32
    assert one.look() == AccessState(frozenset({acl("b")}), {}, {ALICE: {Quota.REQUEST_PERCENTAGE: 50.0}}, {}, secret)
    assert one.seen() == other.seen()


def test_tenants_are_made_changed_and_removed(lake):
    one, other = AccessLog(lake), again(lake)
    tenant = one.create_tenant(Tenant("sales", "sales.", ("ann",)))
    assert other.look().tenants == {"sales": tenant}
    changed = other.alter_tenant("sales", add_users=["bo"], limits={Quota.PRODUCER_BYTE_RATE: 1.0})
    assert one.look().tenants == {"sales": changed}
    assert len(one.look().acls) == 6
    before = one.seen()[0]
    one.remove_tenant("sales")
    assert (other.look(), other.seen()[0]) == (AccessState(), before + 1)


def test_the_table_holds_no_password(lake):
    AccessLog(lake).upsert_scram("alice", SCRAM)
    lake.close()
    objects = [o.path for folder in ("__access/_delta_log", "__access/rows") for o in lake.storage.list_after(folder)]
    assert any(b"alice" in lake.storage.get(path) for path in objects)
    assert not [path for path in objects if PASSWORD.encode() in lake.storage.get(path)]


def test_a_log_with_a_checkpoint_says_the_same(lake):
    log = AccessLog(lake)
    for n in range(170):
        log.add_acls([acl(f"t{n}")])
        log.delete_acls([AclFilter(name=f"t{n - 5}")])
    lake.close()
    assert any("checkpoint" in o.path for o in lake.storage.list_after("__access/_delta_log"))
    assert again(lake).look() == log.look()
    assert {one.name for one in log.look().acls} == {f"t{n}" for n in range(165, 170)}


@pytest.mark.parametrize("deep", [False, True])
def test_check_knows_the_table(lake, deep):
    log = AccessLog(lake)
    log.upsert_scram("alice", SCRAM)
    log.create_tenant(Tenant("sales", "sales.", ("ann",), {Quota.PRODUCER_BYTE_RATE: 1.0}))
    report = check_lake(lake, deep=deep)
    assert report.green
    assert [topic.topic for topic in report.topics] == ["__access"]


def test_check_finds_a_row_that_is_no_acl(lake):
    AccessLog(lake).add_acls([acl("a")])
    path = next(o.path for o in lake.storage.list_after("__access/_delta_log") if o.path.endswith("1.json"))
    lake.storage.put(path, lake.storage.get(path).replace(b'"ALLOW"', b'"MAYBE"'))
    assert any("MAYBE" in finding.what for finding in check_lake(lake).findings)


def test_no_topic_takes_the_tables_name(lake):
    with pytest.raises(InvalidTopicError, match="tidelog keeps a table of its own under that name"):
        lake.create_topic("__access")


# --- another root ------------------------------------------------------------------------------------------


def test_access_is_kept_below_another_root(lake):
    lake.alter_config({"access.root": "memory://locked-away"})
    log = AccessLog(lake)
    log.upsert_scram("alice", SCRAM)
    assert "__access" in memory_storage("locked-away").list_folders("")
    assert "__access" not in lake.storage.list_folders("")
    assert again(lake).look() == log.look()
    assert log.tables() == []  # the other root is a lake that is maintained and checked by itself
    assert check_lake(Lake("memory://locked-away", create=False), deep=True).green
    assert AccessLog(open_lake(lake.storage, lake.clock)).tables() == []
    log.close()
    assert log.look().scram == {("alice", ScramMechanism.SHA_512): SCRAM}


def test_a_root_where_nothing_is_does_not_look_like_access_without_rules(lake):
    lake.alter_config({"access.root": "memory://mistyped"})
    log = AccessLog(lake)
    with pytest.raises(LakeNotFoundError, match=r"access.root is memory://mistyped, and nothing is kept there"):
        log.look()
    log.add_acls([acl("a")])
    assert log.look().acls == {acl("a")}


def test_a_role_that_may_not_see_the_other_root_maintains_the_lake(lake, monkeypatch):
    lake.alter_config({"access.root": "memory://not-for-maintenance"})

    def refuse(*_, **__):
        raise AssertionError("the other root was opened")

    monkeypatch.setattr("tidelog.access.access_log.Lake", refuse)
    assert AccessLog(lake).tables() == []


@pytest.mark.parametrize("root", ["locked", "./locked", "../locked", "http://x/y", "s3://"])
def test_roots_that_every_process_would_find_elsewhere_or_nowhere(lake, root):
    with pytest.raises(InvalidConfigError, match=r"Invalid value .* for configuration access.root"):
        lake.alter_config({"access.root": root})


@pytest.mark.parametrize(("root", "kept"), [("s3://b/access/", "s3://b/access"), ("/data/access", "/data/access")])
def test_roots_that_may_be(lake, root, kept):
    assert lake.alter_config({"access.root": root}).access_root == kept
    assert lake.alter_config({"access.root": ""}).access_root == ""
