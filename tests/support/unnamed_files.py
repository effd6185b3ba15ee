"""Folders on a file system whose unnamed files last: most servers' disks have them, layers of containers have none."""

import atexit
import shutil
import tempfile
from pathlib import Path

from tidelog.log.storage import local_drafts
from tidelog.log.storage.file_systems import type_of


def with_unnamed_files(folder: Path) -> Path:
    """The folder if it is on such a file system, else a new one in memory, which is one."""
    if type_of(str(folder)) in local_drafts.UNNAMED_LAST_ON:
        return folder
    in_memory = tempfile.mkdtemp(prefix="tidelog-", dir="/dev/shm")
    atexit.register(shutil.rmtree, in_memory, ignore_errors=True)
    return Path(in_memory)
