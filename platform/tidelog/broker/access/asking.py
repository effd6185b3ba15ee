"""A request on its way through the guard, and the two shapes that most rules have.

Rules answer in Kafka's way: what a client may not do is refused by the code of the resource, and the rest of the
request goes on. Source: `KafkaApis`, `ControllerApis`, `AuthHelper` (kafka 4.2).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.broker.base.calls import Call, Handler, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.codec import Answer
from tidelog.broker.wire.errors import (
    ClusterAuthorizationError,
    GroupAuthorizationError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)
from tidelog.log.base.errors import TidelogError

T = TypeVar("T")

# The refusals, by what is refused.
DENIALS: Final[Mapping[AclResource, type[TidelogError]]] = {
    AclResource.TOPIC: TopicAuthorizationError,
    AclResource.GROUP: GroupAuthorizationError,
    AclResource.CLUSTER: ClusterAuthorizationError,
    AclResource.TRANSACTIONAL_ID: TransactionalIdAuthorizationError,
}


@dataclass(frozen=True, slots=True)
class GuardedRequest:
    """A request, and the handler that it goes on to."""

    context: Context
    call: Call
    handler: Handler

    def allows(self, operation: AclOperation, resource: AclResource, name: str = CLUSTER_NAME) -> bool:
        """Whether the request may do this; a denial is written to the audit."""
        return self.context.access.allows(self.call, operation, resource, name)

    def may(self, operation: AclOperation, resource: AclResource, name: str = CLUSTER_NAME) -> bool:
        """Whether the client may do this: for what is left out without a word, and for one of several ways."""
        return self.context.access.may(self.call.peer, operation, resource, name)

    def may_everywhere(self, operation: AclOperation) -> bool:
        """Whether an ACL of the cluster allows this for all that it has."""
        return self.context.access.may_everywhere(self.call.peer, operation)

    def denial(self, operation: AclOperation, resource: AclResource, name: str = CLUSTER_NAME) -> TidelogError:
        """Why it is refused, in words for the client."""
        what = resource.name.lower().replace("_", " ")
        named = "" if resource is AclResource.CLUSTER else f" '{name}'"
        return DENIALS[resource](
            f"{self.call.peer.principal} may not {operation.name.lower().replace('_', ' ')} the {what}{named}. An"
            " administrator of this cluster can allow it: 'tidelog acl add', or kafka-acls.sh."
        )

    async def go_on(self, **narrowed: object) -> Reply:
        """The handler's answer, to the request with these fields in place of its own."""
        call = replace(self.call, body=replace(self.call.body, **narrowed)) if narrowed else self.call
        return await self.handler(call)

    async def answer(self, **narrowed: object) -> Answer:
        """As `go_on`, of a handler that answers with fields."""
        reply = await self.go_on(**narrowed)
        if not isinstance(reply, Mapping):
            raise TypeError(f"{self.call.key.name} is not answered with fields")
        return reply


Rule = Callable[[GuardedRequest], Awaitable[Reply]]


def split(items: Iterable[T], allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """(what is allowed, what is not), in order."""
    kept: list[T] = []
    refused: list[T] = []
    for item in items:
        (kept if allowed(item) else refused).append(item)
    return kept, refused


@dataclass(frozen=True, slots=True)
class OneResource:
    """A rule for a request as a whole: an operation on the one resource that it is about."""

    operation: AclOperation
    resource: AclResource
    refused: Callable[[Call, TidelogError], Answer]
    name: Callable[[Any], str] = lambda _: CLUSTER_NAME

    async def __call__(self, request: GuardedRequest) -> Reply:
        """Go on, or refuse all of it."""
        name = self.name(request.call.body)
        if request.allows(self.operation, self.resource, name):
            return await request.go_on()
        return self.refused(request.call, request.denial(self.operation, self.resource, name))


@dataclass(frozen=True, slots=True)
class EachResource:
    """A rule for a list of resources: each that the client may not have is refused, the rest of the request goes on.

    `asked`, `answered`: the fields of the request and of its answer that have them. `anywhere`: whom the cluster allows
    the operation, may do it to all of them.
    """

    operation: AclOperation
    resource: AclResource
    asked: str
    answered: str
    name: Callable[[Any], str]
    refused: Callable[[Any, TidelogError], Answer]
    anywhere: bool = False

    async def __call__(self, request: GuardedRequest) -> Reply:
        """Go on with what is allowed, if it is anything."""
        if self.anywhere and request.may_everywhere(self.operation):
            return await request.go_on()
        items: Sequence[Any] = getattr(request.call.body, self.asked)
        kept, refused = split(items, lambda item: request.allows(self.operation, self.resource, self.name(item)))
        if not refused:
            return await request.go_on()
        found: Answer = await request.answer(**{self.asked: tuple(kept)}) if kept else {self.answered: ()}
        denials = [
            self.refused(item, request.denial(self.operation, self.resource, self.name(item))) for item in refused
        ]
        return {**found, self.answered: [*found[self.answered], *denials]}


def result(error: TidelogError | None = None) -> dict[str, Any]:
    """The fields of an answer that say how one thing went."""
    if error is None:
        return {"error_code": 0, "error_message": None}
    return {"error_code": error.kafka_code, "error_message": str(error)}
