"""The REST API of a worker: for each request the operation that answers it, and the right that it needs.

Connectors read and write topics with the worker's rights, and a configuration may hold passwords: a client that changes
connectors can do what the worker can, so that such rights are the cluster's, not a topic's.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

from starlette.requests import Request

from tidelog.connect.api.offset_operations import OffsetOperations, Pairs
from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.plugin_views import LoggerViews, plugin_config, plugins
from tidelog.connect.data.errors import ConnectError
from tidelog.log.base.errors import TidelogError
from tidelog.operations.connector_configs import (
    ConnectorExistsError,
    ConnectorNotFoundError,
    ConnectorTaskNotFoundError,
    TargetState,
)
from tidelog.operations.rights import Right
from tidelog.server.app import App, HttpRefusal, Refusals, by_status
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.logins import HttpLogins
from tidelog.server.requests import refuse_other_sites
from tidelog.server.routes import Answer, HttpCall, Route, Routes

_LOG: Final = logging.getLogger("tidelog.connect")


@dataclass(frozen=True, slots=True)
class OnCluster:
    """The right to the cluster; None: each client that is logged in has it. Raises `RequestRefusedError` 403."""

    right: Right | None

    def __call__(self, call: HttpCall) -> None:
        """Refuse a client that has not got it."""
        if self.right is not None and not call.client.may(self.right):
            raise RequestRefusedError(403, f"User is denied operation {self.right.only.operation.name} on the cluster.")


_ALL: Final = OnCluster(None)
_SEE: Final = OnCluster(Right.DESCRIBE_CONNECTOR)
_CONFIGS: Final = OnCluster(Right.DESCRIBE_CONNECTOR_CONFIG)
_CHANGE: Final = OnCluster(Right.ALTER_CONNECTOR)
_SEE_LEVELS: Final = OnCluster(Right.DESCRIBE_LOGGERS)
_SET_LEVELS: Final = OnCluster(Right.ALTER_LOGGERS)


@dataclass(frozen=True, slots=True)
class RestCall(HttpCall):
    """`body`: the JSON of the request, None without one."""

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.variables["name"]

    def task(self) -> int:
        """The task's number. Raises `RequestRefusedError` 404 for what is none."""
        text = self.variables["task"]
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise RequestRefusedError(404, "HTTP 404 Not Found")
        return int(text)

    def flag(self, name: str, default: bool = False) -> bool:
        """A parameter that is true or not."""
        found = self.query.get(name)
        return default if not found else found[-1].lower() == "true"

    def object(self) -> dict[str, Any]:
        """The body as an object. Raises `RequestRefusedError` 400."""
        if not isinstance(self.body, dict):
            raise RequestRefusedError(400, "The request's body must be a JSON object.")
        return self.body

    def config(self) -> dict[str, str]:
        """The body as a configuration."""
        return {key: value for key, value in texts(self.object()).items() if value is not None}


def texts(config: Mapping[str, Any]) -> dict[str, str | None]:
    """A configuration's values as texts; numbers and booleans are taken as Connect takes them.

    Raises `RequestRefusedError` 400 for lists and objects.
    """
    said: dict[str, str | None] = {}
    for key, value in config.items():
        if isinstance(value, (list, dict)):
            raise RequestRefusedError(400, f"The value of {key[:100]} must be a text, not a list or an object.")
        said[key] = ("true" if value else "false") if isinstance(value, bool) else None if value is None else str(value)
    return said


def rest_routes(do: ConnectOperations) -> tuple[Route[RestCall], ...]:
    """All rows, over a worker's operations."""
    offsets, loggers = OffsetOperations(do), LoggerViews(do)
    plugin, connector = "connector-plugins/{plugin}", "connectors/{name}"
    return (
        Route("GET", "", lambda _: do.root(), _ALL),
        Route("GET", "health", lambda _: Answer(*do.health()), _ALL),
        Route("GET", "connectors", lambda call: _listed(do, call), _CONFIGS),  # `expand=info` has configurations
        Route("POST", "connectors", lambda call: _created(do, call), _CHANGE),
        Route("GET", connector, lambda call: do.info(call.name), _CONFIGS),
        Route("DELETE", connector, lambda call: _done(204, lambda: do.delete(call.name)), _CHANGE),
        Route("GET", f"{connector}/config", lambda call: do.config(call.name), _CONFIGS),
        Route("PUT", f"{connector}/config", lambda call: _put_config(do, call), _CHANGE),
        Route("PATCH", f"{connector}/config", lambda call: do.patch_config(call.name, texts(call.object())), _CHANGE),
        Route("GET", f"{connector}/status", lambda call: do.status(call.name), _SEE),
        Route("GET", f"{connector}/tasks", lambda call: do.tasks(call.name), _CONFIGS),
        Route("GET", f"{connector}/tasks-config", lambda call: _task_configs(do, call), _CONFIGS),
        Route("GET", f"{connector}/tasks/{{task}}/status", lambda call: do.task_status(call.name, call.task()), _SEE),
        Route(
            "POST", f"{connector}/tasks/{{task}}/restart",
            lambda call: _done(204, lambda: do.restart_task(call.name, call.task())), _CHANGE,
        ),
        Route("POST", f"{connector}/restart", lambda call: _restarted(do, call), _CHANGE),
        Route("PUT", f"{connector}/pause", lambda call: _aimed(do, call, 202, TargetState.PAUSED), _CHANGE),
        Route("PUT", f"{connector}/resume", lambda call: _aimed(do, call, 202, TargetState.STARTED), _CHANGE),
        Route("PUT", f"{connector}/stop", lambda call: _aimed(do, call, 204, TargetState.STOPPED), _CHANGE),
        Route("GET", f"{connector}/topics", lambda call: do.topics(call.name), _SEE),
        Route("PUT", f"{connector}/topics/reset", lambda call: _done(200, lambda: do.reset_topics(call.name)), _CHANGE),
        Route("GET", f"{connector}/offsets", lambda call: offsets.offsets(call.name), _SEE),
        Route("PATCH", f"{connector}/offsets", lambda call: offsets.alter(call.name, pairs_of(call)), _CHANGE),
        Route("DELETE", f"{connector}/offsets", lambda call: offsets.reset(call.name), _CHANGE),
        Route(
            "GET", "connector-plugins",
            lambda call: plugins(do, connectors_only=call.flag("connectorsOnly", True)), _ALL,
        ),
        Route("GET", f"{plugin}/config", lambda call: plugin_config(do, call.variables["plugin"]), _ALL),
        # It may connect to where the configuration says.
        Route(
            "PUT", f"{plugin}/config/validate",
            lambda call: do.validate(call.variables["plugin"], call.config()), _CHANGE,
        ),
        Route("GET", "admin/loggers", lambda _: loggers.all(), _SEE_LEVELS),
        Route("GET", "admin/loggers/{logger}", lambda call: loggers.one(call.variables["logger"]), _SEE_LEVELS),
        Route("PUT", "admin/loggers/{logger}", lambda call: _set_level(loggers, call), _SET_LEVELS),
    )  # fmt: skip


def _listed(do: ConnectOperations, call: RestCall) -> Any:
    wanted = call.query.get("expand", ())
    return do.expanded(wanted) if wanted else do.names()


def _created(do: ConnectOperations, call: RestCall) -> Answer:
    body = call.object()
    name, config, initial = body.get("name"), body.get("config"), body.get("initial_state")
    if not isinstance(config, dict):
        raise RequestRefusedError(
            400, "The request's body must have the connector's configuration as an object, `config`."
        )
    given = {key: value for key, value in texts(config).items() if value is not None}
    name = given.get("name", "") if name is None else name
    if not isinstance(name, str) or not name.strip():
        raise RequestRefusedError(400, "The request's body must have the connector's name, `name`.")
    if initial is not None and not isinstance(initial, str):
        raise RequestRefusedError(400, f"initial_state is a text: {', '.join(TargetState)}.")
    return Answer(201, do.create(name.strip(), given, initial), _location(name.strip()))


def _put_config(do: ConnectOperations, call: RestCall) -> Answer:
    new, connector = do.put_config(call.name, call.config())
    return Answer(201 if new else 200, connector, _location(call.name))


def _location(name: str) -> dict[str, str]:
    return {"location": f"/connectors/{quote(name, safe='')}"}


def _task_configs(do: ConnectOperations, call: RestCall) -> Any:
    return {f"{call.name}-{task['id']['task']}": task["config"] for task in do.tasks(call.name)}


def _restarted(do: ConnectOperations, call: RestCall) -> Answer:
    with_tasks, only_failed = call.flag("includeTasks"), call.flag("onlyFailed")
    status = do.restart(call.name, include_tasks=with_tasks, only_failed=only_failed)
    return Answer(202, status) if with_tasks or only_failed else Answer(204)


def _aimed(do: ConnectOperations, call: RestCall, status: int, target: TargetState) -> Answer:
    return _done(status, lambda: do.aim(call.name, target))


def _set_level(loggers: LoggerViews, call: RestCall) -> Answer:
    scope = (call.query.get("scope") or ("worker",))[-1].lower()
    changed = loggers.set(call.variables["logger"], call.object().get("level"), scope)
    return Answer(204) if changed is None else Answer(200, changed)


def _done(status: int, act: Callable[[], None]) -> Answer:
    """An answer without a body, of what has been done."""
    act()
    return Answer(status)


def pairs_of(call: RestCall) -> Pairs:
    """The offsets of a PATCH. Raises `RequestRefusedError` 400."""
    listed = call.object().get("offsets")
    if not isinstance(listed, list) or not listed:
        raise RequestRefusedError(400, "Partitions / offsets need to be provided for an alter offsets request")
    pairs = []
    for one in listed:
        partition = one.get("partition") if isinstance(one, dict) else None
        offset = one.get("offset") if isinstance(one, dict) else None
        if not isinstance(partition, dict) or not (offset is None or isinstance(offset, dict)):
            raise RequestRefusedError(
                400, "Each of `offsets` has a `partition`, an object, and an `offset`, an object or null."
            )
        pairs.append((partition, offset))
    return pairs


def _failed_in_store(error: TidelogError) -> HttpRefusal:
    _LOG.warning("A request failed in the store: error=%s: %s", type(error).__name__, error)
    return HttpRefusal(500, str(error))


class RestApp(App[RestCall]):
    """The REST API as an ASGI application. `logins`: None lets everyone do everything."""

    logger: ClassVar[logging.Logger] = _LOG
    rights_first: ClassVar[bool] = True
    refusals: ClassVar[Refusals] = (
        (RequestRefusedError, by_status),
        ((ConnectorNotFoundError, ConnectorTaskNotFoundError), lambda error: HttpRefusal(404, str(error))),
        (ConnectorExistsError, lambda error: HttpRefusal(409, str(error))),
        (ConnectError, lambda error: HttpRefusal(400, str(error))),
        (TidelogError, _failed_in_store),
    )

    def __init__(
        self, operations: ConnectOperations, bounds: HttpBounds | None = None, logins: HttpLogins | None = None
    ) -> None:
        super().__init__(Routes(rest_routes(operations)), RestCall, bounds, logins)

    def counted(self, route: Route[RestCall]) -> str:
        """How metrics name a request: by its path alone."""
        return route.path

    def admit(self, request: Request, route: Route[RestCall], call: RestCall) -> None:  # noqa: ARG002 - a step
        """Refuse what other sites' pages have a browser change."""
        if call.changes:
            refuse_other_sites(request, "connectors")
