"""Failures of the operating system's own calls, for the local adapter."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tidelog.log.storage import local_drafts


def fail_os(
    monkeypatch: pytest.MonkeyPatch, operation: str, number: int, when: Callable[..., bool] = lambda *_: True
) -> None:
    """Let `os.<operation>` fail with this errno for the calls that `when` picks by their arguments.

    No file is created by native code meanwhile, which makes no calls of `os`.
    """
    in_python(monkeypatch)
    real = getattr(os, operation)

    def failing(*args: object, **named: object) -> object:
        if when(*args):
            raise OSError(number, os.strerror(number))
        return real(*args, **named)

    monkeypatch.setattr(os, operation, failing)


def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create and sync files in Python, as where there is no native code."""
    monkeypatch.setattr(local_drafts, "NATIVE", None)


def is_folder(fd: int) -> bool:
    """Whether this descriptor is a folder's: picks the folder among the calls of fsync."""
    return os.path.isdir(f"/proc/self/fd/{fd}")


def files_below(root: Path) -> list[str]:
    """All files below the root, unfinished ones too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
