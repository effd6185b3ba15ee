"""Trimming a log: a floor is published first, then entries and checkpoints below it are deleted.

A writer that was frozen while entries were deleted must find the floor before it acknowledges anything, so the
order is: floor, then deletions, and every run sweeps again below the floor for strays of such writers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidelog.log.base.errors import CorruptLogError
from tidelog.log.checkpoints.reading import Checkpoint, read_checkpoint, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.storage.port import ObjectInfo, Storage
from tidelog.log.upkeep.holds import abandoned, held_version, read_holds

# A gap between two entries counts at most for this part of the least age.
GAPS_IN_AN_AGE = 10


@dataclass(frozen=True, slots=True)
class TrimPlan:
    """`floor`: every entry up to it may go, -1 for none. `paths`: what to delete after it is published."""

    floor: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a patient trimmer has seen: at `store_ms` of the store's clock the log's head was entry `version`.

    Its caller has waited since then, on a clock that never jumps, for the smallest `log.min.age.ms` there is
    (`SMALLEST_MIN_AGE_S` of the commit loop): a writer that has not seen these entries looks at the floors before it
    acknowledges anything. So their age may be read off the store's clock alone, as far as time travel is concerned.
    """

    version: int
    store_ms: int


def plan_trim(
    listing: Sequence[ObjectInfo],
    checkpoints: Sequence[Checkpoint],
    floor: int,
    store_now_ms: int,
    min_age_ms: int,
    seen: Seen | None = None,
    held: int | None = None,
) -> TrimPlan:
    """Decide the floor and the deletions. All times are the store's own clock, ms since the epoch.

    What the floor passes is old by `ages_ms`. Deletions go in the order of versions: an entry whose predecessor is
    there was not trimmed, which a writer goes by when a store's listing lacks the floor.
    The newest checkpoint older than `min_age_ms` stays, with every entry from it on: a reader of the table
    as it was within that age finds what it needs. So does a running job that needs versions from `held` on.
    `floor` is the newest one published so far.
    """
    ages = ages_ms(listing, floor, min_age_ms, seen)
    old = [c.version for c in checkpoints if ages.get(c.version, -1) >= min_age_ms]
    new_floor = max(floor, max((v for v in old if held is None or v <= held), default=0) - 1)
    paths = tuple(
        o.path
        for o in listing
        if (version := layout.version_of(o.path)) is not None
        and version <= new_floor
        and o.modified_ms <= store_now_ms - min_age_ms
    )
    return TrimPlan(new_floor, paths)


def ages_ms(listing: Sequence[ObjectInfo], floor: int, min_age_ms: int, seen: Seen | None = None) -> dict[int, int]:
    """{version: age} of the entries past the floor, in ms: as their times prove it, or as a patient trimmer has seen.

    To the patient one an entry is as old as the store's clock says, and no older than the entries before it.
    """
    ages = counted_ages_ms(listing, floor, min_age_ms // GAPS_IN_AN_AGE)
    if seen is None:
        return ages
    modified = {v: o.modified_ms for o in listing if (v := layout.entry_version(o.path)) is not None}
    reached = 0
    for version in sorted(v for v in ages if v <= seen.version):
        reached = max(reached, modified[version])
        ages[version] = max(ages[version], seen.store_ms - reached)
    return ages


def old_version(ages: Mapping[int, int], min_age_ms: int) -> int:
    """The newest version that is `min_age_ms` old; -1 when none is."""
    return max((version for version, age in ages.items() if age >= min_age_ms), default=-1)


def counted_ages_ms(listing: Sequence[ObjectInfo], floor: int, longest_gap_ms: int) -> dict[int, int]:
    """{version: age} of the entries past the floor, in ms up to the newest entry, as their times prove it.

    The clock of a local disk may jump. So a gap between two entries counts for `longest_gap_ms` at most, and a
    time that an earlier entry has already reached counts for nothing: no jump makes an entry much older than it is.

    >>> entries = [(1, 100), (2, 103), (3, 9000), (4, 8990), (5, 9002)]
    >>> counted_ages_ms([ObjectInfo(f"t/{v:020}.json", 1, ms) for v, ms in entries], 1, 50)
    {2: 52, 3: 2, 4: 2, 5: 0}
    """
    modified = {v: o.modified_ms for o in listing if (v := layout.entry_version(o.path)) is not None}
    counted_at: dict[int, int] = {}
    counted, reached = 0, None
    for version in sorted(v for v in modified if v > floor):
        if reached is not None:
            counted += min(max(modified[version] - reached, 0), longest_gap_ms)
        reached = modified[version] if reached is None else max(modified[version], reached)
        counted_at[version] = counted
    return {version: counted - at for version, at in counted_at.items()}


def trim(storage: Storage, folder: str, min_age_ms: int, seen: Seen | None = None) -> TrimPlan:
    """Carry a trim out; safe to run twice at once and to kill anywhere. Returns what was done.

    The newest object of the log folder, or of the holds, stands for the store's clock.
    """
    floors = [o.path for o in storage.list_after(f"{folder}/{layout.FLOOR_FOLDER}")]
    floor = max((layout.version_of(p) or 0 for p in floors), default=-1)
    listing = list(storage.list_after(f"{folder}/{layout.LOG_FOLDER}"))
    holds = read_holds(storage, folder)  # after the entries: a job that has not seen one of them holds by then
    store_now_ms = max([*(o.modified_ms for o in listing), *(h.renewed_ms for h in holds)], default=0)
    checkpoints = whole_checkpoints(listing)
    until_ms = store_now_ms if seen is None else max(store_now_ms, seen.store_ms)
    held = held_version(holds, store_now_ms)
    plan = plan_trim(listing, checkpoints, floor, until_ms, min_age_ms, seen, held)
    while plan.floor > floor:
        kept = next(c for c in checkpoints if c.version > plan.floor)
        if _is_sound(storage, folder, kept):
            storage.put_if_absent(f"{folder}/{layout.floor_path(plan.floor)}", b"")
            break
        checkpoints.remove(kept)
        plan = plan_trim(listing, checkpoints, floor, until_ms, min_age_ms, seen, held)
    for path in plan.paths:
        storage.delete(path)
    for path in abandoned(holds, store_now_ms):
        storage.delete(path)
    for path in floors:
        if (layout.version_of(path) or 0) < plan.floor:
            storage.delete(path)
    return plan


def _is_sound(storage: Storage, folder: str, checkpoint: Checkpoint) -> bool:
    """Whether what is deleted can be had from this checkpoint: it can be read, and outlasts a power loss.

    One that a power loss tore just after it was written is passed over, as when the log is opened.
    """
    storage.sync(f"{folder}/{layout.LOG_FOLDER}/{name}" for name in checkpoint.files)
    try:
        read_checkpoint(storage, folder, checkpoint)
    except CorruptLogError:
        return False
    return True
