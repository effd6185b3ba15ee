"""A table's log at the follower: which entries it has, and how it gets the next ones."""

from collections.abc import Sequence

from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.checkpoints.reading import newest_floor, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.storage.port import CreatesRuns, Storage
from tidelog.log.storage.proving import require_proof
from tidelog.mirror.divergence import DivergedError, Divergence, appended, first_difference, named


def head_of(storage: Storage, folder: str) -> int | None:
    """The newest version of a log that only this process writes; None where there is no log.

    It begins at the newest checkpoint past the floor, or at entry 0, and ends at the first entry that is missing.
    """
    floor = newest_floor(storage, folder)
    listing = list(storage.list_after(f"{folder}/{layout.LOG_FOLDER}"))
    starts = [c.version for c in whole_checkpoints(listing) if c.version > floor]
    entries = {v for o in listing if (v := layout.entry_version(o.path)) is not None and v > floor}
    head = max(starts, default=-1)
    if not starts and 0 not in entries:
        return None
    while head + 1 in entries or get_entry(storage, folder, head + 1) is not None:
        head += 1
    return head


def get_entry(storage: Storage, folder: str, version: int) -> bytes | None:
    """An entry's bytes; None where there is none."""
    try:
        return storage.get(f"{folder}/{layout.entry_path(version)}")
    except ObjectNotFoundError:
        return None


def put_entry(follower: Storage, folder: str, version: int, data: bytes, ids: Ids) -> None:
    """Create an entry at the follower, the source's bytes. One that is there already is a success.

    Raises `DivergedError` where another entry is there, `StorageError`.
    """
    require_proof(follower, folder, ids)
    if follower.put_if_absent(f"{folder}/{layout.entry_path(version)}", data):
        return
    found = get_entry(follower, folder, version)
    if found != data:
        raise DivergedError(str(Divergence(folder, version, named(version, data), named(version, found))))


def put_entries(follower: Storage, folder: str, entries: Sequence[tuple[int, bytes]], ids: Ids) -> int:
    """Put some of these entries, which follow one another: at least the first; how many. Raises as `put_entry`.

    A local disk makes many of them durable together.
    """
    if len(entries) > 1 and isinstance(follower, CreatesRuns):
        require_proof(follower, folder, ids)
        created = follower.create_run((f"{folder}/{layout.entry_path(version)}", data) for version, data in entries)
        if created:
            return created
    put_entry(follower, folder, *entries[0], ids)
    return 1


def divergence(
    source: Storage, follower: Storage, folder: str, source_head: int, follower_head: int
) -> Divergence | None:
    """Where two logs of one table differ; None where the follower's is the beginning of the source's.

    Entries that both sides keep are compared, as their bytes are.
    """
    low = max(newest_floor(source, folder), newest_floor(follower, folder), -1)
    common = min(source_head, follower_head)

    def same(version: int) -> bool:
        ours, theirs = get_entry(source, folder, version), get_entry(follower, folder, version)
        # What one of them keeps no more, a checkpoint past it stands for.
        return ours is None or theirs is None or ours == theirs

    first = first_difference(low, common, same) if common > low else common + 1
    if first > follower_head:
        return None
    return divergence_from(source, follower, folder, first, follower_head)


def divergence_from(source: Storage, follower: Storage, folder: str, first: int, follower_head: int) -> Divergence:
    """What a follower's table has from version `first` on, which its source's hasn't."""
    mine = [(v, data) for v in range(first, follower_head + 1) if (data := get_entry(follower, folder, v)) is not None]
    return Divergence(
        folder,
        first,
        named(first, get_entry(source, folder, first)),
        named(first, mine[0][1] if mine else None),
        follower_head - first + 1,
        appended(mine),
    )
