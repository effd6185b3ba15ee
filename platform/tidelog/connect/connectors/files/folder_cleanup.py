"""What becomes of a folder source's files: those that were read whole, and those that can't be read."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tidelog.connect.config.definition import ConfigValue

_LOG: Final = logging.getLogger(__name__)


class FolderCleanup:
    """Moves and deletes files, by the source's parsed keys.

    `takes_whole`: files come whole, and are gone when they were read: another file may have the same name then.
    `sets_aside`: files that can't be read are moved to error.path.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._folder = Path(values["input.path"])
        policy = values["cleanup.policy"].upper()
        self.takes_whole = policy != "NONE"
        self._finished = Path(values["finished.path"]) if policy == "MOVE" else None
        self._failed = Path(values["error.path"]) if values["error.path"] else None
        self.sets_aside = self._failed is not None and not values["halt.on.error"]

    def owns(self, path: Path) -> bool:
        """Whether a path is in one of the folders that files are moved to."""
        return any(one is not None and one in path.parents for one in (self._finished, self._failed))

    def end(self, name: str, failure: str | None) -> None:
        """Clean up after a file. `failure`: why it can't be read, None for one that was read whole.

        Raises `OSError` where the file can't be moved or deleted.
        """
        path = self._folder / name
        if failure is not None and self._failed is not None:
            _LOG.warning("Set aside: file=%s moved=%s error=%s", path, _moved(path, self._failed / name), failure)
        elif failure is None and self._finished is not None:
            _moved(path, self._finished / name)
        elif failure is None and self.takes_whole:
            path.unlink(missing_ok=True)


def _moved(path: Path, to: Path) -> Path:
    """Where a file is after it was moved: under a name of its own, where there is one of its name."""
    to.parent.mkdir(parents=True, exist_ok=True)
    free, number = to, 0
    while free.exists():
        number += 1
        free = to.with_name(f"{to.name}.{number}")
    try:
        shutil.move(path, free)
    except FileNotFoundError:  # moved by a task that was to be replaced
        if path.exists():
            raise
    return free


def cleanup_errors(values: Mapping[str, ConfigValue]) -> None:
    """Add what only several keys together show to the keys' errors."""
    moves = str(values["cleanup.policy"].value).upper() == "MOVE"
    if moves and not values["finished.path"].value:
        values["finished.path"].errors.append("cleanup.policy=MOVE needs finished.path: the folder for finished files.")
    if values["error.path"].value and values["halt.on.error"].value:
        values["error.path"].errors.append("error.path needs halt.on.error=false: else such a file fails the task.")
    for name in ("finished.path", "error.path"):
        if values[name].value and values[name].value == values["input.path"].value:
            values[name].errors.append(f"{name} is input.path: its files would be read again. Give another folder.")
