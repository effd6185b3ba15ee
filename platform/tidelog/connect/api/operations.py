"""What requests do: each is decided at the head of the shared topics, whichever worker it came to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, TypeVar

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.connect.config.definition import ConfigDef, ConfigValue, validation_json
from tidelog.connect.config.providers import hidden_in
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.runtime.plugins import Plugins, validated
from tidelog.connect.spi.connectors import Connector
from tidelog.connect.worker import Worker
from tidelog.operations.connector_configs import (
    ConfigRecord,
    ConfigState,
    TargetState,
    decide_create,
    decide_delete,
    decide_put,
    decide_restart,
    decide_target,
    patched,
)
from tidelog.operations.connector_statuses import RunState, StatusState, topic_key
from tidelog.operations.connectors import ConnectorDescription
from tidelog.server.errors import RequestRefusedError

R = TypeVar("R")
_MOST_SHOWN: Final = 20
# The Connect whose interface this is: kcctl and its like offer what came with a version from that version on.
KAFKA: Final = "4.1.2"


class ConnectOperations:
    """The requests of the REST API about connectors and plugins, over one worker. Any thread may call it."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.shared = worker.shared
        self._build = f"tidelog-{version('tidelog')}"

    # --- the worker ---------------------------------------------------------------------------------------------

    def root(self) -> dict[str, Any]:
        """GET /. The cluster's id is what brokers call it; the lake's address before one ever ran."""
        lake = self.shared.lake
        cluster = ClusterLog(lake).cluster_id() or lake.uri
        return {"version": KAFKA, "commit": self._build, "kafka_cluster_id": cluster}

    def health(self) -> tuple[int, dict[str, str]]:
        """GET /health (KIP-1017): the status of HTTP, and what it says."""
        failure = self.worker.failure
        if failure is not None:
            return 500, {"status": "unhealthy", "message": f"The worker has failed: {failure}"}
        if self.worker.rebalancing:
            return 503, {"status": "starting", "message": "Worker is still starting up, or is rebalancing."}
        return 200, {
            "status": "healthy",
            "message": "Worker has completed startup and is ready to handle requests.",
        }

    # --- connectors ---------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """GET /connectors."""
        return self._configs(lambda state: sorted(state.connectors))

    def expanded(self, wanted: Iterable[str]) -> dict[str, Any]:
        """GET /connectors?expand=status&expand=info."""
        parts: dict[str, Callable[[str], Any]] = {"status": self.status, "info": self.info}
        chosen = [name for name in parts if name in wanted]
        return {name: {part: parts[part](name) for part in chosen} for name in self.names()}

    def create(self, name: str, config: Mapping[str, str], initial: str | None) -> dict[str, Any]:
        """POST /connectors. Raises `RequestRefusedError` 400 and 409."""
        config = self._valid(name, config)
        target = None
        if initial is not None:
            if initial not in TargetState.__members__:
                raise RequestRefusedError(400, f"initial_state {initial[:100]} is none of {', '.join(TargetState)}")
            target = TargetState(initial)
        self._decide(lambda state: (None, decide_create(state, name, config, target)))
        return self.info(name)

    def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, dict[str, Any]]:
        """PUT /connectors/{name}/config: whether the connector is new, and what it is now."""
        config = self._valid(name, config)
        return self._decide(lambda state: decide_put(state, name, config)), self.info(name)

    def patch_config(self, name: str, patch: Mapping[str, str | None]) -> dict[str, Any]:
        """PATCH /connectors/{name}/config (KIP-477)."""

        while True:  # until no other request has changed the configuration in between
            before = self.config(name)
            config = self._valid(name, patched(before, patch))
            if self._decide(_put_over(name, before, config)):
                return self.info(name)

    def delete(self, name: str) -> None:
        """DELETE /connectors/{name}."""
        self._decide(lambda state: (None, decide_delete(state, name)))
        topics = self._statuses(lambda state: sorted(state.topics.get(name, ())))
        self._forget_topics(name, topics)

    def config(self, name: str) -> dict[str, str]:
        """GET /connectors/{name}/config."""
        return self._configs(lambda state: dict(state.require(name)))

    def info(self, name: str) -> dict[str, Any]:
        """GET /connectors/{name}."""
        config, count = self._configs(lambda state: (dict(state.require(name)), len(state.task_configs(name))))
        tasks = [{"connector": name, "task": number} for number in range(count)]
        return {"name": name, "config": config, "tasks": tasks, "type": self.shared.plugins.kind_of(config)}

    def status(self, name: str) -> dict[str, Any]:
        """GET /connectors/{name}/status."""
        return status_json(self.shared.connectors.describe_one(name), self.shared.plugins)

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """GET /connectors/{name}/tasks."""
        configs = self._configs(lambda state: list(state.task_configs(name)))
        return [{"id": {"connector": name, "task": i}, "config": config} for i, config in enumerate(configs)]

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        """GET /connectors/{name}/tasks/{task}/status."""
        self._configs(lambda state: state.require_task(name, task))
        return self._statuses(lambda state: state.of(name, task).as_json())

    def aim(self, name: str, target: TargetState) -> None:
        """PUT /connectors/{name}/pause, resume and stop."""
        self._decide(lambda state: (None, decide_target(state, name, target)))

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any]:
        """POST /connectors/{name}/restart: the status, with what is restarted as RESTARTING (KIP-745)."""
        self.require_ready()
        status = self.status(name)
        self._decide(
            lambda state: (None, decide_restart(state, name, include_tasks=include_tasks, only_failed=only_failed))
        )
        runs = [status["connector"], *(status["tasks"] if include_tasks else ())]
        for run in runs:
            if not only_failed or run["state"] == RunState.FAILED:
                run["state"] = str(RunState.RESTARTING)
                run.pop("trace", None)
        return status

    def restart_task(self, name: str, task: int) -> None:
        """POST /connectors/{name}/tasks/{task}/restart."""
        self.require_ready()
        self._decide(
            lambda state: (None, decide_restart(state, name, include_tasks=False, only_failed=False, task=task))
        )

    def topics(self, name: str) -> dict[str, Any]:
        """GET /connectors/{name}/topics (KIP-558)."""
        if not self.shared.settings.tracks_topics:
            raise RequestRefusedError(403, "Topic tracking is disabled.")
        self.config(name)
        return {name: {"topics": self._statuses(lambda state: sorted(state.topics.get(name, ())))}}

    def reset_topics(self, name: str) -> None:
        """PUT /connectors/{name}/topics/reset."""
        if not (self.shared.settings.tracks_topics and self.shared.settings.resets_topics):
            raise RequestRefusedError(403, "Topic tracking reset is disabled.")
        self._forget_topics(name, self.topics(name)[name]["topics"])

    def _forget_topics(self, name: str, topics: Sequence[str]) -> None:
        self.shared.statuses.append([(topic_key(name, topic).encode(), None) for topic in topics])
        self.shared.forget_topics(name)

    # --- plugins ------------------------------------------------------------------------------------------------

    def validate(self, plugin_name: str, config: Mapping[str, str]) -> dict[str, Any]:
        """PUT /connector-plugins/{plugin}/config/validate."""
        named = config.get("connector.class")
        plugin = self.plugin(plugin_name)
        if named is not None and self.plugin(named) is not plugin:
            raise RequestRefusedError(
                400, f"Included connector type {named[:200]} does not match request type {plugin_name[:200]}"
            )
        definition, values = self._validated(plugin, config)
        return validation_json(named or plugin.names[0], definition, values)

    def plugin(self, name: str) -> type[Connector]:
        """A connector's plugin. Raises `RequestRefusedError` 404."""
        try:
            return self.shared.plugins.connector(name)
        except ConnectConfigError as error:
            raise RequestRefusedError(404, str(error)) from None

    # --- shared -------------------------------------------------------------------------------------------------

    def require_ready(self) -> None:
        """Refuse what needs running workers while they learn what they run. Raises `RequestRefusedError` 409."""
        if self.worker.rebalancing:
            raise RequestRefusedError(
                409,
                "Cannot complete request momentarily due to a rebalance: this worker learns what it is to run. Send the"
                " request again.",
            )

    def _valid(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        """A configuration with its name. Raises `RequestRefusedError` 400 with all that is wrong."""
        config = {**given, "name": given.get("name", name)}
        if config["name"] != name:
            raise RequestRefusedError(
                400,
                f"Connector name configuration ({config['name'][:200]}) doesn't match connector name in the URL"
                f" ({name[:200]})",
            )
        if "connector.class" not in config:
            raise RequestRefusedError(400, "Connector config {name=" + name[:200] + "} contains no connector type")
        try:
            plugin = self.shared.plugins.connector(config["connector.class"])
        except ConnectConfigError as error:
            raise RequestRefusedError(400, str(error)) from None
        _, values = self._validated(plugin, config)
        errors = [error for value in values for error in value.errors]
        if errors:
            shown = "\n".join(errors[:_MOST_SHOWN])
            raise RequestRefusedError(
                400,
                f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{shown}\nYou"
                " can also find the above list of errors at the endpoint"
                " `/connector-plugins/{connectorType}/config/validate`",
            )
        return config

    def _validated(self, plugin: type[Connector], given: Mapping[str, str]) -> tuple[ConfigDef, list[ConfigValue]]:
        """What is to say of a configuration, without the values that its variables stand for."""
        exactly_once, hide = self.shared.settings.exactly_once, self.shared.providers.secrets.hidden
        try:
            resolved = self.shared.providers.resolved(given)
        except ConnectConfigError as error:
            definition, values = validated(plugin, given, exactly_once=exactly_once)
            wrong = next((value for value in values if f"for configuration {value.name}:" in str(error)), None)
            for value in values:  # nothing can be said of them while one has no value
                value.errors = []
            (wrong or values[0]).errors.append(str(error))
            return definition, values
        definition, values = validated(plugin, resolved.config, exactly_once=exactly_once)
        for value in values:
            value.errors = [hide(error) for error in value.errors]
            if resolved.config.get(value.name) != given.get(value.name):
                value.value = given[value.name]
            value.recommended = hidden_in(value.recommended, hide)
        return definition, values

    def _configs(self, at: Callable[[ConfigState], R]) -> R:
        return self.shared.configs.look(at)

    def _statuses(self, at: Callable[[StatusState], R]) -> R:
        return self.shared.statuses.look(at)

    def _decide(self, rule: Callable[[ConfigState], tuple[R, Sequence[ConfigRecord]]]) -> R:
        def as_rows(state: ConfigState) -> tuple[R, list[tuple[bytes, bytes | None]]]:
            response, records = rule(state)
            return response, [record.bytes() for record in records]

        response = self.shared.configs.decide(as_rows)
        self.worker.wake()
        return response


def status_json(connector: ConnectorDescription, plugins: Plugins) -> dict[str, Any]:
    """What the API says of a connector's status."""
    return {
        "name": connector.name,
        "connector": connector.status.as_json(),
        "tasks": [status.as_json() for status in connector.tasks],
        "type": plugins.kind_of(connector.config),
    }


def _put_over(
    name: str, before: Mapping[str, str], config: Mapping[str, str]
) -> Callable[[ConfigState], tuple[bool, Sequence[ConfigRecord]]]:
    """The rule that puts a configuration over the one that it was made of: whether that is still there."""

    def rule(state: ConfigState) -> tuple[bool, Sequence[ConfigRecord]]:
        if state.require(name) != before:
            return False, []
        return True, decide_put(state, name, config)[1]

    return rule
