"""Which of a server's paths a request's path fits. A path of a server is a tuple of words and of `{variables}`."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

PathParts: TypeAlias = tuple[str, ...]


class FoundPath(NamedTuple):
    """A server's path, and what its variables stand for in a request."""

    own: PathParts
    variables: dict[str, str]


def path_parts(path: str) -> list[str]:
    """The segments of a request's path, which begins with "/" and has percent signs as it was sent.

    Each is decoded once, after the path is split, so that a name may have slashes and percent signs in it.
    """
    return [unquote(part, errors="replace") for part in path.split("/")[1:]]


def found_path(paths: Iterable[PathParts], parts: Sequence[str]) -> FoundPath | None:
    """The path that the segments fit, None where none does. A word counts before a variable: schemas/types is no id."""
    candidates = ((own, _variables(own, parts)) for own in paths)
    fitting = [FoundPath(own, variables) for own, variables in candidates if variables is not None]
    return min(fitting, key=lambda one: len(one.variables), default=None)


def _variables(own: PathParts, parts: Sequence[str]) -> dict[str, str] | None:
    """The variables of a path that fits, None for one that doesn't."""
    if len(own) != len(parts):
        return None
    pairs = list(zip(own, parts, strict=True))
    if any(word != part for word, part in pairs if not word.startswith("{")):
        return None
    return {word[1:-1]: part for word, part in pairs if word.startswith("{")}
