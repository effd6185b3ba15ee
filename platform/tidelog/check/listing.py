"""The objects of a topic's log folder, sorted by kind, for `check`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.log.checkpoints.reading import Checkpoint, newest_floor, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.storage.port import HoldsStrangers, ObjectInfo, Storage

_ENTRY = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint(\.\d{10}\.\d{10})?\.parquet")
_HINT = re.compile(re.escape(layout.LAST_CHECKPOINT.rpartition("/")[2]))
_FLOOR = re.compile(r"\d{20}")
# How object_store, below deltalake, names a file that it has not finished on a local disk.
_STAGED = re.compile(r".+#\d+")


@dataclass(frozen=True, slots=True)
class LogFiles:
    """A topic's log folder at one moment.

    `entries`: by version. `checkpoints`: the whole ones, by version; `written_ms`: when, by version, on the store's
    clock. `parts`: files of checkpoints that are not whole. `staged`: unfinished files of deltalake. `floor`: the
    newest floor, -1 for none.
    """

    entries: Mapping[int, ObjectInfo]
    checkpoints: tuple[Checkpoint, ...]
    written_ms: Mapping[int, int]
    parts: tuple[ObjectInfo, ...]
    staged: tuple[ObjectInfo, ...]
    floor: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever committed here."""
        return not (self.entries or self.checkpoints or self.parts or self.floor >= 0)

    @property
    def usable(self) -> list[Checkpoint]:
        """The checkpoints that a log may be read from: those past the floor."""
        return [c for c in self.checkpoints if c.version > self.floor]

    @property
    def newest(self) -> int:
        """The newest version that a file's name holds, -1 for none."""
        return max([*self.entries, *(c.version for c in self.checkpoints)], default=-1)


def list_log(storage: Storage, topic: str) -> LogFiles:
    """List a log folder, and after it the floors, so that what a trim removed meanwhile is known to be removed."""
    entries: dict[int, ObjectInfo] = {}
    checkpoints: list[ObjectInfo] = []
    staged = []
    for info in storage.list_after(f"{topic}/{layout.LOG_FOLDER}"):
        name = info.path.rpartition("/")[2]
        version = layout.entry_version(name)
        if version is not None:
            entries[version] = info
        elif _CHECKPOINT.fullmatch(name):
            checkpoints.append(info)
        elif _STAGED.fullmatch(name):
            staged.append(info)
    whole = whole_checkpoints(checkpoints)
    covered = {c.version for c in whole}
    parts = tuple(o for o in checkpoints if layout.version_of(o.path) not in covered)
    written_ms = {v: o.modified_ms for o in checkpoints if (v := layout.version_of(o.path)) is not None}
    return LogFiles(entries, tuple(whole), written_ms, parts, tuple(staged), newest_floor(storage, topic))


def taken_names(storage: Storage, topic: str) -> list[str]:
    """The names of entries, checkpoints and floors that something else has, by path below the topic's folder."""
    if not isinstance(storage, HoldsStrangers):
        return []
    needed = ((layout.LOG_FOLDER, (_ENTRY, _CHECKPOINT, _HINT)), (layout.FLOOR_FOLDER, (_FLOOR,)))
    return [
        f"{folder}/{name}"
        for folder, patterns in needed
        for name in storage.strangers(f"{topic}/{folder}")
        if any(pattern.fullmatch(name) for pattern in patterns)
    ]
