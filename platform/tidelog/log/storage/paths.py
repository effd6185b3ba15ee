"""Paths inside a store: which ones there are."""

import re

from tidelog.log.base.errors import InvalidPathError

# Control characters, lone surrogates and the backslash have no one spelling across stores.
_FORBIDDEN = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)|[\x00-\x1f\x7f\\\ud800-\udfff]|(?:\A|/)\.[^/]*\.tmp\Z")


def check_path(path: str) -> None:
    """Refuse a path that every adapter must refuse. Raises `InvalidPathError`."""
    if _FORBIDDEN.search(path):
        raise InvalidPathError(
            f"The path {path!r} can't name an object. A path is relative to the lake's root: parts between single "
            "'/', none of them empty, '.' or '..', no control character or backslash, and no last part like "
            "'.x.tmp' (names of unfinished files). Pass such a path."
        )


def check_folder(folder: str) -> None:
    """Refuse a folder that is neither "" (the root) nor a path. Raises `InvalidPathError`."""
    if folder:
        check_path(folder)


def is_unfinished(name: str) -> bool:
    """Whether the name is that of a file still being written, which listings hide."""
    return name.startswith(".") and name.endswith(".tmp")
