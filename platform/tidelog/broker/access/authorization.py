"""A request on its way through the guard, and the two shapes that most rules have.

Rules answer in Kafka's way: what a client may not do is refused by the code of the resource, and the rest of the
request goes on. Source: `KafkaApis`, `ControllerApis`, `AuthHelper` (kafka 4.2).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from tidelog.access.model import AclResource
from tidelog.broker.base.calls import Call, Handler, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.errors import (
    ClusterAuthorizationError,
    GroupAuthorizationError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError
from tidelog.operations.rights import Right

T = TypeVar("T")

# The refusals, by what is refused.
DENIALS: Final[Mapping[AclResource, type[TidelogError]]] = {
    AclResource.TOPIC: TopicAuthorizationError,
    AclResource.GROUP: GroupAuthorizationError,
    AclResource.CLUSTER: ClusterAuthorizationError,
    AclResource.TRANSACTIONAL_ID: TransactionalIdAuthorizationError,
}
# The fields of requests about one resource that name it, by the argument of a right.
_FIELDS: Final = {"group": "group_id", "transactional_id": "transactional_id"}


@dataclass(frozen=True, slots=True)
class GuardedRequest:
    """A request, and the handler that it goes on to."""

    context: Context
    call: Call
    handler: Handler

    def allows(self, right: Right, **named: str) -> bool:
        """Whether the request has the right to what is named; a denial is written to the audit."""
        return self.context.access.allows(self.call, right, **named)

    def may(self, right: Right, **named: str) -> bool:
        """Whether the client has the right: for what is left out without a word, and for one of several ways."""
        return self.context.access.may(self.call.peer, right, **named)

    def may_everywhere(self, right: Right) -> bool:
        """Whether an ACL of the cluster gives the right to all that it has."""
        return right.only.for_all(self.context.access, self.call.peer)

    def denial(self, right: Right, **named: str) -> TidelogError:
        """Why it is refused, in words for the client."""
        asked = right.asked(**named)
        verb, what = (word.name.lower().replace("_", " ") for word in (asked.operation, asked.resource))
        name = "" if asked.resource is AclResource.CLUSTER else f" '{asked.name}'"
        return DENIALS[asked.resource](
            f"{self.call.peer.principal} may not {verb} the {what}{name}. An administrator of this cluster can allow"
            " it: 'tidelog acl add', or kafka-acls.sh."
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
    """A rule for a request as a whole: it is about one resource, or the cluster."""

    right: Right
    refused: Callable[[Call, TidelogError], Answer]

    async def __call__(self, request: GuardedRequest) -> Reply:
        """Go on, or refuse all of it."""
        argument, body = self.right.only.argument, request.call.body
        named = {argument: str(getattr(body, _FIELDS[argument]))} if argument else {}
        if request.allows(self.right, **named):
            return await request.go_on()
        return self.refused(request.call, request.denial(self.right, **named))


@dataclass(frozen=True, slots=True)
class EachResource:
    """A rule for a list of resources: each that the client may not have is refused, the rest of the request goes on.

    `asked`, `answered`: the fields of the request and of its answer that have them.
    """

    right: Right
    asked: str
    answered: str
    name: Callable[[Any], str]
    refused: Callable[[Any, TidelogError], Answer]

    async def __call__(self, request: GuardedRequest) -> Reply:
        """Go on with what is allowed, if it is anything."""
        items: Sequence[Any] = getattr(request.call.body, self.asked)
        kept, refused = split(items, lambda item: request.allows(self.right, **self._named(item)))
        if not refused:
            return await request.go_on()
        found: Answer = await request.answer(**{self.asked: tuple(kept)}) if kept else {self.answered: ()}
        denials = [self.refused(item, request.denial(self.right, **self._named(item))) for item in refused]
        return {**found, self.answered: [*found[self.answered], *denials]}

    def _named(self, item: Any) -> dict[str, str]:
        return {self.right.only.argument: self.name(item)}


def result(error: TidelogError | None = None) -> dict[str, Any]:
    """The fields of an answer that say how one thing went."""
    if error is None:
        return {"error_code": 0, "error_message": None}
    return {"error_code": error.kafka_code, "error_message": str(error)}
