"""Which file system holds a folder, and whether other machines may write to it."""

import os
import re
import sys
from collections.abc import Iterable

# Only here does every writer's file pass this machine's kernel. On any other file system (a network disk, a disk shared
# with a virtual machine's host) other machines' files appear without a word, with times of another clock.
_THIS_MACHINES = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs", "zfs")
)
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_this_machines(path: str) -> bool:
    """Whether only this machine can write below an absolute path, there or not; False where that is unknown."""
    return type_of(path) in _THIS_MACHINES


def type_of(path: str) -> str:
    """The type of the file system that holds an absolute path, there or not; "" where that is unknown."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            return file_system_of(os.path.realpath(path), mounts)
    except OSError:
        return ""


def file_system_of(path: str, mounts: Iterable[str]) -> str:
    """The type of the file system that holds an absolute path, "" when unknown.

    `mounts`: the lines of Linux's /proc/self/mountinfo. The longest mount point counts, of equal ones the last.
    """
    longest, kind = -1, ""
    for line in mounts:
        fields, _, rest = line.partition(" - ")
        point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields.split(" ")[4])
        inside = path == point or path.startswith(f"{point.rstrip('/')}/")
        if inside and len(point) >= longest:
            longest, kind = len(point), rest.split(" ", 1)[0]
    return kind
