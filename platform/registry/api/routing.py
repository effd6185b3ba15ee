"""Which handler answers a request: its method and its path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from tidelog.registry.api import schemas, settings, subjects
from tidelog.registry.api.calls import Handler
from tidelog.registry.base.errors import RegistryError
from tidelog.registry.state.subjects import DEFAULT_CONTEXT

_TABLE: Final[Mapping[tuple[str, str], Handler]] = {**subjects.ROUTES, **schemas.ROUTES, **settings.ROUTES}


@dataclass(frozen=True, slots=True)
class Route:
    """A handler, the path's variables, and the context of a path below /contexts/."""

    handler: Handler
    variables: Mapping[str, str]
    context: str


def routed(method: str, path: str) -> Route:
    """The route of a request. `path`: as it was sent, with percent signs.

    It is decoded once, segment by segment, so that a subject may have slashes and percent signs. Raises
    `RegistryError` 404 for a path that isn't there, 405 for a method that it doesn't take.
    """
    parts = [unquote(part, errors="replace") for part in path.split("/")[1:]]
    while parts and not parts[-1]:
        parts.pop()
    context = DEFAULT_CONTEXT
    if len(parts) > 2 and parts[0] == "contexts":
        context, parts = parts[1].strip(":"), parts[2:]
    candidates = ((own, _matched(own, parts)) for own in _ROUTES)
    matching = [(own, variables) for own, variables in candidates if variables is not None]
    if not matching:
        raise RegistryError(404, "HTTP 404 Not Found")
    # A word of a path counts before a variable: schemas/types is no id.
    own, variables = min(matching, key=lambda one: len(one[1]))
    if method not in _ROUTES[own]:
        raise RegistryError(405, "HTTP 405 Method Not Allowed")
    return Route(_ROUTES[own][method], variables, context)


def _by_path() -> dict[tuple[str, ...], dict[str, Handler]]:
    found: dict[tuple[str, ...], dict[str, Handler]] = {}
    for (method, path), handler in _TABLE.items():
        found.setdefault(tuple(path.split("/")) if path else (), {})[method] = handler
    return found


_ROUTES: Final = _by_path()


def _matched(path: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    """The variables of a path that fits, None for one that doesn't."""
    if len(path) != len(parts):
        return None
    variables: dict[str, str] = {}
    for own, part in zip(path, parts, strict=True):
        if own.startswith("{"):
            variables[own[1:-1]] = part
        elif own != part:
            return None
    return variables
