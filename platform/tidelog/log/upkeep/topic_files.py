"""The files of a topic's folder besides its log: segments, and files that a crash left unfinished."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.log.delta import layout
from tidelog.log.storage.port import LeavesUnfinished, ObjectInfo, Storage

# A file that no entry names may belong to a writer that has not committed it yet.
IN_FLIGHT_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class TopicFiles:
    """The files of a topic's folder besides its log: `data` by path below the folder, and unfinished files."""

    data: Mapping[str, ObjectInfo]
    unfinished: tuple[ObjectInfo, ...]


def list_files(storage: Storage, topic: str) -> TopicFiles:
    """List a topic's folder. Folders that start with `_` belong to the table's log and to tidelog.

    Of hidden files only those count that Hadoop puts beside the ones that Spark writes.
    """
    data: dict[str, ObjectInfo] = {}
    unfinished: list[ObjectInfo] = []
    folders = [topic]
    while folders:
        folder = folders.pop()
        for info in storage.list_after(folder):
            name = info.path.rpartition("/")[2]
            if name[0] not in "._" or name.startswith(".part-"):
                data[info.path.removeprefix(f"{topic}/")] = info
        folders.extend(f"{folder}/{name}" for name in storage.list_folders(folder) if name[0] not in "._")
        unfinished.extend(unfinished_in(storage, folder))
    for folder in (layout.LOG_FOLDER, layout.FLOOR_FOLDER, layout.ASIDE_FOLDER):
        unfinished.extend(unfinished_in(storage, f"{topic}/{folder}"))
    return TopicFiles(data, tuple(unfinished))


def unfinished_in(storage: Storage, folder: str) -> list[ObjectInfo]:
    """The files directly in a folder that a writer began and has not given their name."""
    return storage.unfinished(folder) if isinstance(storage, LeavesUnfinished) else []


def old_temporary_files(unfinished: Iterable[ObjectInfo], now_ms: int) -> list[ObjectInfo]:
    """Unfinished files that no writer can still be writing."""
    return [o for o in unfinished if o.modified_ms <= now_ms - IN_FLIGHT_MS]
