"""How ACLs, quotas and tenants are shown: a row each, and JSON documents."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import RenderableType

from tidelog.access.model import Acl, acl_fields
from tidelog.access.quotas import Entity, Quota
from tidelog.access.state import Tenant
from tidelog.commands.terminal import DASH, table


def acls_table(acls: Iterable[Acl]) -> RenderableType:
    """A row for each ACL."""
    columns = ["RESOURCE", "PATTERN", "NAME", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]
    return table(columns, [tuple(acl_fields(acl).values()) for acl in acls])


def quota_json(entity: Entity, limits: Mapping[Quota, float]) -> dict[str, Any]:
    """The limits of an entity as a JSON document; None for what it is not about."""
    of = {"user": entity.user, "client_id": entity.client_id, "ip": entity.ip}
    return {**of, "limits": {quota.value: limit for quota, limit in sorted(limits.items())}}


def quotas_table(quotas: Iterable[tuple[Entity, Mapping[Quota, float]]]) -> RenderableType:
    """A row for each limit."""
    return table(
        ["USER", "CLIENT-ID", "IP", "QUOTA", ">RATE"],
        [
            (entity.user or DASH, entity.client_id or DASH, entity.ip or DASH, quota.value, _rate(limit))
            for entity, limits in quotas
            for quota, limit in sorted(limits.items())
        ],
    )


def tenant_json(tenant: Tenant) -> dict[str, Any]:
    """A tenant as a JSON document."""
    limits = {quota.value: limit for quota, limit in sorted(tenant.limits.items())}
    return {"name": tenant.name, "prefix": tenant.prefix, "users": list(tenant.users), "quotas": limits}


def tenants_table(tenants: Iterable[Tenant]) -> RenderableType:
    """A row for each tenant."""
    return table(
        ["TENANT", "PREFIX", "USERS", "QUOTAS OF EACH"],
        [
            (
                tenant.name,
                tenant.prefix,
                ", ".join(tenant.users),
                ", ".join(f"{quota}={_rate(limit)}" for quota, limit in sorted(tenant.limits.items())) or DASH,
            )
            for tenant in tenants
        ],
    )


def _rate(limit: float) -> str:
    return str(int(limit)) if limit.is_integer() else str(limit)
