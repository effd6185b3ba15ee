"""What a client may do with a resource, as answers say it."""

from typing import Final

from tidelog.access.model import CLUSTER_NAME, OPERATIONS_OF, AclResource
from tidelog.broker.base.access import BrokerAccess
from tidelog.broker.base.calls import Peer
from tidelog.operations.rights import Right

# The value of a field of operations that the client did not ask for.
NOT_ASKED: Final = -(2**31)


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
