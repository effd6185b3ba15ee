"""Access control lists as Kafka has them: who may do what, from where, to which resources.

Codes are those of Kafka's protocol (`AclOperation`, `ResourceType`, `PatternType`, `AclPermissionType`).
"""

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


class ResourceType(IntEnum):
    """What an ACL is about. ANY is for filters only."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an ACL names resources. ANY and MATCH are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
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


class Permission(IntEnum):
    """Whether an ACL allows or denies. ANY is for filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


# {operation: those that allow it, too} (Kafka's security documentation, "Operations"; `AclEntry`). Denials imply none.
IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}

# {resource type: the operations that an ACL of it may name, ALL besides} (`AclEntry.supportedOperations`).
OPERATIONS_OF: Final = {
    ResourceType.TOPIC: frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DESCRIBE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {Operation.READ, Operation.DESCRIBE, Operation.DELETE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
    ),
    ResourceType.CLUSTER: frozenset(
        {
            Operation.CREATE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
            Operation.ALTER,
            Operation.DESCRIBE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset({Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT}),
    ResourceType.DELEGATION_TOKEN: frozenset({Operation.DESCRIBE}),
    ResourceType.USER: frozenset({Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS}),
}


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One entry: whether a principal may do an operation, from a host, to resources of a type by a pattern.

    `principal`: "User:alice", or `EVERYONE`; `host`: an address, or `ANY_HOST`; `name`: a name, the beginning of names
    (PREFIXED), or `ANY_NAME` (LITERAL).
    """

    resource: ResourceType
    pattern: PatternType
    name: str
    principal: str
    host: str
    operation: Operation
    permission: Permission


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs are meant: None or ANY takes all. `MATCH`: all that concern the resource `name`, as Kafka has it."""

    resource: ResourceType = ResourceType.ANY
    pattern: PatternType = PatternType.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.resource in (ResourceType.ANY, acl.resource)
            and self._names(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _names(self, acl: Acl) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return self.name == acl.name
        if acl.pattern is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name in (self.name, ANY_NAME)
