"""A request on its way to a handler, and the rights that it may need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.access.model import AclResource
from tidelog.console.base.console import Console
from tidelog.console.base.errors import ConsoleError, bad
from tidelog.operations.rights import Right
from tidelog.server.logins import RequestSender
from tidelog.server.routes import HttpCall

# Largest number in a query: an offset's.
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ConsoleRights:
    """What the sender of a request may do, as brokers ask it."""

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

    def sees_group(self, name: str) -> bool:
        """Whether the client may know of a group."""
        return self.client.may(Right.DESCRIBE_GROUP, group=name)

    def sees_subject(self, name: str) -> bool:
        """Whether the client may read a subject of schemas."""
        return self.client.may(Right.READ_SCHEMA, subject=name)


@dataclass(frozen=True, slots=True)
class ConsoleCall(HttpCall):
    """`body`: the JSON of the request, None without one."""

    console: Console

    @property
    def rights(self) -> ConsoleRights:
        """What the sender may do."""
        return ConsoleRights(self.client)

    @property
    def topic(self) -> str:
        """The path's topic."""
        return self.variables["topic"]

    def offers(self, right: Right, **named: str) -> bool:
        """Whether the page should offer a change: this console makes changes, and the client may."""
        return not self.console.settings.read_only and self.client.offered(right, **named)

    def offers_any(self, right: Right) -> bool:
        """As `offers`, of anything that there may be to name."""
        return not self.console.settings.read_only and self.client.offered_any(right)

    def text(self, name: str, default: str = "") -> str:
        """A text of the query, the last where it is given twice."""
        return self.query[name][-1] if self.query.get(name) else default

    def texts(self, name: str) -> Sequence[str]:
        """All texts of that name in the query."""
        return self.query.get(name, ())

    def number(self, name: str, default: int, low: int = 0, high: int = _MOST) -> int:
        """A whole number of the query, from `low` to `high`. Raises `ConsoleError` 400."""
        found = self.optional_number(name, low, high)
        return default if found is None else found

    def optional_number(self, name: str, low: int = 0, high: int = _MOST) -> int | None:
        """A whole number of the query, None without one. Raises `ConsoleError` 400."""
        text = self.text(name)
        return None if not text else whole(name, text, low, high)

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """One of several words of the query. Raises `ConsoleError` 400."""
        word = self.text(name, default)
        if word not in choices:
            raise bad(f"'{name}' is {word!r}, and must be one of {', '.join(choices)}.")
        return word

    def fields(self, *names: str) -> Mapping[str, Any]:
        """The body, which must be an object without other fields than those. Raises `ConsoleError` 400."""
        if not isinstance(self.body, dict):
            raise bad("The body must be an object of JSON.")
        strange = sorted(set(self.body) - set(names))
        if strange:
            raise bad(f"The body has {strange[0]!r}, which is none of {', '.join(names)}.")
        return self.body


def whole(name: str, text: str, low: int = 0, high: int = _MOST) -> int:
    """A whole number from `low` to `high`. Raises `ConsoleError` 400."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
        raise bad(f"'{name}' is {text[:40]!r}, and must be a whole number from {low} to {high}.")
    return int(text)


# Raises `ConsoleError` 403 for a client that may not have the answer; asked before the handler.
Rule = Callable[[ConsoleCall], None]


def for_all(call: ConsoleCall) -> None:
    """Every client that is logged in may, or the handler gives only what the client sees."""


def needs(right: Right) -> Rule:
    """The right to what the path names, or to the cluster."""
    return lambda call: call.rights.require(right, **_named(call, right))


def _named(call: ConsoleCall, right: Right) -> dict[str, str]:
    return {argument: name for argument, name in call.variables.items() if argument in right.needs}
