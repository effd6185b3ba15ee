"""Options of `tidelog acl`, as those of kafka-acls.sh, and which ACLs they mean."""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from tidelog.commands.failures import UsageProblemError

if TYPE_CHECKING:
    from tidelog.access.model import Acl, AclFilter, AclOperation, AclPattern, AclResource

Texts = list[str] | None


@dataclass(frozen=True, kw_only=True)
class AclOptions:
    """Which principals, operations and resources an ACL is about. All may be repeated."""

    panel: ClassVar[str] = "What the ACLs are about"

    principal: Annotated[
        Texts, typer.Option(metavar="NAME", help="A principal: User:alice, or alice; * is everyone. Repeatable.")
    ] = None
    host: Annotated[
        Texts,
        typer.Option(
            metavar="ADDRESS",
            help="What clients connect from: an address, a network as 10.0.0.0/8; * is any. Repeatable.",
        ),
    ] = None
    operation: Annotated[
        Texts,
        typer.Option(metavar="NAME", help="Read, Write, Create, Delete, Describe, AlterConfigs …, All. Repeatable."),
    ] = None
    topic: Annotated[Texts, typer.Option(metavar="NAME", help="A topic; * is all of them. Repeatable.")] = None
    group: Annotated[Texts, typer.Option(metavar="NAME", help="A group; * is all of them. Repeatable.")] = None
    transactional_id: Annotated[
        Texts, typer.Option(metavar="ID", help="A transactional id; * is all of them. Repeatable.")
    ] = None
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster itself.")] = False
    prefixed: Annotated[bool, typer.Option("--prefixed", help="Names are how names begin, not whole ones.")] = False
    deny: Annotated[bool, typer.Option("--deny", help="ACLs that deny, in place of those that allow.")] = False

    def acls(self, *, producer: bool, consumer: bool) -> "list[Acl]":
        """The ACLs to add. Raises `UsageProblemError`."""
        from tidelog.access.model import Acl, AclPermission

        if not self.principal:
            raise UsageProblemError("An ACL is about a principal: give --principal, such as User:alice.")
        resources = list(self._resources())
        if not resources:
            raise UsageProblemError(
                "An ACL is about a resource: give --topic, --group, --transactional-id or --cluster."
            )
        if (producer or consumer) and (self.operation or self.deny):
            raise UsageProblemError("--producer and --consumer name the operations, and allow them: give them alone.")
        permission = AclPermission.DENY if self.deny else AclPermission.ALLOW
        return [
            Acl(resource, self._pattern(resource), name, principal, host, operation, permission)
            for (resource, name), principal, host in product(resources, self._principals(), self._hosts() or ["*"])
            for operation in self._operations_of(resource, producer=producer, consumer=consumer)
        ]

    def filters(self, *, exact: bool) -> "list[AclFilter]":
        """The ACLs that are meant. `exact`: names are those of the ACLs; else all ACLs that concern the names are.

        Raises `UsageProblemError`.
        """
        from tidelog.access.model import AclFilter, AclOperation, AclPattern, AclPermission, AclResource

        permission = AclPermission.DENY if self.deny else AclPermission.ANY
        resources: list[tuple[AclResource, str | None]] = [*self._resources()] or [(AclResource.ANY, None)]

        def pattern(resource: AclResource) -> AclPattern:
            if resource is AclResource.ANY:
                return AclPattern.PREFIXED if self.prefixed else AclPattern.ANY
            return self._pattern(resource) if exact or self.prefixed else AclPattern.MATCH

        principals: list[str | None] = [*self._principals()] or [None]
        hosts: list[str | None] = [*self._hosts()] or [None]
        operations = self._operations() or [AclOperation.ANY]
        return [
            AclFilter(resource, pattern(resource), name, principal, host, operation, permission)
            for (resource, name), principal, host, operation in product(resources, principals, hosts, operations)
        ]

    @property
    def is_empty(self) -> bool:
        """Whether they mean every ACL."""
        named = (self.principal, self.host, self.operation, self.topic, self.group, self.transactional_id)
        return not any(named) and not (self.cluster or self.prefixed or self.deny)

    def _resources(self) -> "Iterator[tuple[AclResource, str]]":
        from tidelog.access.model import CLUSTER_NAME, AclResource

        yield from ((AclResource.TOPIC, name) for name in self.topic or ())
        yield from ((AclResource.GROUP, name) for name in self.group or ())
        yield from ((AclResource.TRANSACTIONAL_ID, name) for name in self.transactional_id or ())
        if self.cluster:
            yield AclResource.CLUSTER, CLUSTER_NAME

    def _pattern(self, resource: "AclResource") -> "AclPattern":
        from tidelog.access.model import AclPattern, AclResource

        prefixed = self.prefixed and resource is not AclResource.CLUSTER
        return AclPattern.PREFIXED if prefixed else AclPattern.LITERAL

    def _principals(self) -> list[str]:
        return [principal_of(text) for text in self.principal or ()]

    def _hosts(self) -> list[str]:
        return [network_or_host(text) for text in self.host or ()]

    def _operations(self) -> "list[AclOperation]":
        return [operation_of(text) for text in self.operation or ()]

    def _operations_of(self, resource: "AclResource", *, producer: bool, consumer: bool) -> "Sequence[AclOperation]":
        from tidelog.access.model import AclOperation as Op
        from tidelog.access.model import AclResource

        if not producer and not consumer:
            return self._operations() or [Op.ALL]
        # As kafka-acls.sh has them.
        operations = {
            AclResource.TOPIC: [
                *([Op.WRITE, Op.DESCRIBE, Op.CREATE] if producer else ()),
                *([Op.READ, Op.DESCRIBE] if consumer else ()),
            ],
            AclResource.GROUP: [Op.READ] if consumer else [],
            AclResource.TRANSACTIONAL_ID: [Op.WRITE, Op.DESCRIBE] if producer else [],
        }.get(resource, [])
        if not operations:
            what = resource.name.lower().replace("_", " ")
            raise UsageProblemError(
                f"{'A producer' if producer else 'A consumer'} needs no ACL of a {what}: leave it out, or give"
                " --operation."
            )
        return list(dict.fromkeys(operations))


def principal_of(text: str) -> str:
    """`User:alice` of that or of `alice`. Raises `UsageProblemError`."""
    if not text or text == "User:":
        raise UsageProblemError("A principal has a name: write User:NAME, or User:* for everyone.")
    if text.startswith("User:"):
        return text
    if re.match(r"[A-Za-z]+:", text):
        raise UsageProblemError(
            f"{text!r} is no user, and brokers know no other kind of principal. Write User:NAME; a name with a colon is"
            f" 'User:{text}'."
        )
    return f"User:{text}"


def host_of(text: str) -> str:
    """An address as brokers see clients' addresses, or `*`. Raises `UsageProblemError`."""
    if text == "*":
        return text
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise UsageProblemError(
            f"{text!r} is no address: a broker sees addresses, not names. Write an IPv4 or IPv6 address, or * for any."
        ) from None


def network_or_host(text: str) -> str:
    """As `host_of`; and a network in CIDR's notation. Raises `UsageProblemError`."""
    from tidelog.access.model import is_network, network_of

    if not is_network(text):
        return host_of(text)
    try:
        return str(network_of(text))
    except ValueError as e:
        raise UsageProblemError(f"An ACL's host is wrong: {e}.") from None


def operation_of(text: str) -> "AclOperation":
    """An operation by its name in any spelling: DescribeConfigs, describe-configs. Raises `UsageProblemError`."""
    from tidelog.access.model import AclOperation

    names = {one.name.replace("_", ""): one for one in AclOperation if one is not AclOperation.ANY}
    operation = names.get(re.sub(r"[-_ ]", "", text).upper())
    if operation is None:
        there = ", ".join(one.name.title().replace("_", "") for one in names.values())
        raise UsageProblemError(f"{text!r} is no operation of Kafka's. There are {there}.")
    return operation
