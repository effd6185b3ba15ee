"""Files that were staged and that no log entry names."""

from collections.abc import Iterable
from contextlib import suppress

from tidelog.log.base.errors import StorageError
from tidelog.log.storage.port import Storage


def discard(storage: Storage, paths: Iterable[str]) -> None:
    """Delete files that no log entry names, and none will name.

    Goes on after a failure, and raises none: the caller has a result or a worse error to report. A file that the store
    keeps is an orphan, which a purge deletes.
    """
    for path in paths:
        with suppress(StorageError):
            storage.delete(path)
