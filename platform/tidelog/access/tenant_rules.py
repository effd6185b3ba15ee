"""The rules of tenants: a prefix of names, the users that have it, and their quotas, in one entry. All pure.

A tenant is a row, and the ACLs and quotas that follow from it, which hold like others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidelog.access import quotas
from tidelog.access.decisions import changed_limits, limit_rows
from tidelog.access.model import ANY_HOST, Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import Entity, Quota
from tidelog.access.rows import acl_row, removed, tenant_row
from tidelog.access.rules import require_user
from tidelog.access.state import AccessState, Tenant, TenantExistsError, UnknownTenantError
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row
from tidelog.log.rules import names

# What a tenant's names are names of.
RESOURCES: Final = (AclResource.TOPIC, AclResource.GROUP, AclResource.TRANSACTIONAL_ID)


def acls_of(tenant: Tenant) -> frozenset[Acl]:
    """The ACLs that follow from a tenant: its users may do all to what its prefix names."""
    return frozenset(
        Acl(
            resource,
            AclPattern.PREFIXED,
            tenant.prefix,
            f"User:{user}",
            ANY_HOST,
            AclOperation.ALL,
            AclPermission.ALLOW,
        )
        for user in tenant.users
        for resource in RESOURCES
    )


def decide_create_tenant(state: AccessState, tenant: Tenant) -> RowOutcome[Tenant]:
    """Create a tenant with its ACLs and quotas. A repeat changes nothing.

    Raises `TenantExistsError` for a name, a prefix or a user that is another's, `InvalidConfigError` for a prefix or
    a limit that can't be, `UnacceptableCredentialError` for a user's name.
    """
    existing_tenant = state.tenants.get(tenant.name)
    if existing_tenant == tenant:
        return RowOutcome((), tenant)
    if existing_tenant is not None:
        raise TenantExistsError(
            f"There is a tenant '{tenant.name}' already, with the prefix '{existing_tenant.prefix}'. Change it"
            " ('tidelog tenant alter'), or give another name."
        )
    _require_valid(state, tenant)
    return RowOutcome(_rows(state, None, tenant), tenant)


def decide_alter_tenant(
    state: AccessState,
    name: str,
    *,
    add_users: Iterable[str] = (),
    remove_users: Iterable[str] = (),
    limits: Mapping[Quota, float | None] | None = None,
) -> RowOutcome[Tenant]:
    """Change whose a tenant is, and its limits (None takes one away). The prefix stays: topics have it in their names.

    ACLs and quotas of the tenant that were removed by hand come back. Raises `UnknownTenantError`, and as
    `decide_create_tenant`.
    """
    before = _require(state, name)
    gone = set(remove_users)
    users = tuple(dict.fromkeys(user for user in (*before.users, *add_users) if user not in gone))
    merged = {**before.limits, **(limits or {})}
    kept = {quota: limit for quota, limit in merged.items() if limit is not None}
    after = replace(before, users=users, limits=kept)
    _require_valid(state, after)
    return RowOutcome(_rows(state, before, after), after)


def decide_remove_tenant(state: AccessState, name: str) -> RowOutcome[Tenant]:
    """Remove a tenant with its ACLs and quotas; topics, groups and users stay. Raises `UnknownTenantError`."""
    tenant = _require(state, name)
    return RowOutcome(_rows(state, tenant, None), tenant)


def _require(state: AccessState, name: str) -> Tenant:
    if name not in state.tenants:
        raise UnknownTenantError(f"There is no tenant '{name}'. 'tidelog tenant list' names those there are.")
    return state.tenants[name]


def _require_valid(state: AccessState, tenant: Tenant) -> None:
    if not tenant.name.strip() or not tenant.name.isprintable():
        raise InvalidConfigError(
            f"{tenant.name!r} can't be a tenant's name: it has at least one character, and none that can't be seen."
        )
    # A lone '_' begins tidelog's own names, too.
    if names.why_invalid(f"{tenant.prefix}x") or not tenant.prefix or names.is_internal(f"{tenant.prefix}_"):
        raise InvalidConfigError(
            f"{tenant.prefix!r} can't begin the names of a tenant's topics: give ASCII letters, digits, '.', '_' and"
            " '-', neither '_' alone nor '__' first; best with a '.' or '-' at its end."
        )
    if not tenant.users:
        raise InvalidConfigError(f"Tenant '{tenant.name}' has no user, and so no use. Give one.")
    for user in tenant.users:
        require_user(user)
        quotas.require_valid(Entity(user), tenant.limits)
    for other in state.tenants.values():
        if other.name != tenant.name:
            _require_apart(tenant, other)


def _require_apart(tenant: Tenant, other: Tenant) -> None:
    if tenant.prefix.startswith(other.prefix) or other.prefix.startswith(tenant.prefix):
        raise TenantExistsError(
            f"The prefix '{tenant.prefix}' would share names with tenant '{other.name}', whose prefix is"
            f" '{other.prefix}': one of them would see the other's topics. Give a prefix that begins otherwise."
        )
    shared = sorted(set(tenant.users) & set(other.users))
    if shared:
        raise TenantExistsError(
            f"User '{shared[0]}' belongs to tenant '{other.name}'. A user belongs to one tenant, since a quota counts"
            " by user: give another user, or let this one use single topics ('tidelog acl add')."
        )


def _rows(state: AccessState, before: Tenant | None, after: Tenant | None) -> Sequence[Row]:
    """What makes one of the other, ACLs and quotas included; None: no tenant."""
    old = frozenset() if before is None else acls_of(before)
    new = frozenset() if after is None else acls_of(after)
    rows: list[Row] = [removed(acl_row(acl)) for acl in sorted((old - new) & state.acls)]
    rows.extend(acl_row(acl) for acl in sorted(new - state.acls))
    for user in dict.fromkeys((*(before.users if before else ()), *(after.users if after else ()))):
        changes: dict[Quota, float | None] = dict.fromkeys(before.limits if before and user in before.users else ())
        changes |= after.limits if after and user in after.users else {}
        entity = Entity(user)
        rows.extend(limit_rows(state, entity, changed_limits(state, entity, changes)))
    if after is not None and after != before:
        rows.append(tenant_row(after))
    elif after is None and before is not None:
        rows.append(removed(tenant_row(before)))
    return rows
