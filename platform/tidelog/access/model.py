"""Access control lists as Kafka has them: which operations a principal may do, from where, to which resources.

Codes are those of Kafka's protocol (`AclOperation`, `ResourceType`, `PatternType`, `AclPermissionType`).
"""

import ipaddress
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

# The name that stands for every resource of a type, the principal and the host that stand for all.
ANY_NAME: Final = "*"
EVERYONE: Final = "User:*"
ANY_HOST: Final = "*"
# The one resource of type CLUSTER.
CLUSTER_NAME: Final = "kafka-cluster"
ANONYMOUS: Final = "User:ANONYMOUS"


class AclResource(IntEnum):
    """What an ACL is about. ANY is for filters only."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPattern(IntEnum):
    """How an ACL names resources. ANY and MATCH are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What a principal does to a resource. ANY is for filters only."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Whether an ACL allows or denies. ANY is for filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


# {operation: those that allow it, too} (Kafka's security documentation, "Operations"; `AclEntry`). Denials imply none.
IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}

# {resource type: the operations that an ACL of it may name, ALL besides} (`AclEntry.supportedOperations`).
OPERATIONS_OF: Final = {
    AclResource.TOPIC: frozenset(
        {
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DESCRIBE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    AclResource.GROUP: frozenset(
        {
            AclOperation.READ,
            AclOperation.DESCRIBE,
            AclOperation.DELETE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    AclResource.CLUSTER: frozenset(
        {
            AclOperation.CREATE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
        }
    ),
    AclResource.TRANSACTIONAL_ID: frozenset({AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT}),
    AclResource.DELEGATION_TOKEN: frozenset({AclOperation.DESCRIBE}),
    AclResource.USER: frozenset({AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS}),
}


def seen_address(text: str) -> str:
    """An address as a broker sees its clients', whatever its spelling: 0:0:0:0:0:0:0:1 is ::1. Other texts stay."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One entry: whether a principal may do an operation, from a host, to resources of a type by a pattern.

    `principal`: "User:alice", or `EVERYONE`; `host`: an address, or `ANY_HOST`; `name`: a name, the beginning of names
    (PREFIXED), or `ANY_NAME` (LITERAL).
    """

    resource: AclResource
    pattern: AclPattern
    name: str
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


def acl_fields(acl: Acl) -> dict[str, str]:
    """An ACL in Kafka's words, as rows, documents and lines of the audit have it."""
    return {
        "resource": acl.resource.name,
        "pattern": acl.pattern.name,
        "name": acl.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs are meant: None or ANY takes all. `MATCH`: all that concern the resource `name`, as Kafka has it."""

    resource: AclResource = AclResource.ANY
    pattern: AclPattern = AclPattern.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.resource in (AclResource.ANY, acl.resource)
            and self._names(acl)
            and self.principal in (None, acl.principal)
            and (self.host is None or seen_address(self.host) == acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermission.ANY, acl.permission)
        )

    def _names(self, acl: Acl) -> bool:
        if self.pattern not in (AclPattern.ANY, AclPattern.MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not AclPattern.MATCH:
            return self.name == acl.name
        if acl.pattern is AclPattern.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name in (self.name, ANY_NAME)


@dataclass(frozen=True, slots=True)
class Identity:
    """A principal that has shown its credentials. `until_s`: when they end, s since the epoch; None for never."""

    principal: str
    until_s: float | None = None
