"""Which files of a log's folder no reader can need any more: the rules that topics and tables of rows share.

A file that the log removed stays as long as a version that can still be read names it, and `file.delete.delay.ms`
after its removal. What can still be read begins at the checkpoint past the newest floor (`tidelog.log.upkeep.trim`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from tidelog.log.base.errors import CorruptLogError, ObjectNotFoundError
from tidelog.log.checkpoints.entry_ranges import find_entries
from tidelog.log.checkpoints.reading import newest_floor, removed_files, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Remove, decode_entry
from tidelog.log.storage.port import ObjectInfo, Storage


@dataclass(frozen=True, slots=True)
class Gone:
    """A file that was removed before all that can still be read.

    `said_ms`: when, by the clock of the writer that removed it. `latest_ms`: when at the latest, by the store's clock.
    """

    said_ms: int
    latest_ms: int

    def removed_ms(self, made_ms: int) -> int:
        """When it was removed: what its remover says, where the store's times bear it out, else at the latest.

        `made_ms`: when the file was stored.

        >>> [Gone(said, 500).removed_ms(100) for said in (50, 300, 900)]
        [500, 300, 500]
        """
        return self.said_ms if made_ms <= self.said_ms <= self.latest_ms else self.latest_ms


@dataclass(frozen=True, slots=True)
class Kept:
    """What the kept part of a log says of removed files, by path below its folder.

    Versions from `oldest` on can be read. `removed`: {path: the newest of the entries after `oldest` that removed
    it}; versions before that entry name the file. `gone`: removed up to `oldest`, so that no such version does.
    """

    oldest: int
    removed: Mapping[str, int]
    gone: Mapping[str, Gone]


def read_kept(storage: Storage, folder: str, floor: int, head: int) -> Kept:
    """Read what the log in `folder` says of removed files up to entry `head`; `floor` is its newest one.

    An entry that is gone by now was trimmed meanwhile, and the versions before it with it.
    """
    removed = read_removed(storage, folder, range(floor + 2, head + 1))
    gone = read_gone(storage, folder, floor, storage.list_after(f"{folder}/{layout.LOG_FOLDER}"))
    return Kept(floor + 1, removed, gone)


def read_removed(storage: Storage, folder: str, versions: range) -> dict[str, int]:
    """{path: the newest of these entries that removed it}; those that were trimmed meanwhile say nothing.

    Raises `CorruptLogError` where the log in `folder` has a hole.
    """
    removed: dict[str, int] = {}
    for version, data in find_entries(storage, folder, versions):
        if data is None:
            if newest_floor(storage, folder) < version:
                raise CorruptLogError(
                    f"The log in {folder} lacks entry {version}, which no trim has passed: another program"
                    " removed it. Nothing is deleted here until 'tidelog check' is satisfied.",
                    version=version,
                )
        elif b'"remove"' in data:
            removed.update({unquote(p): version for p in _removes(version, data, folder)})
    return removed


def _removes(version: int, data: bytes, folder: str) -> Iterator[str]:
    path = f"{folder}/{layout.entry_path(version)}"
    return (a.path for a in decode_entry(version, data, path).actions if isinstance(a, Remove))


def read_gone(storage: Storage, folder: str, floor: int, listing: Iterable[ObjectInfo]) -> dict[str, Gone]:
    """The files that the checkpoint right past the floor says are removed; none where there is no such checkpoint.

    `listing` of the log folder.
    """
    infos = {o.path.rpartition("/")[2]: o for o in listing}
    checkpoint = next((c for c in whole_checkpoints(infos.values()) if c.version == floor + 1), None)
    if checkpoint is None:
        return {}
    written_ms = max(infos[name].modified_ms for name in checkpoint.files)
    try:
        return {unquote(p): Gone(ms, written_ms) for p, ms in removed_files(storage, folder, checkpoint)}
    except ObjectNotFoundError:  # a newer floor has passed it
        return {}


def over(
    gone: Mapping[str, Gone], made_ms: Mapping[str, int], live: Collection[str], store_now_ms: int, delay_ms: int
) -> list[str]:
    """Those of the files in `gone` that no reader needs any more. Times by the store's clock, ms since the epoch.

    `made_ms`: when each file was stored; one that is not there is passed over. `live`: what versions that can be
    read name all the same, because a repair has taken a removed file back.
    """
    return sorted(
        path
        for path, one in gone.items()
        if path in made_ms and path not in live and store_now_ms - one.removed_ms(made_ms[path]) >= delay_ms
    )
