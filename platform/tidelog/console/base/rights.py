"""What the sender of a request may do: Kafka's operations on Kafka's resources, as brokers ask them."""

from dataclasses import dataclass

from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.console.base.errors import ConsoleError
from tidelog.server.logins import HttpClient


@dataclass(frozen=True, slots=True)
class ConsoleRights:
    """The rights of one client."""

    client: HttpClient

    def now(self) -> "ConsoleRights":
        """The client's rights as of now, for what lasts longer than a request. Raises `LoginRefusedError`."""
        return self if self.client.now is None else ConsoleRights(self.client.now())

    def may(self, operation: AclOperation, resource: AclResource, name: str = CLUSTER_NAME) -> bool:
        """Whether the client may do an operation to a resource of that name."""
        return self.client.may is None or self.client.may(operation, resource, name)

    def require(self, operation: AclOperation, resource: AclResource, name: str = CLUSTER_NAME) -> None:
        """Raise `ConsoleError` 403 unless the client may; the same for what is there and what is not."""
        if not self.may(operation, resource, name):
            what = "the cluster" if resource is AclResource.CLUSTER else f"{resource.name.lower()} '{name}'"
            raise ConsoleError(403, f"{self.client.principal} is denied operation {operation.name} on {what}.")

    def offered(
        self, operation: AclOperation, resource: AclResource = AclResource.CLUSTER, name: str | None = CLUSTER_NAME
    ) -> bool:
        """As `may`, of what a page offers: nothing is tried, so the audit has nothing of it. None: to any resource."""
        return self.client.offered is None or self.client.offered(operation, resource, name)

    def sees_topic(self, name: str) -> bool:
        """Whether the client may know of a topic."""
        return self.may(AclOperation.DESCRIBE, AclResource.TOPIC, name)

    def sees_group(self, name: str) -> bool:
        """Whether the client may know of a group."""
        return self.may(AclOperation.DESCRIBE, AclResource.GROUP, name)
