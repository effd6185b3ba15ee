"""What is in force of a lake's access, as a process knows it: the newest state that it has seen, and its decisions."""

from collections.abc import Iterable
from typing import Final

from tidelog.access.audit import MOST_CHARACTERS
from tidelog.access.authorizer import AclVerdict, Authorizer, Sender
from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.access.state import AccessState

# Decisions that are kept until an ACL changes; with more, all are made again.
MOST_VERDICTS: Final = 50_000

_Asked = tuple[str, str, AclOperation, AclResource, str]


class AccessInForce:
    """The access of a lake as of now. For many threads: what one of them takes is in force for all of them.

    `everyone`: what no ACL is about is allowed to all (`allow.everyone.if.no.acl.found`).
    """

    def __init__(self, super_users: Iterable[str] = (), *, everyone: bool) -> None:
        self._super_users = frozenset(super_users)
        self._everyone = everyone
        self.state = AccessState()
        # Together, so that what an older authorizer decides is not kept for a newer one.
        self._decides: tuple[Authorizer, dict[_Asked, AclVerdict]] = (self._authorizer_of(self.state), {})

    def take(self, state: AccessState) -> None:
        """Go by another state from now on."""
        if state.acls != self.state.acls:
            self._decides = self._authorizer_of(state), {}
        self.state = state

    @property
    def authorizer(self) -> Authorizer:
        """What decides; another one once an ACL has changed."""
        return self._decides[0]

    @property
    def is_open(self) -> bool:
        """Whether everyone may do everything, so that nothing needs to be asked."""
        return self._everyone and not self.state.acls

    def verdict(self, sender: Sender, operation: AclOperation, resource: AclResource, name: str) -> AclVerdict:
        """Whether the sender may do the operation to the resource, and the ACL that says so."""
        if self.is_open:
            return AclVerdict(True)
        authorizer, verdicts = self._decides
        if len(name) > MOST_CHARACTERS:  # no name that there is
            return authorizer.verdict(sender, operation, resource, name)
        key = (sender.principal, sender.host, operation, resource, name)
        verdict = verdicts.get(key)
        if verdict is None:
            if len(verdicts) >= MOST_VERDICTS:
                verdicts.clear()
            verdict = verdicts[key] = authorizer.verdict(sender, operation, resource, name)
        return verdict

    def may_everywhere(self, sender: Sender, operation: AclOperation) -> bool:
        """Whether an ACL of the cluster allows the sender the operation on all that it has.

        That no ACL is about the cluster allows nothing: then the ACLs of each topic and group decide.
        """
        verdict = self.verdict(sender, operation, AclResource.CLUSTER, CLUSTER_NAME)
        return verdict.allowed and verdict.by is not None

    def may_any(self, sender: Sender, operation: AclOperation, resource: AclResource) -> bool:
        """Whether the sender may do the operation to any resource of the type."""
        return self.is_open or self.authorizer.may_any(sender, operation, resource)

    def _authorizer_of(self, state: AccessState) -> Authorizer:
        return Authorizer(state.acls, self._super_users, everyone=self._everyone)
