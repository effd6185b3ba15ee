"""Which handler answers a request, and which right it needs: one row for each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tidelog.access.model import AclOperation, AclResource
from tidelog.console.base.calls import ConsoleCall, Handler, Rule
from tidelog.console.base.errors import ConsoleError
from tidelog.server.routes import PathParts, found_path, path_parts

_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class ConsoleRoute:
    """`path`: as "/api/groups/{group}". `rule`: asked before the handler. `body`: bytes that a request may have.

    A route that is no GET changes something, and is refused by a console that is read-only, unless `reads`.
    """

    method: str
    path: str
    handler: Handler
    rule: Rule
    body: int = _MIB
    reads: bool = False

    @property
    def changes(self) -> bool:
        """Whether the request changes the lake."""
        return self.method != "GET" and not self.reads


class Routes:
    """All routes, by path."""

    def __init__(self, routes: Iterable[ConsoleRoute]) -> None:
        self._by_path: dict[PathParts, dict[str, ConsoleRoute]] = {}
        for route in routes:
            methods = self._by_path.setdefault(tuple(route.path.split("/")[1:]), {})
            assert route.method not in methods, route  # two handlers of one request
            methods[route.method] = route

    def routed(self, method: str, path: str) -> tuple[ConsoleRoute, dict[str, str]]:
        """The route of a request, and the path's variables. `path`: as it was sent, with percent signs.

        Raises `ConsoleError` 404 for a path that isn't there, 405 for a method that it doesn't take.
        """
        found = found_path(self._by_path, path_parts(path))
        if found is None:
            raise ConsoleError(404, "The console has nothing at this path.")
        route = self._by_path[found.own].get(method)
        if route is None:
            raise ConsoleError(405, f"This path does not take {method}.")
        return route, found.variables


def for_all(call: ConsoleCall) -> None:
    """Every client that is logged in may, or the handler gives only what the client sees."""


def of_topic(operation: AclOperation) -> Rule:
    """The right to do it to the path's topic."""
    return lambda call: call.rights.require(operation, AclResource.TOPIC, call.topic)


def of_group(operation: AclOperation) -> Rule:
    """The right to do it to the path's group."""
    return lambda call: call.rights.require(operation, AclResource.GROUP, call.variables["group"])


def of_cluster(operation: AclOperation) -> Rule:
    """The right to do it to the cluster."""
    return lambda call: call.rights.require(operation, AclResource.CLUSTER)


def all_of(*rules: Rule) -> Rule:
    """All of these rights."""

    def rule(call: ConsoleCall) -> None:
        for one in rules:
            one(call)

    return rule
