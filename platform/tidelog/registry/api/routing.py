"""Which handler answers a request: its method and its path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidelog.registry.api import schemas, settings, subjects
from tidelog.registry.api.calls import Handler
from tidelog.registry.base.errors import RegistryError
from tidelog.registry.state.subjects import DEFAULT_CONTEXT
from tidelog.server.routes import PathParts, found_path, path_parts

_TABLE: Final[Mapping[tuple[str, str], Handler]] = {**subjects.ROUTES, **schemas.ROUTES, **settings.ROUTES}


@dataclass(frozen=True, slots=True)
class Route:
    """A handler, the path's variables, and the context of a path below /contexts/."""

    handler: Handler
    variables: Mapping[str, str]
    context: str


def routed(method: str, path: str) -> Route:
    """The route of a request. `path`: as it was sent, with percent signs.

    Raises `RegistryError` 404 for a path that isn't there, 405 for a method that it doesn't take.
    """
    parts = path_parts(path)
    while parts and not parts[-1]:
        parts.pop()
    context = DEFAULT_CONTEXT
    if len(parts) > 2 and parts[0] == "contexts":
        context, parts = parts[1].strip(":"), parts[2:]
    found = found_path(_ROUTES, parts)
    if found is None:
        raise RegistryError(404, "HTTP 404 Not Found")
    handler = _ROUTES[found.own].get(method)
    if handler is None:
        raise RegistryError(405, "HTTP 405 Method Not Allowed")
    return Route(handler, found.variables, context)


def _by_path() -> dict[PathParts, dict[str, Handler]]:
    found: dict[PathParts, dict[str, Handler]] = {}
    for (method, path), handler in _TABLE.items():
        found.setdefault(tuple(path.split("/")) if path else (), {})[method] = handler
    return found


_ROUTES: Final = _by_path()
