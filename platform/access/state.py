"""All that is known of principals, as of one entry of the log: ACLs, credentials, quotas, tenants."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.access.credentials import ScramCredential, ScramMechanism
from tidelog.access.model import Acl
from tidelog.access.quotas import Entity, Quota


@dataclass(frozen=True, slots=True)
class Tenant:
    """A team that shares a cluster with others: its topics, groups and transactional ids begin with `prefix`.

    `users`: names without "User:". What it may do and how much are ACLs and quotas like others.
    """

    name: str
    prefix: str
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessState:
    """The newest of everything. Immutable.

    `scram`: {(user, mechanism): credential}, users without "User:". `secret`: what credentials of unknown users are
    made of; b"" before there is one.
    """

    acls: frozenset[Acl] = frozenset()
    scram: Mapping[tuple[str, ScramMechanism], ScramCredential] = field(default_factory=dict)
    quotas: Mapping[Entity, Mapping[Quota, float]] = field(default_factory=dict)
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    secret: bytes = b""

    def __len__(self) -> int:
        return len(self.acls) + len(self.scram) + len(self.quotas) + len(self.tenants) + bool(self.secret)
