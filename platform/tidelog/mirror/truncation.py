"""What a lake wrote after another one was promoted: found when it follows that one back, and cut off when asked.

Cut off means as Kafka truncates a follower's log to its leader's: entries that the source doesn't have leave the log.
They are kept aside, and so are their files for an hour.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.checkpoints.reading import newest_floor, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.storage.port import Storage
from tidelog.mirror.divergence import Divergence
from tidelog.mirror.follower_log import divergence_from, head_of

# In a lake that was promoted: where each table was then.
PROMOTED: Final = f"{layout.MIRROR_FOLDER}/promoted"
# In a follower: what it wrote beside its source, until that is cut off.
DIVERGED: Final = f"{layout.MIRROR_FOLDER}/diverged"


def note_promotion(storage: Storage, source: str, heads: Mapping[str, int], now_ms: int) -> None:
    """Say where the tables of a lake were when it ceased to follow `source`, so that it survives a power loss."""
    storage.put(PROMOTED, orjson.dumps({"source": source, "heads": dict(heads), "at_ms": now_ms}))
    storage.sync([PROMOTED])


def promoted_heads(storage: Storage, source: str) -> dict[str, int]:
    """{table: version} at which a lake ceased to follow `source`; empty where it never did."""
    body = _read(storage, PROMOTED)
    return dict(body["heads"]) if body.get("source") == source else {}


def written_beside(source: Storage, follower: Storage) -> list[Divergence]:
    """What a lake wrote after it was read for the last time by the one that was promoted, table by table."""
    divergences = []
    for table, version in sorted(promoted_heads(source, follower.uri).items()):
        head = head_of(follower, table)
        if head is not None and head > version:
            divergences.append(divergence_from(source, follower, table, version + 1, head))
    return divergences


def note_diverged(follower: Storage, divergences: Mapping[str, Divergence]) -> None:
    """Keep what a follower wrote beside its source until it is cut off."""
    if divergences:
        follower.put(DIVERGED, orjson.dumps({name: one.to_json() for name, one in divergences.items()}))
        follower.sync([DIVERGED])
    else:
        follower.delete(DIVERGED)


def noted_diverged(follower: Storage) -> dict[str, Divergence]:
    """What was noted."""
    return {name: Divergence.from_json(one) for name, one in _read(follower, DIVERGED).items()}


def cut_off(follower: Storage, table: str, version: int) -> None:
    """Take the entries from `version` on out of a table's log; all of it where nothing before them is kept.

    The newest goes first, so that what is left after a crash is a log. Programs that have the table open must open it
    again. They are kept in `_tidelog/torn`, under the name `diverged-<version>-<name>`.
    """
    folder, floor = f"{table}/{layout.LOG_FOLDER}", newest_floor(follower, table)
    listing = list(follower.list_after(folder))
    bases = [c.version for c in whole_checkpoints(listing) if floor < c.version < version]
    first = version if bases or (floor < 0 and version > 0) else 0
    follower.delete(f"{table}/{layout.LAST_CHECKPOINT}")
    doomed = [(v, o.path) for o in listing if (v := layout.version_of(o.path)) is not None and v >= first]
    checkpoints = [path for _, path in doomed if layout.entry_version(path) is None]
    for path in [*checkpoints, *(p for _, p in sorted(doomed, reverse=True) if layout.entry_version(p) is not None)]:
        name = path.rpartition("/")[2]
        if layout.entry_version(path) is not None:
            aside = f"{table}/{layout.ASIDE_FOLDER}/diverged-{version}-{name}"
            follower.put(aside, follower.get(path))
            follower.sync([aside])
        follower.delete(path)
    if first == 0:
        for found in list(follower.list_after(f"{table}/{layout.FLOOR_FOLDER}")):
            follower.delete(found.path)


def _read(storage: Storage, path: str) -> dict[str, Any]:
    try:
        return dict(orjson.loads(storage.get(path)))
    except ObjectNotFoundError:
        return {}
