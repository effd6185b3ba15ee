"""What clients may do, as one broker knows it: what is in force of the lake's access, and what is audited."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from tidelog.access.audit import Audit, Requester
from tidelog.access.in_force import AccessInForce
from tidelog.access.model import CLUSTER_NAME, OPERATIONS_OF, AclResource
from tidelog.broker.base.calls import Call, Peer
from tidelog.log.config.broker_keys import held
from tidelog.operations.rights import Right

# The value of a field of operations that the client did not ask for.
NOT_ASKED: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """How a broker is configured to decide.

    `everyone`: what no ACL is about is allowed to all; None: unless a listener authenticates.
    `audit_topic`: the topic that gets the lines of the audit, too; None: none. Kafka has no such setting.
    """

    super_users: frozenset[str] = field(default_factory=frozenset)  # super.users
    everyone: bool | None = held("allow.everyone.if.no.acl.found")
    audit_topic: str | None = held("audit.topic")


async def _nothing_to_look_at() -> None:
    """There is no log of access."""


class BrokerAccess(AccessInForce):
    """The access of a lake as of now. What is audited is for the loop's thread.

    `look_now()`: this process has changed it, see that before anything else is decided. `audit`: gets denials
    and changes.
    """

    def __init__(self, super_users: frozenset[str], audit: Audit, *, everyone: bool) -> None:
        super().__init__(super_users, everyone=everyone)
        self.look_now: Callable[[], Awaitable[None]] = _nothing_to_look_at
        self.audit = audit

    def may(self, peer: Peer, right: Right, **named: str) -> bool:
        """Whether the client has the right to what is named. No denial is audited: requests ask `allows`."""
        return self.is_open or right.asked(**named).verdict(self, peer).allowed

    def allows(self, call: Call, right: Right, **named: str) -> bool:
        """Whether the request has the right to what is named; a denial is written to the audit."""
        asked = right.asked(**named)
        verdict = asked.verdict(self, call.peer)
        if not verdict.allowed:
            operation, resource, name = asked.operation, asked.resource, asked.name
            self.audit.denied(requester(call), call.key.name, operation, resource, name, verdict.by)
        return verdict.allowed


def requester(call: Call) -> Requester:
    """The origin of a request, as the audit names it."""
    return Requester(call.peer.principal, call.peer.host, call.peer.listener, call.client_id)


def operations(access: BrokerAccess, peer: Peer, resource: AclResource, name: str) -> int:
    """The operations that a client may do to a resource, as Kafka's bit field.

    Source: Kafka's `AuthHelper.authorizedOperations`, `AclEntry.supportedOperations`, `Utils.to32BitField`.
    """
    return sum(1 << one for one in OPERATIONS_OF[resource] if access.verdict(peer, one, resource, name).allowed)


def cluster_operations(access: BrokerAccess, peer: Peer) -> int:
    """The operations that a client may do to the cluster: 0 where it may not describe the cluster."""
    if not access.may(peer, Right.DESCRIBE_CLUSTER):
        return 0
    return operations(access, peer, AclResource.CLUSTER, CLUSTER_NAME)
