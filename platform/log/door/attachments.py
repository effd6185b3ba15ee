"""Files that a decision brings along: stored before its entry, deleted when the entry came to nothing."""

from collections.abc import Mapping

from tidelog.log.storage.orphans import discard
from tidelog.log.storage.port import Storage


class Attachments:
    """The files of one commit, whatever becomes of its attempts."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._stored: frozenset[str] = frozenset()

    def store(self, files: Mapping[str, bytes]) -> None:
        """Store the files of the next attempt, by path below the log's folder; those of a lost one go."""
        for path in files.keys() - self._stored:
            self._storage.put(f"{self._folder}/{path}", files[path])
        left, self._stored = self._stored - files.keys(), frozenset(files)
        discard(self._storage, (f"{self._folder}/{path}" for path in left))
