"""Connectors, and the replication slots of the databases that they read: what is not well with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
