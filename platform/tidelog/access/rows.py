"""Access as rows: the columns of `__access`, and the fold of its rows (docs/format.md, "Access")."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Self

import pyarrow as pa

from tidelog.access.credentials import ScramCredential, ScramMechanism
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource, acl_fields, is_network
from tidelog.access.quotas import Entity, Quota
from tidelog.access.state import AccessState, Tenant
from tidelog.log.rows.schema import Row, RowSchema, list_of
from tidelog.log.rows.state import RowKind

ACL, SCRAM, QUOTA, TENANT, SECRET = "acl", "scram", "quota", "tenant", "secret"
CLIENT_METRICS: Final = "client_metrics"

SCHEMA = RowSchema(
    {
        "kind": pa.string(),
        # acl
        "resource": pa.string(),
        "pattern": pa.string(),
        "name": pa.string(),  # and of a tenant, and of a subscription of clients' metrics
        "principal": pa.string(),
        "host": pa.string(),
        "operation": pa.string(),
        "permission": pa.string(),
        # scram; `user` of a quota, too
        "user": pa.string(),
        "mechanism": pa.string(),
        "salt": pa.binary(),
        "stored_key": pa.binary(),
        "server_key": pa.binary(),
        "iterations": pa.int32(),
        # quota; `limits` of a tenant's users, too
        "client_id": pa.string(),
        "ip": pa.string(),
        "limits": list_of(name=pa.string(), value=pa.string()),
        # tenant
        "prefix": pa.string(),
        "users": list_of(name=pa.string()),
        # secret
        "secret": pa.binary(),
        "deleted": pa.bool_(),
    },
    growth=(
        {
            # client_metrics: what is set of its keys
            "keys": list_of(name=pa.string(), value=pa.string()),
            # acl: true where the host is a network, which programs before this version take for an address
            "network": pa.bool_(),
        },
    ),
)

# {kind: the columns that name what a row is about}
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    ACL: ("resource", "pattern", "name", "principal", "host", "operation", "permission"),
    SCRAM: ("user", "mechanism"),
    QUOTA: ("user", "client_id", "ip"),
    TENANT: ("name",),
    SECRET: (),
    CLIENT_METRICS: ("name",),
}


def key(row: Row) -> Hashable:
    """A row's key: what it is about."""
    return (row["kind"], *(row.get(column) for column in _KEYS[row["kind"]]))


class AccessFold:
    """The newest row of each thing."""

    def __init__(self, state: AccessState | None = None) -> None:
        self.state = state or AccessState()

    def take(self, rows: Sequence[Row]) -> None:
        """Apply rows, in log order."""
        acls, scram = set(self.state.acls), dict(self.state.scram)
        quotas, tenants, secret = dict(self.state.quotas), dict(self.state.tenants), self.state.secret
        client_metrics = self.state.client_metrics

        def of_acl(row: Row, *, there: bool) -> None:
            (acls.add if there else acls.discard)(_acl(row))

        def of_scram(row: Row, *, there: bool) -> None:
            of = row["user"], ScramMechanism(row["mechanism"])
            _put(scram, of, _credential(row) if there else None)

        def of_quota(row: Row, *, there: bool) -> None:
            _put(quotas, _entity(row), _limits(row) if there else None)

        def of_tenant(row: Row, *, there: bool) -> None:
            _put(tenants, row["name"], _tenant(row) if there else None)

        def of_secret(row: Row, *, there: bool) -> None:
            nonlocal secret
            secret = row["secret"] if there else b""

        def of_client_metrics(row: Row, *, there: bool) -> None:
            nonlocal client_metrics  # as it was, unless it changes: brokers look whether it is another one
            client_metrics = {name: keys for name, keys in client_metrics.items() if name != row["name"]}
            if there:
                client_metrics[row["name"]] = {one["name"]: one["value"] for one in row["keys"]}

        takes: dict[str, Callable[..., None]] = {
            ACL: of_acl,
            SCRAM: of_scram,
            QUOTA: of_quota,
            TENANT: of_tenant,
            SECRET: of_secret,
            CLIENT_METRICS: of_client_metrics,
        }
        for row in rows:
            takes[row["kind"]](row, there=not row.get("deleted"))
        self.state = AccessState(frozenset(acls), scram, quotas, tenants, secret, client_metrics)

    def fork(self) -> Self:
        """One that goes its own way from here."""
        return type(self)(self.state)

    def __len__(self) -> int:
        return len(self.state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccessFold) and self.state == other.state

    __hash__ = None  # type: ignore[assignment] # it changes


KIND: RowKind[AccessFold] = RowKind("access", SCHEMA, AccessFold, key)


def removed(row: Row) -> Row:
    """The row that takes away what another one says."""
    return {"kind": row["kind"], **{name: row[name] for name in _KEYS[row["kind"]] if name in row}, "deleted": True}


# --- to rows and back --------------------------------------------------------------------------------------


def acl_row(acl: Acl) -> Row:
    """The row of an ACL. All of it is its key."""
    row = {"kind": ACL, **acl_fields(acl)}
    return {**row, "network": True} if is_network(acl.host) else row


def scram_row(user: str, credential: ScramCredential) -> Row:
    """The row of a user's credential of one mechanism."""
    return {
        "kind": SCRAM,
        "user": user,
        "mechanism": credential.mechanism.value,
        "salt": credential.salt,
        "stored_key": credential.stored_key,
        "server_key": credential.server_key,
        "iterations": credential.iterations,
    }


def quota_row(entity: Entity, limits: Mapping[Quota, float]) -> Row:
    """The row of all limits of an entity; without any, the one that takes them away."""
    of = {name: getattr(entity, name) for name in _KEYS[QUOTA] if getattr(entity, name) is not None}
    if not limits:
        return {"kind": QUOTA, **of, "deleted": True}
    return {"kind": QUOTA, **of, "limits": _limit_rows(limits)}


def tenant_row(tenant: Tenant) -> Row:
    """The row of a tenant."""
    users = [{"name": name} for name in tenant.users]
    limits = _limit_rows(tenant.limits)
    return {"kind": TENANT, "name": tenant.name, "prefix": tenant.prefix, "users": users, "limits": limits}


def client_metrics_row(name: str, keys: Mapping[str, str]) -> Row:
    """The row of a subscription of clients' metrics; without any key, the one that takes it away."""
    if not keys:
        return {"kind": CLIENT_METRICS, "name": name, "deleted": True}
    return {"kind": CLIENT_METRICS, "name": name, "keys": [{"name": k, "value": v} for k, v in sorted(keys.items())]}


def secret_row(secret: bytes) -> Row:
    """The row of the server's secret."""
    return {"kind": SECRET, "secret": secret}


def _put(mapping: dict[Any, Any], of: object, value: object) -> None:
    if value is None:
        mapping.pop(of, None)
    else:
        mapping[of] = value


def _acl(row: Row) -> Acl:
    return Acl(
        AclResource[row["resource"]],
        AclPattern[row["pattern"]],
        row["name"],
        row["principal"],
        row["host"],
        AclOperation[row["operation"]],
        AclPermission[row["permission"]],
    )


def _credential(row: Row) -> ScramCredential:
    mechanism = ScramMechanism(row["mechanism"])
    return ScramCredential(mechanism, row["salt"], row["stored_key"], row["server_key"], row["iterations"])


def _tenant(row: Row) -> Tenant:
    users = tuple(one["name"] for one in row.get("users") or ())
    return Tenant(row["name"], row["prefix"], users, _limits(row))


def _limit_rows(limits: Mapping[Quota, float]) -> list[Row]:
    return [{"name": quota.value, "value": repr(limit)} for quota, limit in sorted(limits.items())]


def _limits(row: Row) -> dict[Quota, float]:
    return {Quota(one["name"]): float(one["value"]) for one in row.get("limits") or ()}


def _entity(row: Row) -> Entity:
    return Entity(row.get("user"), row.get("client_id"), row.get("ip"))
