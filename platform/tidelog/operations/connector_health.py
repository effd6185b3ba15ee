"""Which connectors are not well, as the topics of their workers say: no worker need run; and replication slots."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.groups.member.heartbeats import lease_path
from tidelog.groups.model import GroupView
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.operations.connector_configs import TargetState
from tidelog.operations.connector_statuses import RunState
from tidelog.operations.connectors import ConnectorDescription, own_connectors

# What workers call themselves in their group.
CLIENT: Final = "connect"
# A worker writes its lease each 1.5 s: one that is so old is that of a worker that is gone.
_SILENT_MS: Final = 60_000
_MOST_TRACE: Final = 300


@dataclass(frozen=True, slots=True)
class ConnectorHealth:
    """A connector that is to run, and what is not well with it, by "connector" and "task 0", "task 1" …

    `unassigned`: runs that no worker has. `failed`, `retrying`: why. `silent`: runs whose worker is not heard of, with
    that worker. `tasks`: how many it has.
    """

    tasks: int
    unassigned: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    retrying: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)

    def troubles(self, name: str) -> list[str]:
        """In words, each by itself."""
        said = [f"Connector '{name}', {run}, has failed: {why}" for run, why in self.failed.items()]
        said += [f"Connector '{name}', {run}, is tried again: {why}" for run, why in self.retrying.items()]
        said += [f"Connector '{name}', {run}, was with worker {who}." for run, who in self.silent.items()]
        if self.unassigned:
            said.append(f"No worker has connector '{name}' ({', '.join(self.unassigned)}).")
        return said


@dataclass(frozen=True, slots=True)
class SlotHealth:
    """A replication slot of a database that a connector reads. `held_bytes`: of the log that it keeps on the disk.

    `connector`: whose slot it is, "" for none of this lake. `problem`: why the database could not be asked.
    """

    slot: str
    database: str
    connector: str = ""
    active: bool = True
    held_bytes: int = 0
    problem: str = ""


def connector_health(lake: Lake, groups: Iterable[GroupView]) -> dict[str, ConnectorHealth]:
    """The connectors that are not well. `groups`: the lake's, the workers' among them. Raises tidelog's errors."""
    connectors = own_connectors(lake)
    if connectors is None:
        return {}
    workers = heard_workers(lake.storage, groups, lake.clock.now_ms())
    return unwell(connectors.describe(), workers)


def heard_workers(storage: Storage, groups: Iterable[GroupView], now_ms: int) -> set[str]:
    """The workers whose lease is fresh, by host:port."""
    seen: dict[str, int] = {}
    for view in groups:
        for member in view.group.members.values() if view.group else ():
            if view.group and member.client_id == CLIENT:
                try:
                    written = storage.head(lease_path(view.group.group_id, member.member_id)).modified_ms
                except ObjectNotFoundError:
                    continue
                seen[member.host] = max(written, seen.get(member.host, 0))
    # The store's clock may be ahead of this machine's: the newest lease says what it is at least.
    now_ms = max([now_ms, *seen.values()])
    return {host for host, written in seen.items() if now_ms - written <= _SILENT_MS}


def unwell(connectors: Iterable[ConnectorDescription], workers: Collection[str] | None) -> dict[str, ConnectorHealth]:
    """The connectors that are to run, or are paused, and are not well. `workers`: None where it is not known."""
    healths = {}
    for connector in connectors:
        if connector.target is not TargetState.STOPPED:
            health = health_of(connector, workers)
            if health.troubles(connector.name):
                healths[connector.name] = health
    return healths


def health_of(connector: ConnectorDescription, workers: Collection[str] | None) -> ConnectorHealth:
    """What is not well with a connector and its tasks. `workers`: those that are heard of; None: not known."""
    unassigned, failed, retrying, silent = [], {}, {}, {}
    for status in (connector.status, *connector.tasks):
        run = "connector" if status.task is None else f"task {status.task}"
        if status.state is RunState.FAILED:
            failed[run] = _reason(status.trace)
        elif status.state is RunState.UNASSIGNED:
            unassigned.append(run)
        elif workers is not None and status.worker_id not in workers:
            silent[run] = status.worker_id or "unknown"
        elif status.state is RunState.RESTARTING and status.trace:
            retrying[run] = f"{_reason(status.trace)} ({status.retries} tries)"
    return ConnectorHealth(len(connector.tasks), tuple(unassigned), failed, retrying, silent)


def _reason(trace: str | None) -> str:
    """The last line of a trace, which says what failed."""
    lines = [line for line in (trace or "").strip().splitlines() if line.strip()]
    return lines[-1].strip()[:_MOST_TRACE] if lines else "no reason is written"


def all_troubles(found: dict[str, ConnectorHealth]) -> Iterator[str]:
    """In words."""
    for name, health in found.items():
        yield from health.troubles(name)
