"""The decision: may this principal do this. Pure, over the ACLs as of now; the rules of Kafka's StandardAuthorizer.

A denial wins over whatever allows. What no ACL is about is denied, or allowed to everyone by
`allow.everyone.if.no.acl.found`. Super users may do everything.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from tidelog.access.model import (
    ANY_NAME,
    EVERYONE,
    IMPLIED_BY,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    is_from,
)


class Sender(Protocol):
    """A request's origin: the principal of a connection, and the address it comes from."""

    @property
    def principal(self) -> str:
        """Such as "User:alice"."""

    @property
    def host(self) -> str:
        """The address, as `seen_address` spells it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A sender that is no connection."""

    principal: str
    host: str


@dataclass(frozen=True, slots=True)
class AclVerdict:
    """Whether something is allowed. `by`: the ACL that says so; None where none is about it, or for a super user."""

    allowed: bool
    by: Acl | None = None


class Authorizer:
    """ACLs, looked up by resource. Immutable: another set of ACLs is another authorizer.

    `everyone`: what no ACL is about is allowed (`allow.everyone.if.no.acl.found`).
    """

    def __init__(self, acls: Iterable[Acl], super_users: Iterable[str] = (), *, everyone: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._everyone = everyone
        self._literal: dict[tuple[AclResource, str], list[Acl]] = {}
        prefixed: dict[AclResource, dict[str, list[Acl]]] = {}
        for acl in acls:
            if acl.pattern is AclPattern.LITERAL:
                self._literal.setdefault((acl.resource, acl.name), []).append(acl)
            else:
                prefixed.setdefault(acl.resource, {}).setdefault(acl.name, []).append(acl)
        self._prefixed = prefixed
        self._prefixes = {resource: sorted(by_name) for resource, by_name in prefixed.items()}

    def verdict(self, subject: Sender, operation: AclOperation, resource: AclResource, name: str) -> AclVerdict:
        """Whether the subject may do the operation to the resource."""
        if subject.principal in self._super_users:
            return AclVerdict(True)
        allows: Acl | None = None
        has_acls = False
        for acl in self._about(resource, name):
            has_acls = True
            if not _concerns(acl, subject):
                continue
            if acl.permission is AclPermission.DENY:
                if acl.operation in (operation, AclOperation.ALL):
                    return AclVerdict(False, acl)
            elif allows is None and _covers(acl.operation, operation):
                allows = acl
        return AclVerdict(allows is not None or (self._everyone and not has_acls), allows)

    def may_any(self, subject: Sender, operation: AclOperation, resource: AclResource) -> bool:
        """Whether the subject may do the operation to any resource of the type, even one that is not there yet.

        As `Authorizer.authorizeByResourceType` (KIP-679): an ACL that allows counts unless a denial covers all of it.
        """
        if subject.principal in self._super_users:
            return True
        allowed: list[Acl] = []
        denied_names: set[str] = set()
        denied_prefixes: list[str] = []
        for acl in self._of_type(resource):
            if not _concerns(acl, subject):
                continue
            if acl.permission is AclPermission.ALLOW:
                if _covers(acl.operation, operation):
                    allowed.append(acl)
            elif acl.operation not in (operation, AclOperation.ALL):
                continue
            elif acl.pattern is AclPattern.PREFIXED:
                denied_prefixes.append(acl.name)
            else:
                denied_names.add(acl.name)
        if ANY_NAME in denied_names:
            return False
        for acl in allowed:
            if acl.pattern is AclPattern.LITERAL and acl.name == ANY_NAME:
                return True
            if acl.pattern is AclPattern.LITERAL and acl.name in denied_names:
                continue
            if not acl.name.startswith(tuple(denied_prefixes)):
                return True
        return self._everyone

    def _about(self, resource: AclResource, name: str) -> Iterator[Acl]:
        """All that are about one resource."""
        yield from self._literal.get((resource, name), ())
        if name != ANY_NAME:
            yield from self._literal.get((resource, ANY_NAME), ())
        prefixes, by_name = self._prefixes.get(resource, []), self._prefixed.get(resource, {})
        # A prefix of the name sorts at or before it. Those that share no more than a shorter beginning are skipped.
        at = bisect_right(prefixes, name)
        while at:
            prefix = prefixes[at - 1]
            if name.startswith(prefix):
                yield from by_name[prefix]
                at -= 1
            else:
                common = _common(prefix, name)
                at = bisect_right(prefixes, common, hi=at - 1)

    def _of_type(self, resource: AclResource) -> Iterator[Acl]:
        for (of_type, _), acls in self._literal.items():
            if of_type is resource:
                yield from acls
        for acls in self._prefixed.get(resource, {}).values():
            yield from acls


def _concerns(acl: Acl, subject: Sender) -> bool:
    return acl.principal in (subject.principal, EVERYONE) and is_from(subject.host, acl.host)


def _covers(allowed: AclOperation, operation: AclOperation) -> bool:
    return allowed in (operation, AclOperation.ALL) or allowed in IMPLIED_BY.get(operation, ())


def _common(prefix: str, name: str) -> str:
    """The beginning that both share."""
    length = next((at for at, (one, other) in enumerate(zip(prefix, name, strict=False)) if one != other), None)
    return prefix[: min(len(prefix), len(name)) if length is None else length]
