"""What the sender of a request may do, as brokers ask it."""

from dataclasses import dataclass

from tidelog.access.model import AclResource
from tidelog.console.base.errors import ConsoleError
from tidelog.operations.rights import Right
from tidelog.server.logins import RequestSender


@dataclass(frozen=True, slots=True)
class ConsoleRights:
    """The rights of one client."""

    client: RequestSender

    def now(self) -> "ConsoleRights":
        """The client's rights as of now, for what lasts longer than a request. Raises `LoginRefusedError`."""
        return self if self.client.now is None else ConsoleRights(self.client.now())

    def may(self, right: Right, **named: str) -> bool:
        """Whether the client has the right to what is named."""
        return self.client.may(right, **named)

    def require(self, right: Right, **named: str) -> None:
        """Raise `ConsoleError` 403 unless the client may; the same for what is there and what is not."""
        if not self.client.may(right, **named):
            asked = right.asked(**named)
            resource = f"{asked.resource.name.lower()} '{asked.name}'"
            what = "the cluster" if asked.resource is AclResource.CLUSTER else resource
            raise ConsoleError(403, f"{self.client.principal} is denied operation {asked.operation.name} on {what}.")

    def sees_topic(self, name: str) -> bool:
        """Whether the client may know of a topic."""
        return self.client.may(Right.DESCRIBE_TOPIC, topic=name)

    def sees_subject(self, name: str) -> bool:
        """Whether the client may read a subject of schemas."""
        return self.client.may(Right.READ_SCHEMA, subject=name)

    def sees_group(self, name: str) -> bool:
        """Whether the client may know of a group."""
        return self.client.may(Right.DESCRIBE_GROUP, group=name)
