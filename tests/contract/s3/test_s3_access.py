"""Access on an object store: kept below another root by the same options, and exported policies that do what they say.

The server is our own: it decides each request by the policies that `acl export --iam` wrote.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import pytest
from support.logs import values
from support.small_s3 import SmallS3, small_s3

from tidelog.access.access_log import AccessLog
from tidelog.access.iam_policy import iam_policies
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.state import Tenant
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StoragePermissionError
from tidelog.log.lake import Lake

URI = "s3://company/data/lake"
ROOT = "s3://locked/access"


@pytest.fixture
def server() -> Iterator[SmallS3]:
    with small_s3(now=lambda: datetime.now(UTC)) as running:
        with lake_on(running) as lake:
            for topic in ("sales.orders", "other"):
                lake.create_topic(topic)
                lake.topic(topic).append(values("a"))
            AccessLog(lake).create_tenant(Tenant("sales", "sales.", ("sales",)))
        yield running


def lake_on(server: SmallS3) -> Lake:
    return Lake(URI, options=server.options)


def obey(server: SmallS3, policy: Mapping[str, Any]) -> None:
    """From now on the server decides as IAM does: a denial wins, and what nothing allows is denied."""

    def permits(action: str, resource: str) -> bool:
        effects = {
            statement["Effect"]
            for statement in policy["Statement"]
            for covered in statement["Resource"]
            if action in statement["Action"] and fnmatchcase(f"arn:aws:s3:::{resource}", covered)
        }
        return effects == {"Allow"}

    server.permits = permits


def policy_of(server: SmallS3, principal: str, *acls: Acl) -> Mapping[str, Any]:
    with lake_on(server) as lake:
        log = AccessLog(lake)
        log.add_acls(acls)
        return iam_policies(log.look(), URI).policies[principal]


def test_a_tenant_does_its_work_by_its_policy_and_no_more(server: SmallS3) -> None:
    obey(server, policy_of(server, "User:sales"))
    with lake_on(server) as lake:
        lake.topic("sales.orders").append(values("b"))
        assert sum(b.num_rows for b in lake.topic("sales.orders").read(0)) == 2
        lake.create_topic("sales.new")
        LoggedPositions(GroupLog(lake)).publish("sales.g", {"sales.orders": {0: 1}})
        for refused in (
            lambda: list(lake.topic("other").read(0)),
            lambda: lake.topic("other").append(values("x")),
            AccessLog(lake).look,
            lambda: AccessLog(lake).remove_tenant("sales"),
            lambda: lake.alter_config({"num.partitions": "7"}),
        ):
            with pytest.raises(StoragePermissionError):
                refused()


def test_a_policy_for_all_topics_keeps_the_table_of_access_closed(server: SmallS3) -> None:
    every = Acl(AclResource.TOPIC, AclPattern.LITERAL, "*", "User:ann", "*", AclOperation.ALL, AclPermission.ALLOW)
    obey(server, policy_of(server, "User:ann", every))
    with lake_on(server) as lake:
        lake.topic("other").append(values("x"))
        with pytest.raises(StoragePermissionError):
            AccessLog(lake).look()
        with pytest.raises(StoragePermissionError):
            AccessLog(lake).add_acls([every])


def test_another_root_is_reached_by_the_lakes_options_and_can_be_locked(server: SmallS3) -> None:
    with lake_on(server) as lake:
        lake.alter_config({"access.root": ROOT})
        log = AccessLog(lake)
        log.create_tenant(Tenant("crm", "crm.", ("crm",)))
        log.close()
    assert [path for path in server.objects if path.startswith("/locked/access/__access/_delta_log/")]
    server.permits = lambda _, resource: not resource.startswith("locked")
    with lake_on(server) as lake:
        lake.topic("other").append(values("x"))
        with pytest.raises(StoragePermissionError):
            AccessLog(lake).look()
        assert AccessLog(lake).tables() == []
    server.permits = lambda *_: True
    with lake_on(server) as lake:
        assert list(AccessLog(lake).look().tenants) == ["crm"]
