"""Types of access rules, which programs may import and the AdminClient refuses: a lake has none of its own."""

from dataclasses import dataclass

from tidelog.admin.enums import AclOperation, AclPermissionType, ResourcePatternType, ResourceType, ScramMechanism


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
