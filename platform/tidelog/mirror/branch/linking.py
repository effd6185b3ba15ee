"""How files come to a branch: linked where the stores can, copied else."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage.port import Linked, LinksObjects, Storage
from tidelog.mirror.copying import Copier


@dataclass
class FileTaker:
    """Takes files of one store into another one, to the same paths.

    `linked` and `copied` count them, `copied_bytes` what passed this process. `again`: an earlier call may have taken
    some of them.
    """

    source: Storage
    target: Storage
    copier: Copier
    again: bool
    linked: int = 0
    copied: int = 0

    @property
    def copied_bytes(self) -> int:
        """The bytes that passed this process."""
        return self.copier.copied_bytes

    def take(self, sizes: Mapping[str, int]) -> list[str]:
        """Take files, by path with their bytes, so that they are as durable as at the source; those that it lacks.

        Raises `MissingSegmentError` for one of another size, `StorageError`.
        """
        done = self._link(list(sizes))
        copied = {path: sizes[path] for path in done.unlinked}
        missing = [*done.missing, *(self.copier.copy(copied, again=self.again) if copied else ())]
        self.copied += len(copied)
        return missing

    def take_log(self, paths: list[str]) -> None:
        """Take entries and checkpoints, durably. Raises `ObjectNotFoundError`, `StorageError`."""
        done = self._link(paths)
        if done.missing:
            raise ObjectNotFoundError(f"{done.missing[0]} is gone from {self.source.uri} meanwhile.")
        for path in done.unlinked:
            self.target.put(path, self.source.get(path))
        self.target.sync(done.unlinked)

    def _link(self, paths: list[str]) -> Linked:
        if not isinstance(self.target, LinksObjects) or not self.target.links_from(self.source):
            return Linked(unlinked=tuple(paths))
        done = self.target.link_in(self.source, paths)
        self.linked += len(paths) - len(done.missing) - len(done.unlinked)
        return done
