"""Rows of routes, and which of them a request's method and path fit."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote

from tidelog.server.errors import RequestRefusedError
from tidelog.server.logins import RequestSender

# A path of a server: words and `{variables}`.
PathParts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request on its way to a handler. `variables`: of the path, decoded once. `body`: as the application reads it.

    `changes`: whether the request may change something.
    """

    variables: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    body: Any
    client: RequestSender
    changes: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler gives that is no value of JSON with status 200. `value`: None: no body; bytes: as they are."""

    status: int = 200
    value: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


C = TypeVar("C", bound=HttpCall)


@dataclass(frozen=True, slots=True)
class Route(Generic[C]):
    """What is done for a method and a path, as "connectors/{name}".

    `handler`: called in a thread. `right`: raises for a client that may not. `body`: the most bytes that it may have;
    None: those of the server's bounds, 0: it is not looked at. What is no GET changes something, unless it `reads`.
    """

    method: str
    path: str
    handler: Callable[[C], Any]
    right: Callable[[C], None]
    body: int | None = None
    reads: bool = False

    @property
    def changes(self) -> bool:
        """Whether the request may change something."""
        return self.method != "GET" and not self.reads

    @property
    def most_bytes(self) -> int | None:
        """As `body`, which a GET has not."""
        return 0 if self.method == "GET" else self.body


class Routes(Generic[C]):
    """All routes of an application. `no_path`, `no_method`: what refusals say; the latter may name the `{method}`.

    `cuts_slashes`: whether slashes at the end of a request's path are nothing.
    """

    def __init__(
        self,
        routes: Iterable[Route[C]],
        no_path: str = "HTTP 404 Not Found",
        no_method: str = "HTTP 405 Method Not Allowed",
        *,
        cuts_slashes: bool = True,
    ) -> None:
        self._no_path, self._no_method, self._cuts_slashes = no_path, no_method, cuts_slashes
        self._by_path: dict[PathParts, dict[str, Route[C]]] = {}
        for route in routes:
            methods = self._by_path.setdefault(tuple(part for part in route.path.split("/") if part), {})
            assert route.method not in methods, route  # two handlers of one request
            methods[route.method] = route

    def routed(self, method: str, path: str) -> tuple[Route[C], dict[str, str]]:
        """The route of a request, and the path's variables. `path`: as it was sent, with percent signs.

        Raises `RequestRefusedError` 404 for a path that isn't there, 405 for a method that it doesn't take.
        """
        parts = path_parts(path)
        while self._cuts_slashes and parts and not parts[-1]:
            parts.pop()
        match = found_path(self._by_path, parts)
        if match is None:
            raise RequestRefusedError(404, self._no_path)
        route = self._by_path[match.own].get(method)
        if route is None:
            raise RequestRefusedError(405, self._no_method.format(method=method))
        return route, match.variables


class FoundPath(NamedTuple):
    """A server's path, and what its variables stand for in a request."""

    own: PathParts
    variables: dict[str, str]


def path_parts(path: str) -> list[str]:
    """The segments of a request's path, which begins with "/" and has percent signs as it was sent.

    Each is decoded once, after the path is split, so that a name may have slashes and percent signs in it.
    """
    return [unquote(part, errors="replace") for part in path.split("/")[1:]]


def found_path(paths: Iterable[PathParts], parts: Sequence[str]) -> FoundPath | None:
    """The path that the segments fit, None where none does. A word counts before a variable: schemas/types is no id."""
    candidates = ((own, _variables(own, parts)) for own in paths)
    fitting = [FoundPath(own, variables) for own, variables in candidates if variables is not None]
    return min(fitting, key=lambda path: len(path.variables), default=None)


def _variables(own: PathParts, parts: Sequence[str]) -> dict[str, str] | None:
    """The variables of a path that fits, None for one that doesn't."""
    if len(own) != len(parts):
        return None
    pairs = list(zip(own, parts, strict=True))
    if any(word != part for word, part in pairs if not word.startswith("{")):
        return None
    return {word[1:-1]: part for word, part in pairs if word.startswith("{")}
