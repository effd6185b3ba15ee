"""What a client of the API may do: Kafka's operations, on the topics that subjects are named after.

A subject `orders-key` or `orders-value` is as its topic `orders`, any other one as a topic of its own name; one of
another context is with it (`:.context:orders`). A client that may read or write a topic may so read its schemas.
"""

from dataclasses import dataclass
from typing import Final

from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.schemas.base.errors import RegistryError
from tidelog.server.logins import May

_ENDINGS: Final = ("-key", "-value")


@dataclass(frozen=True, slots=True)
class ApiRights:
    """The rights of one client. `may`: whether it may do an operation to a resource; None: it may do everything."""

    may: May | None = None

    def sees(self, subject: str) -> bool:
        """Whether the client may read a subject."""
        return self.may is None or self.may(AclOperation.DESCRIBE, AclResource.TOPIC, topic_of(subject))

    def require(self, operation: AclOperation, subject: str | None) -> None:
        """Raise `RegistryError` 40301 unless the client may do it to a subject, or, for None, to the cluster."""
        if self.may is None:
            return
        topic = None if subject is None else topic_of(subject)
        allowed = (
            self.may(operation, AclResource.CLUSTER, CLUSTER_NAME)
            if topic is None
            else self.may(operation, AclResource.TOPIC, topic)
        )
        if not allowed:
            what = "the cluster" if topic is None else f"topic {topic}, as which subject {subject} is asked about"
            raise RegistryError(40301, f"User is denied operation {operation.name} on {what}.")


def topic_of(subject: str) -> str:
    """The topic whose rights a subject has."""
    for ending in _ENDINGS:
        if subject.endswith(ending) and subject != ending:
            return subject.removesuffix(ending)
    return subject
