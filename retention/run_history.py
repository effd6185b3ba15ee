"""The newest maintenance runs of a lake, for metrics, alarms and people: `__maintenance.json`.

It is a note, and nothing is decided by it. Two runs that end at one moment may leave the
note of one of them.
"""

import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from tidelog.log.base.errors import ObjectNotFoundError, StorageError
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.retention.report import MaintenanceReport

logger = logging.getLogger("tidelog.retention")

PATH: Final = "__maintenance.json"
KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class MaintenanceRun:
    """One run: when it began (ms since the epoch) and how long it took, its topics, and what failed.

    `parts`: what was asked for. `whole`: whether it looked after all topics of the lake.
    """

    run_id: str
    at_ms: int
    took_ms: int
    parts: tuple[str, ...]
    whole: bool
    topics: int
    failures: tuple[str, ...] = ()


def note_run(lake: Lake, report: MaintenanceReport, parts: Collection[str], *, whole: bool, took_ms: int) -> None:
    """Add a run that has ended; a store that refuses that does not fail the run."""
    failures = tuple(f"{topic}: {one.message}" for topic, one in report.failures())
    run = MaintenanceRun(
        report.run_id, report.now_ms, took_ms, tuple(sorted(parts)), whole, len(report.topics), failures[:KEPT]
    )
    try:
        kept = [run, *maintenance_runs(lake.storage)][:KEPT]
        lake.storage.put(PATH, orjson.dumps([asdict(one) for one in kept]))
    except StorageError as e:
        logger.warning("The run can't be noted in %s: %s", PATH, e)


def maintenance_runs(storage: Storage) -> list[MaintenanceRun]:
    """The newest runs, the last one first; none where nothing was noted, or what was can't be read."""
    try:
        body = orjson.loads(storage.get(PATH))
    except (ObjectNotFoundError, orjson.JSONDecodeError):
        return []
    found = (_run(one) for one in body) if isinstance(body, list) else ()
    return [one for one in found if one is not None]


def _run(body: Any) -> MaintenanceRun | None:
    try:
        return MaintenanceRun(
            str(body["run_id"]),
            int(body["at_ms"]),
            int(body["took_ms"]),
            tuple(map(str, body["parts"])),
            bool(body["whole"]),
            int(body["topics"]),
            tuple(map(str, body["failures"])),
        )
    except (KeyError, TypeError, ValueError):
        return None
