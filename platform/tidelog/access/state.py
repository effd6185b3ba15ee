"""All that brokers know of principals and clients, as of one entry of the log: ACLs, credentials, quotas, tenants."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.access.credentials import ScramCredential, ScramMechanism
from tidelog.access.model import Acl
from tidelog.access.quotas import Entity, Quota
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode


class UnknownCredentialError(TidelogError, kafka_code=KafkaCode.RESOURCE_NOT_FOUND):
    """The user has no such credential."""


class UnacceptableCredentialError(TidelogError, kafka_code=KafkaCode.UNACCEPTABLE_CREDENTIAL):
    """No user may have such a name or credential."""


class DuplicateCredentialError(TidelogError, kafka_code=KafkaCode.DUPLICATE_RESOURCE):
    """A change names a credential of a user, or the user, twice."""


class UnknownTenantError(TidelogError, kafka_code=KafkaCode.RESOURCE_NOT_FOUND):
    """No tenant has the name."""


class TenantExistsError(TidelogError, kafka_code=KafkaCode.DUPLICATE_RESOURCE):
    """A tenant has the name, the user or the prefix already."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A team that shares a cluster with others: its topics, groups and transactional ids begin with `prefix`.

    `users`: names without "User:". `limits`: of each of them. The ACLs and quotas that follow are like others, and are
    made, changed and removed with the tenant.
    """

    name: str
    prefix: str
    users: tuple[str, ...] = ()
    limits: Mapping[Quota, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccessState:
    """The newest of everything. Immutable.

    `scram`: {(user, mechanism): credential}, users without "User:". `secret`: what credentials of unknown users are
    made of; b"" before there is one. `client_metrics`: {name: {key: text}} of the subscriptions by which clients push
    their metrics.
    """

    acls: frozenset[Acl] = frozenset()
    scram: Mapping[tuple[str, ScramMechanism], ScramCredential] = field(default_factory=dict)
    quotas: Mapping[Entity, Mapping[Quota, float]] = field(default_factory=dict)
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    secret: bytes = field(default=b"", repr=False)
    client_metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        kept = (self.acls, self.scram, self.quotas, self.tenants, self.client_metrics)
        return sum(map(len, kept)) + bool(self.secret)
