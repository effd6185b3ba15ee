"""What clients may do, as one broker knows it: the newest state of the lake's access, and decisions by it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tidelog.access.authorizer import AclVerdict, Authorizer, Subject
from tidelog.access.model import AclOperation, AclResource
from tidelog.access.state import AccessState
from tidelog.broker.base.calls import Peer


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """How a broker is configured to decide; Kafka's setting in the comment.

    `everyone`: what no ACL is about is allowed to all; None: unless a listener authenticates.
    """

    super_users: frozenset[str] = field(default_factory=frozenset)  # super.users
    everyone: bool | None = None  # allow.everyone.if.no.acl.found


async def _nothing_to_look_at() -> None:
    """There is no log of access."""


class BrokerAccess:
    """The access of a lake as of now. For the loop's thread, but for what is immutable.

    `look_now()`: this process has changed it, see that before anything else is decided.
    """

    def __init__(
        self, super_users: frozenset[str], *, everyone: bool, look: Callable[[], Awaitable[None]] = _nothing_to_look_at
    ) -> None:
        self._super_users = super_users
        self._everyone = everyone
        self.look_now = look
        self.state = AccessState()
        self.authorizer = Authorizer((), super_users, everyone=everyone)

    def take(self, state: AccessState) -> None:
        """Go by another state from now on."""
        if state.acls != self.state.acls:
            self.authorizer = Authorizer(state.acls, self._super_users, everyone=self._everyone)
        self.state = state

    @property
    def is_open(self) -> bool:
        """Whether everyone may do everything, so that nothing needs to be asked."""
        return self._everyone and not self.state.acls

    def may(self, peer: Peer, operation: AclOperation, resource: AclResource, name: str) -> bool:
        """Whether the client may do the operation to the resource."""
        return self.verdict(peer, operation, resource, name).allowed

    def verdict(self, peer: Peer, operation: AclOperation, resource: AclResource, name: str) -> AclVerdict:
        """Whether it may, and the ACL that says so."""
        if self.is_open:
            return AclVerdict(True)
        return self.authorizer.verdict(Subject(peer.principal, peer.host), operation, resource, name)

    def may_any(self, peer: Peer, operation: AclOperation, resource: AclResource) -> bool:
        """Whether the client may do the operation to any resource of the type."""
        return self.is_open or self.authorizer.may_any(Subject(peer.principal, peer.host), operation, resource)
