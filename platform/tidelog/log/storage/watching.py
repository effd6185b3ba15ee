"""Watching local folders: the kernel reports each new file, so that a reader that waits for one need not poll."""

import re
from contextlib import suppress

from tidelog.log.storage.port import OnThisMachine, Storage

_NEW_FILE = re.compile(r"[0-9]{20}\.json\Z")


class FolderWatcher:
    """Tells in which of many folders a log entry was created (Linux inotify). Not for several threads.

    Raises `OSError` where there is no inotify, or where its limits are reached.
    """

    def __init__(self) -> None:
        # Linux only, and of no use to a process that never waits.
        from inotify_simple import INotify, flags

        self._inotify = INotify(nonblocking=True)
        self._mask = flags.CREATE | flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
        self._lost = flags.IGNORED | flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT
        self._overflow = flags.Q_OVERFLOW
        self._folders: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._awaiting: set[str] = set()  # folders where anything new counts

    def fileno(self) -> int:
        """The file descriptor that is readable when there is something to tell."""
        return int(self._inotify.fileno())

    def add(self, folder: str, *, anything: bool = False) -> None:
        """Watch a folder, for entries or for `anything` new. Raises `OSError` when it is not there or at a limit."""
        number = self._inotify.add_watch(folder, self._mask)
        if anything:
            self._awaiting.add(folder)
        self._folders[number] = folder
        self._numbers[folder] = number

    def remove(self, folder: str) -> None:
        """Watch it no more; a folder that is not watched is no error."""
        number = self._numbers.pop(folder, None)
        self._awaiting.discard(folder)
        if number is not None:
            self._folders.pop(number, None)
            with suppress(OSError):  # the folder is gone, and its watch with it
                self._inotify.rm_watch(number)

    def watches(self, folder: str) -> bool:
        """Whether the folder is watched: one that was deleted or moved is not any more."""
        return folder in self._numbers

    def changed(self) -> set[str]:
        """The folders with new entries since the last call; those that are gone too, and all after an overflow."""
        folders: set[str] = set()
        for number, mask, _, name in self._inotify.read(timeout=0):
            if mask & self._overflow:
                folders.update(self._numbers)
            folder = self._folders.get(number)
            if folder is None:
                continue
            if mask & self._lost:
                folders.add(folder)
                self.remove(folder)
            elif folder in self._awaiting or _NEW_FILE.match(name):
                folders.add(folder)
        return folders

    def close(self) -> None:
        """Stop watching."""
        self._inotify.close()


def open_watcher(storage: Storage) -> FolderWatcher | None:
    """A watcher for a store's folders; None where there is none, or where it would not hear of everything."""
    if storage.is_shared or not isinstance(storage, OnThisMachine):
        return None
    try:
        return FolderWatcher()
    except OSError:
        return None
