"""What a client of the API may do: Kafka's operations, on the topics that subjects are named after.

A subject `orders-key` or `orders-value` is as its topic `orders`, any other one as a topic of its own name; one of
another context is with it (`:.context:orders`). A client that may read or write a topic may so read its schemas.
"""

from dataclasses import dataclass
from typing import Final

from tidelog.operations.rights import Right
from tidelog.schemas.base.errors import RegistryError
from tidelog.server.logins import RequestSender

_ENDINGS: Final = ("-key", "-value")


@dataclass(frozen=True, slots=True)
class ApiRights:
    """The rights of one client."""

    client: RequestSender

    @property
    def bound(self) -> bool:
        """Whether there is anything that the client may not do."""
        return self.client.rights is not None

    def sees(self, subject: str) -> bool:
        """Whether the client may read a subject."""
        return self.client.may(Right.READ_SCHEMA, subject=topic_of(subject))

    def require(self, right: Right, subject: str | None = None) -> None:
        """Raise `RegistryError` 40301 unless the client has the right to a subject, or, for None, to the cluster."""
        named = {} if subject is None else {"subject": topic_of(subject)}
        if not self.client.may(right, **named):
            asked = right.asked(**named)
            topic = f"topic {asked.name}, as which subject {subject} is asked about"
            what = "the cluster" if subject is None else topic
            raise RegistryError(40301, f"User is denied operation {asked.operation.name} on {what}.")


def topic_of(subject: str) -> str:
    """The topic whose rights a subject has."""
    for ending in _ENDINGS:
        if subject.endswith(ending) and subject != ending:
            return subject.removesuffix(ending)
    return subject
