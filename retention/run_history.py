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

    `parts`: what was asked for. `whole`: whether it looked after all topics of the lake. `waiting_…`: files that a
    later run deletes, their bytes, and when the last of them may go, in ms since the epoch, where that is known.
    """

    run_id: str
    at_ms: int
    took_ms: int
    parts: tuple[str, ...]
    whole: bool
    topics: int
    failures: tuple[str, ...] = ()
    waiting_files: int = 0
    waiting_bytes: int = 0
    waiting_until_ms: int | None = None


def note_run(lake: Lake, report: MaintenanceReport, parts: Collection[str], *, whole: bool, took_ms: int) -> None:
    """Add a run that has ended; a store that refuses that does not fail the run."""
    failures = tuple(f"{topic}: {one.message}" for topic, one in report.failures())
    waiting = [one for topic in report.topics if topic.purge is not None for one in topic.purge.waiting]
    run = MaintenanceRun(
        report.run_id,
        report.now_ms,
        took_ms,
        tuple(sorted(parts)),
        whole,
        len(report.topics),
        failures[:KEPT],
        len(waiting),
        sum(one.size for one in waiting),
        max((one.until_ms for one in waiting if one.until_ms is not None), default=None),
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
            int(body.get("waiting_files", 0)),
            int(body.get("waiting_bytes", 0)),
            None if body.get("waiting_until_ms") is None else int(body["waiting_until_ms"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
