"""Which operation answers a request, and with which status: its method and its path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tidelog.connect.api.offset_operations import OffsetOperations, Pairs
from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.plugin_views import LoggerViews, plugin_config, plugins
from tidelog.connect.store.configs import TargetState
from tidelog.connect.store.errors import RestError
from tidelog.server.paths import PathParts, found_path, path_parts


@dataclass(frozen=True, slots=True)
class RestCall:
    """`path`: the path's variables, decoded once. `body`: the JSON of the request, None without one."""

    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    body: Any = None

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.path["name"]

    def task(self) -> int:
        """The task's number. Raises `RestError` 404 for what is none."""
        text = self.path["task"]
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise RestError(404, "HTTP 404 Not Found")
        return int(text)

    def flag(self, name: str, default: bool = False) -> bool:
        """A parameter that is true or not."""
        found = self.query.get(name)
        return default if not found else found[-1].lower() == "true"

    def object(self) -> dict[str, Any]:
        """The body as an object. Raises `RestError` 400."""
        if not isinstance(self.body, dict):
            raise RestError(400, "The request's body must be a JSON object.")
        return self.body

    def config(self) -> dict[str, str]:
        """The body as a configuration."""
        return {key: value for key, value in texts(self.object()).items() if value is not None}


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """A status of HTTP, a value of JSON (None: no body), and further headers."""

    status: int = 200
    value: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Operation = Callable[[RestCall], RestAnswer]


def texts(found: Mapping[str, Any]) -> dict[str, str | None]:
    """A configuration's values as texts; numbers and booleans are taken as Connect takes them.

    Raises `RestError` 400 for lists and objects.
    """
    said: dict[str, str | None] = {}
    for key, value in found.items():
        if isinstance(value, (list, dict)):
            raise RestError(400, f"The value of {key[:100]} must be a text, not a list or an object.")
        said[key] = ("true" if value else "false") if isinstance(value, bool) else None if value is None else str(value)
    return said


class RestRoutes:
    """The table of the REST API over a worker's operations."""

    def __init__(self, operations: ConnectOperations) -> None:
        self._do = operations
        self._offsets = OffsetOperations(operations)
        self._loggers = LoggerViews(operations)
        do, offsets, loggers = self._do, self._offsets, self._loggers
        table: dict[str, Operation] = {
            "GET ": lambda _: RestAnswer(200, do.root()),
            "GET health": lambda _: RestAnswer(*do.health()),
            "GET connectors": self._list,
            "POST connectors": self._create,
            "GET connectors/{name}": lambda call: RestAnswer(200, do.info(call.name)),
            "DELETE connectors/{name}": lambda call: _done(204, lambda: do.delete(call.name)),
            "GET connectors/{name}/config": lambda call: RestAnswer(200, do.config(call.name)),
            "PUT connectors/{name}/config": self._put_config,
            "PATCH connectors/{name}/config": self._patch_config,
            "GET connectors/{name}/status": lambda call: RestAnswer(200, do.status(call.name)),
            "GET connectors/{name}/tasks": lambda call: RestAnswer(200, do.tasks(call.name)),
            "GET connectors/{name}/tasks-config": self._task_configs,
            "GET connectors/{name}/tasks/{task}/status": lambda call: RestAnswer(
                200, do.task_status(call.name, call.task())
            ),
            "POST connectors/{name}/tasks/{task}/restart": lambda call: _done(
                204, lambda: do.restart_task(call.name, call.task())
            ),
            "POST connectors/{name}/restart": self._restart,
            "PUT connectors/{name}/pause": lambda call: _done(202, lambda: do.aim(call.name, TargetState.PAUSED)),
            "PUT connectors/{name}/resume": lambda call: _done(202, lambda: do.aim(call.name, TargetState.STARTED)),
            "PUT connectors/{name}/stop": lambda call: _done(204, lambda: do.aim(call.name, TargetState.STOPPED)),
            "GET connectors/{name}/topics": lambda call: RestAnswer(200, do.topics(call.name)),
            "PUT connectors/{name}/topics/reset": lambda call: _done(200, lambda: do.reset_topics(call.name)),
            "GET connectors/{name}/offsets": lambda call: RestAnswer(200, offsets.offsets(call.name)),
            "PATCH connectors/{name}/offsets": lambda call: RestAnswer(200, offsets.alter(call.name, pairs_of(call))),
            "DELETE connectors/{name}/offsets": lambda call: RestAnswer(200, offsets.reset(call.name)),
            "GET connector-plugins": lambda call: RestAnswer(
                200, plugins(do, connectors_only=call.flag("connectorsOnly", True))
            ),
            "GET connector-plugins/{plugin}/config": lambda call: RestAnswer(
                200, plugin_config(do, call.path["plugin"])
            ),
            "PUT connector-plugins/{plugin}/config/validate": lambda call: RestAnswer(
                200, do.validate(call.path["plugin"], call.config())
            ),
            "GET admin/loggers": lambda _: RestAnswer(200, loggers.all()),
            "GET admin/loggers/{logger}": lambda call: RestAnswer(200, loggers.one(call.path["logger"])),
            "PUT admin/loggers/{logger}": self._set_level,
        }
        self._table: dict[PathParts, dict[str, Operation]] = {}
        for named, operation in table.items():
            method, _, path = named.partition(" ")
            self._table.setdefault(tuple(path.split("/")) if path else (), {})[method] = operation

    def routed(self, method: str, path: str) -> tuple[str, Operation, dict[str, str]]:
        """The name of a request's route, its operation, and the path's variables.

        `path`: as it was sent, with percent signs. Raises `RestError` 404 and 405.
        """
        parts = path_parts(path)
        while parts and not parts[-1]:
            parts.pop()
        found = found_path(self._table, parts)
        if found is None:
            raise RestError(404, "HTTP 404 Not Found")
        operation = self._table[found.own].get(method)
        if operation is None:
            raise RestError(405, "HTTP 405 Method Not Allowed")
        return "/".join(found.own), operation, found.variables

    # --- what needs more than one line ----------------------------------------------------------------------------

    def _list(self, call: RestCall) -> RestAnswer:
        wanted = call.query.get("expand", ())
        return RestAnswer(200, self._do.expanded(wanted) if wanted else self._do.names())

    def _create(self, call: RestCall) -> RestAnswer:
        body = call.object()
        name, config, initial = body.get("name"), body.get("config"), body.get("initial_state")
        if not isinstance(config, dict):
            raise RestError(400, "The request's body must have the connector's configuration as an object, `config`.")
        given = {key: value for key, value in texts(config).items() if value is not None}
        name = given.get("name", "") if name is None else name
        if not isinstance(name, str) or not name.strip():
            raise RestError(400, "The request's body must have the connector's name, `name`.")
        if initial is not None and not isinstance(initial, str):
            raise RestError(400, f"initial_state is a text: {', '.join(TargetState)}.")
        made = self._do.create(name.strip(), given, initial)
        return RestAnswer(201, made, {"location": f"/connectors/{quote(name.strip(), safe='')}"})

    def _put_config(self, call: RestCall) -> RestAnswer:
        new, found = self._do.put_config(call.name, call.config())
        return RestAnswer(201 if new else 200, found, {"location": f"/connectors/{quote(call.name, safe='')}"})

    def _patch_config(self, call: RestCall) -> RestAnswer:
        return RestAnswer(200, self._do.patch_config(call.name, texts(call.object())))

    def _task_configs(self, call: RestCall) -> RestAnswer:
        tasks = self._do.tasks(call.name)
        return RestAnswer(200, {f"{call.name}-{one['id']['task']}": one["config"] for one in tasks})

    def _restart(self, call: RestCall) -> RestAnswer:
        with_tasks, only_failed = call.flag("includeTasks"), call.flag("onlyFailed")
        found = self._do.restart(call.name, include_tasks=with_tasks, only_failed=only_failed)
        return RestAnswer(202, found) if with_tasks or only_failed else RestAnswer(204)

    def _set_level(self, call: RestCall) -> RestAnswer:
        scope = (call.query.get("scope") or ("worker",))[-1].lower()
        changed = self._loggers.set(call.path["logger"], call.object().get("level"), scope)
        return RestAnswer(204) if changed is None else RestAnswer(200, changed)


def _done(status: int, act: Callable[[], None]) -> RestAnswer:
    """An answer without a body, of what has been done."""
    act()
    return RestAnswer(status)


def pairs_of(call: RestCall) -> Pairs:
    """The offsets of a PATCH. Raises `RestError` 400."""
    listed = call.object().get("offsets")
    if not isinstance(listed, list) or not listed:
        raise RestError(400, "Partitions / offsets need to be provided for an alter offsets request")
    found = []
    for one in listed:
        partition = one.get("partition") if isinstance(one, dict) else None
        offset = one.get("offset") if isinstance(one, dict) else None
        if not isinstance(partition, dict) or not (offset is None or isinstance(offset, dict)):
            raise RestError(400, "Each of `offsets` has a `partition`, an object, and an `offset`, an object or null.")
        found.append((partition, offset))
    return found
