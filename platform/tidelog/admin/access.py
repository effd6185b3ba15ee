"""Access rules: a lake has none of its own. It allows every operation, and changes of rules are refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidelog.admin.checks import check_flag
from tidelog.admin.enums import AclOperation, AclPermissionType, ResourcePatternType, ResourceType, ScramMechanism

_CONFIGS: Final = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
_OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    ),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS),
    ResourceType.BROKER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        *_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}


def operations_told(kind: ResourceType, asked: bool) -> list[AclOperation] | None:
    """Return every operation on a topic, a group or the lake (BROKER) where they are asked for, else None.

    As Kafka's brokers without an authorizer answer. What the storage allows besides, only a try shows. Raises
    TypeError for an `asked` that is no bool. Source: Kafka's `AclEntry.supportedOperations`.
    """
    check_flag("include_authorized_operations", asked)
    return list(_OPERATIONS[kind]) if asked else None


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
