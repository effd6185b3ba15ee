"""Connectors of a lake, as the topics of their workers say: no worker need run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from tidelog.log.compacted_topic import CompactedTopic, TopicOwner
from tidelog.log.folds.compacted import TopicFold
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import ConfigState, TargetState
from tidelog.operations.connector_statuses import RunStatus, StatusState

F = TypeVar("F", bound=TopicFold)

# Connect's defaults (config.storage.topic, status.storage.topic).
CONFIGS: Final = "connect-configs"
STATUSES: Final = "connect-status"
_OWNER: Final = TopicOwner("the workers", "it", "what workers need would be deleted by its age")


@dataclass(frozen=True, slots=True)
class ConnectorDescription:
    """A connector: what it is to do, and does. `tasks`: the status of each, by its number. `topics`: that it uses."""

    name: str
    config: Mapping[str, str]
    target: TargetState
    status: RunStatus
    tasks: tuple[RunStatus, ...]
    topics: tuple[str, ...]


def workers_topic(
    lake: Lake, name: str, partitions: int, fold: Callable[[], F], *, ordered: bool = False
) -> CompactedTopic[F]:
    """A topic that workers share; `partitions`, `fold` and `ordered` as of `CompactedTopic`."""
    return CompactedTopic(lake, name, partitions, fold, _OWNER, ordered=ordered)


class Connectors:
    """The connectors of a lake, by both topics that their workers share. Any thread may call it."""

    def __init__(self, configs: CompactedTopic[ConfigState], statuses: CompactedTopic[StatusState]) -> None:
        self.configs = configs
        self.statuses = statuses

    def configured(self) -> dict[str, dict[str, str]]:
        """Their configurations as they are now, by name, sorted. Raises as `CompactedTopic` does."""
        return self.configs.look(lambda state: {name: dict(one) for name, one in sorted(state.connectors.items())})

    def describe(self) -> list[ConnectorDescription]:
        """All of them as they are now, by name. Raises as `CompactedTopic` does."""
        return self._described(lambda state: sorted(state.connectors))

    def describe_one(self, name: str) -> ConnectorDescription:
        """One of them. Raises `ConnectorNotFoundError`, and as `CompactedTopic` does."""

        def names(state: ConfigState) -> list[str]:
            state.require(name)
            return [name]

        return self._described(names)[0]

    def _described(self, names: Callable[[ConfigState], list[str]]) -> list[ConnectorDescription]:
        wanted = self.configs.look(
            lambda state: [
                (name, dict(state.connectors[name]), state.target(name), len(state.task_configs(name)))
                for name in names(state)
            ]
        )

        def at(state: StatusState) -> list[ConnectorDescription]:
            return [
                ConnectorDescription(
                    name, config, target, state.of(name, None), tuple(state.of(name, task) for task in range(tasks)),
                    tuple(sorted(state.topics.get(name, ()))),
                )
                for name, config, target, tasks in wanted
            ]  # fmt: skip

        return self.statuses.look(at)


def own_connectors(lake: Lake) -> Connectors | None:
    """As `connectors_of`; None for a lake that no worker ever used, or that follows another one, where they run."""
    return None if lake.peek(CONFIGS) is None or lake.follows() is not None else connectors_of(lake)


def connectors_of(lake: Lake) -> Connectors:
    """The connectors of a lake whose workers have the topics that they have unless configured otherwise."""
    return Connectors(
        workers_topic(lake, CONFIGS, 1, ConfigState, ordered=True), workers_topic(lake, STATUSES, 1, StatusState)
    )
