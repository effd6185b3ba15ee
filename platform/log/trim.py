"""Trimming a log: a floor is published first, then entries and checkpoints below it are deleted.

A writer that slept while entries were deleted must find the floor before it acknowledges anything, so the
order is: floor, then deletions, and every run sweeps again below the floor for strays of such writers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.log import layout
from tidelog.log.checkpoints import Checkpoint, read_checkpoint, whole_checkpoints
from tidelog.log.storage.port import ObjectInfo, Storage


@dataclass(frozen=True, slots=True)
class TrimPlan:
    """`floor`: every entry up to it may go, -1 for none. `paths`: what to delete after it is published."""

    floor: int
    paths: tuple[str, ...]


def plan_trim(
    listing: Sequence[ObjectInfo],
    checkpoints: Sequence[Checkpoint],
    floor: int,
    store_now_ms: int,
    min_age_ms: int,
) -> TrimPlan:
    """Decide the floor and the deletions. All times are the store's own clock, ms since the epoch.

    The newest checkpoint older than `min_age_ms` stays, with every entry from it on: whoever reads the table
    as it was within that age finds what it needs. `floor` is the newest one published so far.
    """
    modified = {layout.version_of(o.path): o.modified_ms for o in listing if o.path.endswith(".json")}
    old = [c.version for c in checkpoints if modified.get(c.version, store_now_ms) <= store_now_ms - min_age_ms]
    new_floor = max(floor, max(old, default=0) - 1)
    paths = tuple(
        o.path
        for o in listing
        if (version := layout.version_of(o.path)) is not None
        and version <= new_floor
        and o.modified_ms <= store_now_ms - min_age_ms
    )
    return TrimPlan(new_floor, paths)


def trim(storage: Storage, folder: str, min_age_ms: int) -> TrimPlan:
    """Carry a trim out; safe to run twice at once and to kill anywhere. Returns what was done.

    The newest object of the log folder stands for the store's clock: never ahead of it, so nothing goes early.
    """
    floors = [o.path for o in storage.list_after(f"{folder}/{layout.FLOOR_FOLDER}")]
    floor = max((layout.version_of(p) or 0 for p in floors), default=-1)
    listing = list(storage.list_after(f"{folder}/{layout.LOG_FOLDER}"))
    store_now_ms = max((o.modified_ms for o in listing), default=0)
    checkpoints = whole_checkpoints(listing)
    plan = plan_trim(listing, checkpoints, floor, store_now_ms, min_age_ms)
    if plan.floor > floor:
        kept = next(c for c in checkpoints if c.version > plan.floor)
        read_checkpoint(storage, folder, kept)  # what is deleted can only be had from it, so it must be readable
        storage.put_if_absent(f"{folder}/{layout.floor_path(plan.floor)}", b"")
    for path in plan.paths:
        storage.delete(path)
    for path in floors:
        if (layout.version_of(path) or 0) < plan.floor:
            storage.delete(path)
    return plan
