"""Access control lists as Kafka has them: which operations a principal may do, from where, to which resources.

Codes are those of Kafka's protocol (`AclOperation`, `ResourceType`, `PatternType`, `AclPermissionType`).
"""

import ipaddress
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final, TypeAlias

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


Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
# The longest host, and the length of a prefix as it is written: no sign, no zeros before it, no mask with dots.
_LONGEST_HOST: Final = 64
_LENGTH: Final = re.compile("0|[1-9][0-9]{0,2}")
# IPv6 addresses that are IPv4's: the length of their prefix before those.
_MAPPED_BITS: Final = 96


def seen_address(text: str) -> str:
    """An address as a broker sees its clients', whatever its spelling: 0:0:0:0:0:0:0:1 is ::1. Other texts stay."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def is_network(host: str) -> bool:
    """Whether an ACL's host is meant as a network (KIP-1276): it has a slash."""
    return "/" in host


def network_of(host: str) -> Network:
    """The network that a host in CIDR's notation is, as `10.0.0.0/8`. Raises `ValueError`, with what is wrong.

    Bits of the address behind the prefix count for nothing. A network of IPv6 that has IPv4's addresses in it
    (::ffff:10.0.0.0/104) is that of IPv4, as clients are seen so.
    """
    address, _, length = host.partition("/")
    if len(host) > _LONGEST_HOST or not _LENGTH.fullmatch(length) or "%" in address:
        raise ValueError(
            f"{host[:_LONGEST_HOST]!r} is no network: write ADDRESS/LENGTH, as 10.0.0.0/8 or 2001:db8::/32"
        )
    network = ipaddress.ip_network(host, strict=False)
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= _MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.ip_network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def seen_host(host: str) -> str:
    """A host of an ACL in the one spelling that it is kept in: an address or a network. Other texts stay."""
    if not is_network(host):
        return seen_address(host)
    try:
        return str(network_of(host))
    except ValueError:
        return host


def is_from(client: str, host: str) -> bool:
    """Whether a client's address, as `seen_address` spells it, is one that an ACL's host means."""
    if host in (client, ANY_HOST):
        return True
    if not is_network(host):
        return False
    network, address = _network(host), _address(client)
    return network is not None and address is not None and address in network


def covers_host(outer: str, inner: str) -> bool:
    """Whether a host of an ACL means every address that another one does."""
    if outer in (inner, ANY_HOST):
        return True
    if inner == ANY_HOST or not is_network(outer):
        return False
    around, within = _network(outer), _network(inner if is_network(inner) else f"{inner}/{_bits(inner)}")
    if around is None or within is None or around.version != within.version:
        return False
    return around.prefixlen <= within.prefixlen and within.network_address in around


def _bits(address: str) -> int:
    return 128 if ":" in address else 32


@lru_cache(4096)
def _network(host: str) -> Network | None:
    try:
        return network_of(host)
    except ValueError:
        return None


@lru_cache(4096)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One entry: whether a principal may do an operation, from a host, to resources of a type by a pattern.

    `principal`: "User:alice", or `EVERYONE`; `host`: an address, a network (KIP-1276), or `ANY_HOST`; `name`: a
    name, the beginning of names (PREFIXED), or `ANY_NAME` (LITERAL).
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

    def __post_init__(self) -> None:
        """Spell the host as ACLs have it: once, and not for each ACL."""
        if self.host is not None:
            object.__setattr__(self, "host", seen_host(self.host))

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.resource in (AclResource.ANY, acl.resource)
            and self._names(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
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
