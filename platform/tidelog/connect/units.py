"""What workers share out, and which runs follow from it: pure rules.

A unit is a connector or a task. Members of the group subscribe to one topic of one partition for each unit; such topics
exist in the group's records alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.operations.connector_configs import ConfigState, RestartRequest, TargetState

# A connector's name, and a task's number or None for the connector itself.
Unit = tuple[str, int | None]
# The unit that one worker has: it cleans up after connectors that are gone.
KEEPER: Unit = ("", None)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a unit is to run. Another `version` is another run; so is another target of a connector.

    `version`: of its configuration: offsets of the records that made it.
    """

    unit: Unit
    version: tuple[int, ...]
    target: TargetState

    def replaces(self, other: "RunSpec") -> bool:
        """Whether a run of `other` has to end for this one."""
        is_connector = self.unit[1] is None
        return self.version != other.version or (is_connector and self.target is not other.target)


def topic_of(unit: Unit) -> str:
    """The name of a unit's topic in the group."""
    name, task = unit
    return f"connector:{name}" if task is None else f"task:{task}:{name}"


def unit_of(topic: str) -> Unit:
    """The unit of a topic's name."""
    kind, _, rest = topic.partition(":")
    if kind == "connector":
        return rest, None
    number, _, name = rest.partition(":")
    return name, int(number)


def units_of(state: ConfigState) -> frozenset[Unit]:
    """Everything to share out."""
    tasks = {(name, task) for name in state.connectors for task in range(len(state.current_tasks(name)))}
    return frozenset({KEEPER, *((name, None) for name in state.connectors), *tasks})


def specs_of(state: ConfigState, owned: Iterable[Unit]) -> dict[Unit, RunSpec]:
    """What a worker is to run, of the units that it has."""
    specs: dict[Unit, RunSpec] = {}
    for unit in owned:
        name, task = unit
        if unit == KEEPER or name not in state.connectors:
            continue
        target = state.target(name)
        if task is None:
            specs[unit] = RunSpec(unit, (state.versions[name],), target)
        elif task < len(state.current_tasks(name)):
            specs[unit] = RunSpec(unit, (state.versions[name], state.task_versions[name]), target)
    return specs


def restarted(request: RestartRequest, failed: Mapping[Unit, bool]) -> set[Unit]:
    """The units that a restart is about (KIP-745), of a worker's runs. `failed`: whether each has FAILED."""

    def wanted(unit: Unit) -> bool:
        name, task = unit
        if name != request.connector or (request.only_failed and not failed[unit]):
            return False
        if request.task is not None:
            return task == request.task
        return task is None or request.include_tasks

    return {unit for unit in failed if wanted(unit)}


def new_restarts(state: ConfigState, seen: Mapping[str, int]) -> list[RestartRequest]:
    """The restarts that a worker has not acted on. `seen`: the offset of the last one of each connector."""
    return [one for one in state.restarts.values() if one.offset > seen.get(one.connector, -1)]
