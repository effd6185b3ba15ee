"""Which connectors are not well, as the topics of their workers say: no worker need run."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from tidelog.connect.store.configs import ConfigState, TargetState
from tidelog.connect.store.statuses import RunState, StatusState
from tidelog.connect.store.topics import workers_topic
from tidelog.groups.member.heartbeats import lease_path
from tidelog.groups.model import GroupView
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.operations.connectors import ConnectorHealth

# Connect's defaults (config.storage.topic, status.storage.topic).
CONFIGS: Final = "connect-configs"
STATUSES: Final = "connect-status"
# What workers call themselves in their group.
CLIENT: Final = "connect"
# A worker writes its lease each 1.5 s: one that is so old is that of a worker that is gone.
_SILENT_MS: Final = 60_000
_MOST_TRACE: Final = 300


def connector_health(lake: Lake, groups: Iterable[GroupView]) -> dict[str, ConnectorHealth]:
    """The connectors that are not well. `groups`: the lake's, the workers' among them. Raises tidelog's errors."""
    if lake.peek(CONFIGS) is None or lake.follows() is not None:
        return {}
    workers = heard_workers(lake.storage, groups, lake.clock.now_ms())
    configs = workers_topic(lake, CONFIGS, 1, ConfigState, ordered=True)
    statuses = workers_topic(lake, STATUSES, 1, StatusState)
    return configs.look(lambda config: statuses.look(lambda status: health_of(config, status, workers)))


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


def health_of(
    configs: ConfigState, statuses: StatusState, workers: Collection[str] | None
) -> dict[str, ConnectorHealth]:
    """The connectors that are to run, or are paused, and are not well. `workers`: None where it is not known."""
    found = {}
    for name in sorted(configs.connectors):
        if configs.target(name) is TargetState.STOPPED:
            continue
        health = _one(name, len(configs.tasks.get(name, ())), statuses, workers)
        if health.troubles(name):
            found[name] = health
    return found


def _one(name: str, tasks: int, statuses: StatusState, workers: Collection[str] | None) -> ConnectorHealth:
    unassigned, failed, retrying, silent = [], {}, {}, {}
    for task in (None, *range(tasks)):
        run, status = "connector" if task is None else f"task {task}", statuses.of(name, task)
        if status.state is RunState.FAILED:
            failed[run] = _reason(status.trace)
        elif status.state is RunState.UNASSIGNED:
            unassigned.append(run)
        elif workers is not None and status.worker_id not in workers:
            silent[run] = status.worker_id or "unknown"
        elif status.state is RunState.RESTARTING and status.trace:
            retrying[run] = f"{_reason(status.trace)} ({status.retries} tries)"
    return ConnectorHealth(tasks, tuple(unassigned), failed, retrying, silent)


def _reason(trace: str | None) -> str:
    """The last line of a trace, which says what failed."""
    lines = [line for line in (trace or "").strip().splitlines() if line.strip()]
    return lines[-1].strip()[:_MOST_TRACE] if lines else "no reason is written"


def all_troubles(found: dict[str, ConnectorHealth]) -> Iterator[str]:
    """In words."""
    for name, health in found.items():
        yield from health.troubles(name)
