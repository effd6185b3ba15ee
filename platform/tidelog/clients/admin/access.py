"""Access rules: a lake has none of its own. It allows every operation, and changes of rules are refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidelog.access.model import OPERATIONS_OF, AclResource
from tidelog.clients.admin.checks import check_flag
from tidelog.clients.admin.enums import (
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
)

# Resources by confluent-kafka's names, which have Kafka's numbers of operations.
_RESOURCES: Final[Mapping[ResourceType, AclResource]] = {
    ResourceType.TOPIC: AclResource.TOPIC,
    ResourceType.GROUP: AclResource.GROUP,
    ResourceType.BROKER: AclResource.CLUSTER,
}


def operations_told(kind: ResourceType, asked: bool) -> list[AclOperation] | None:
    """Return every operation on a topic, a group or the lake (BROKER) where they are asked for, else None.

    As Kafka's brokers without an authorizer answer. What the storage allows besides, only a try shows. Raises
    TypeError for an `asked` that is no bool. Source: Kafka's `AclEntry.supportedOperations`.
    """
    check_flag("include_authorized_operations", asked)
    return [AclOperation(int(one)) for one in sorted(OPERATIONS_OF[_RESOURCES[kind]])] if asked else None


@dataclass(frozen=True)
class AclBindingFilter:
    """Access rules to look for; None matches all."""

    restype: ResourceType
    name: str | None
    resource_pattern_type: ResourcePatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: AclPermissionType


@dataclass(frozen=True)
class AclBinding(AclBindingFilter):
    """An access rule."""


@dataclass(frozen=True)
class ScramCredentialInfo:
    """How a password is hashed."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True)
class UserScramCredentialsDescription:
    """A user's passwords."""

    user: str
    scram_credential_infos: list[ScramCredentialInfo]


@dataclass(frozen=True)
class UserScramCredentialAlteration:
    """A change of a user's password."""

    user: str


@dataclass(frozen=True)
class UserScramCredentialUpsertion(UserScramCredentialAlteration):
    """A new password."""

    scram_credential_info: ScramCredentialInfo
    password: bytes
    salt: bytes | None = None


@dataclass(frozen=True)
class UserScramCredentialDeletion(UserScramCredentialAlteration):
    """A password to remove."""

    mechanism: ScramMechanism
