"""What clients may do, as one broker knows it: the newest state of the lake's access, and decisions by it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from tidelog.access.audit import MOST_CHARACTERS, Audit, Requester
from tidelog.access.authorizer import AclVerdict, Authorizer, Subject
from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.access.state import AccessState
from tidelog.broker.base.calls import Call, Peer
from tidelog.log.config.broker_keys import held

# Decisions that are kept until an ACL changes; with more, all are made again.
MOST_VERDICTS: Final = 50_000


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


class BrokerAccess:
    """The access of a lake as of now. For the loop's thread, but for what is immutable.

    `look_now()`: this process has changed it, see that before anything else is decided. `audit`: gets denials
    and changes.
    """

    def __init__(
        self,
        super_users: frozenset[str],
        audit: Audit,
        *,
        everyone: bool,
        look: Callable[[], Awaitable[None]] = _nothing_to_look_at,
    ) -> None:
        self._super_users = super_users
        self._everyone = everyone
        self._verdicts: dict[tuple[str, str, AclOperation, AclResource, str], AclVerdict] = {}
        self.look_now = look
        self.audit = audit
        self.state = AccessState()
        self.authorizer = Authorizer((), super_users, everyone=everyone)

    def take(self, state: AccessState) -> None:
        """Go by another state from now on."""
        if state.acls != self.state.acls:
            self.authorizer = Authorizer(state.acls, self._super_users, everyone=self._everyone)
            self._verdicts = {}
        self.state = state

    @property
    def is_open(self) -> bool:
        """Whether everyone may do everything, so that nothing needs to be asked."""
        return self._everyone and not self.state.acls

    def may(self, peer: Peer, operation: AclOperation, resource: AclResource, name: str) -> bool:
        """Whether the client may do the operation to the resource. No denial is audited: requests ask `allows`."""
        return self.is_open or self.verdict(peer, operation, resource, name).allowed

    def allows(self, call: Call, operation: AclOperation, resource: AclResource, name: str) -> bool:
        """Whether the request may do the operation to the resource; a denial is written to the audit."""
        verdict = self.verdict(call.peer, operation, resource, name)
        if not verdict.allowed:
            self.audit.denied(requester(call), call.key.name, operation, resource, name, verdict.by)
        return verdict.allowed

    def verdict(self, peer: Peer, operation: AclOperation, resource: AclResource, name: str) -> AclVerdict:
        """Whether it may, and the ACL that says so."""
        if self.is_open:
            return AclVerdict(True)
        if len(name) > MOST_CHARACTERS:  # no name that there is
            return self.authorizer.verdict(Subject(peer.principal, peer.host), operation, resource, name)
        key = (peer.principal, peer.host, operation, resource, name)
        known = self._verdicts.get(key)
        if known is None:
            if len(self._verdicts) >= MOST_VERDICTS:
                self._verdicts = {}
            subject = Subject(peer.principal, peer.host)
            known = self._verdicts[key] = self.authorizer.verdict(subject, operation, resource, name)
        return known

    def may_everywhere(self, peer: Peer, operation: AclOperation) -> bool:
        """Whether an ACL of the cluster allows the client the operation on all that it has.

        That no ACL is about the cluster allows nothing: then the ACLs of each topic and group decide.
        """
        verdict = self.verdict(peer, operation, AclResource.CLUSTER, CLUSTER_NAME)
        return verdict.allowed and verdict.by is not None

    def may_any(self, peer: Peer, operation: AclOperation, resource: AclResource) -> bool:
        """Whether the client may do the operation to any resource of the type."""
        return self.is_open or self.authorizer.may_any(Subject(peer.principal, peer.host), operation, resource)


def requester(call: Call) -> Requester:
    """The origin of a request, as the audit names it."""
    return Requester(call.peer.principal, call.peer.host, call.peer.listener, call.client_id)
